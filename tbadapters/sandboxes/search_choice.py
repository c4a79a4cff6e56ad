"""Which search the servers of a run use: a real Typesense where one answers, else the stand-in."""

from __future__ import annotations

import json
import re
import secrets
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
from anyio import CancelScope

from tbadapters.core.errors import UsageError, describe
from tbadapters.core.logs import get_logger
from tbadapters.sandboxes.search import SearchStandIn

log = get_logger(__name__)

TYPESENSE_PORT = 8108
ANSWER_SECONDS = 2.0
STAND_IN_NOTE = "search: embedded stand-in (SQLite FTS5, BM25), not canonical"
_VERSION = re.compile(r"v?(\d+\.\d[\w.]*)")


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """The search of a run.

    Attributes:
        version: The version of the real Typesense; None for the stand-in.
        host: Where the real one answers.
        port: Where the real one answers.
        api_key: The key that it takes.
    """

    version: str | None
    host: str
    port: int
    api_key: str

    @property
    def canonical(self) -> bool:
        """Whether it is a real Typesense."""
        return self.version is not None

    @property
    def note(self) -> str | None:
        """What a reader of the figures must know, None where it is the canonical search."""
        return None if self.canonical else STAND_IN_NOTE

    @property
    def name(self) -> str:
        """What it is, for manifest and log."""
        return f"Typesense {self.version} at {self.host}:{self.port}" if self.canonical else STAND_IN_NOTE

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Mapping[str, Any]]:
        """Have it answer while the block runs; yields the options of the preparation file ``preparations.SEARCH``.

        Servers keep what they index under names of this run, each set of documents once. They are gone afterwards.
        """
        prefix = f"tbadapters-{secrets.token_hex(6)}-"
        if not self.canonical:
            async with SearchStandIn() as search:
                yield {"search": {"host": search.host, "port": search.port, "prefix": prefix}}
            return
        try:
            yield {"search": {"host": self.host, "port": self.port, "prefix": prefix}}
        finally:
            with CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._tidied, prefix)

    def _tidied(self, prefix: str) -> None:
        """Delete this run's collections; what can't be deleted is said in the log."""
        try:
            for collection in self._asked("GET", "/collections"):
                if collection["name"].startswith(prefix):
                    self._asked("DELETE", f"/collections/{collection['name']}")
        except (OSError, ValueError) as error:
            log.warning("search_collections_left", prefix=prefix, search=self.name, error=describe(error))

    def _asked(self, method: str, path: str) -> Any:
        return _answer(self.host, self.port, path, method=method, api_key=self.api_key)


def find_search(*, host: str = "127.0.0.1", port: int = TYPESENSE_PORT, api_key: str = "Fake") -> SearchChoice:
    """Return the search to use: the Typesense that answers at an address, else the stand-in.

    Args:
        host: Where a Typesense may answer.
        port: Where a Typesense may answer.
        api_key: The key that the servers will use.

    Raises:
        UsageError: a Typesense answers, but can't be used: it refuses the key, or is not ready.
    """
    stand_in = SearchChoice(None, host, port, api_key)
    try:
        health = _answer(host, port, "/health")
    except urllib.error.HTTPError as error:
        if error.code != 503:  # noqa: PLR2004  (how a Typesense that is not ready answers)
            return stand_in
        health = {"ok": False}
    except (OSError, ValueError):
        return stand_in  # nobody, or somebody who speaks no JSON
    if not isinstance(health, dict) or not isinstance(health.get("ok"), bool):
        return stand_in
    if not health["ok"]:
        raise UsageError(f"The Typesense at {host}:{port} is not ready: wait until its /health says ok, or stop it.")
    try:
        told = _answer(host, port, "/debug", api_key=api_key)
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise UsageError(
                f"The Typesense at {host}:{port} refuses the key {api_key!r} that the servers use: start it with "
                f"--api-key={api_key}, or stop it to use the embedded stand-in."
            ) from error
        return stand_in
    except (OSError, ValueError):
        return stand_in
    version = _VERSION.fullmatch(str(told.get("version"))) if isinstance(told, dict) else None
    return SearchChoice(version[1], host, port, api_key) if version else stand_in


def _answer(host: str, port: int, path: str, *, method: str = "GET", api_key: str | None = None) -> Any:
    """Return the JSON that an address answers with, without any proxy."""
    headers = {"X-TYPESENSE-API-KEY": api_key} if api_key else {}
    request = urllib.request.Request(f"http://{host}:{port}{path}", method=method, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=ANSWER_SECONDS) as response:
        return json.loads(response.read())
