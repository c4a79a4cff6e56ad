"""Tells a scripted model server which trial asks: a header that is added to requests to that server alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tbadapters.core.context import TrialRef, running
from tbadapters.core.transport import TransportHook

TRIAL_HEADER = "x-tbadapters-trial"


class TrialHeader(TransportHook):
    """Adds the trial that runs in the context of a request to its headers, where it goes to ``host:port``."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def request(self, request: Any) -> None:
        """Add the header."""
        attempt = running.get()
        if attempt is not None and (request.url.host, request.url.port) == self._address:
            request.headers[TRIAL_HEADER] = json.dumps([attempt.trial.task, attempt.trial.index, attempt.trial.seed])


def read_trial(headers: Mapping[str, str]) -> TrialRef | None:
    """Return the trial that a request's headers name."""
    value = headers.get(TRIAL_HEADER)
    if not value:
        return None
    task, index, *seed = json.loads(value)
    return TrialRef(task, int(index), *seed)
