"""Where the examples' agents find their model: a real provider if the environment names one, else a scripted stand-in.

A real model is used only on the explicit word ``TBADAPTERS_MODEL``: a key alone, which many shells carry, spends nothing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tbadapters.core.errors import UsageError
from tbadapters.core.suite import Suite
from tbadapters.testing.model_server import ScriptedModelServer
from tbadapters.testing.outcomes import Outcomes
from tbadapters.testing.policies import GoldenPolicy

OUTCOMES = Outcomes(pass_rate=0.8)
SCRIPTED_NOTICE = (
    "A scripted stand-in plays the model, with failures that are drawn from a seed: the figures say nothing about the "
    "framework. For a real model set TBADAPTERS_MODEL, OPENAI_API_KEY and, where it is not OpenAI, OPENAI_BASE_URL."
)
_OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """An OpenAI-compatible endpoint.

    Attributes:
        model: The model's name.
        base_url: For a client's ``base_url``.
        api_key: For a client's ``api_key``.
        notice: Who plays the model, to be printed beside any figure.
        scripted: Whether it is the stand-in.
    """

    model: str
    base_url: str
    api_key: str
    notice: str
    scripted: bool


@asynccontextmanager
async def model_endpoint(
    suite: Suite, *, outcomes: Outcomes = OUTCOMES, environ: Mapping[str, str] | None = None
) -> AsyncIterator[ModelEndpoint]:
    """Open the endpoint that the environment names, or a scripted stand-in that plays the suite's tasks.

    Args:
        suite: What the stand-in plays.
        outcomes: Which trials the stand-in passes, and by which flaw it fails the others.
        environ: ``TBADAPTERS_MODEL``, ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``; None for the process's environment.

    Raises:
        UsageError: a model is named, but neither a key nor an endpoint.
    """
    environ = os.environ if environ is None else environ
    name = environ.get("TBADAPTERS_MODEL")
    if name:
        yield _real(name, environ.get("OPENAI_BASE_URL"), environ.get("OPENAI_API_KEY"))
        return
    async with ScriptedModelServer(GoldenPolicy(suite, outcomes=outcomes), keep_bodies=False) as server:
        yield ModelEndpoint("stand-in", server.url, "none", SCRIPTED_NOTICE, scripted=True)


def _real(name: str, base_url: str | None, api_key: str | None) -> ModelEndpoint:
    if not base_url and not api_key:
        raise UsageError(
            f"TBADAPTERS_MODEL names {name!r}; set OPENAI_API_KEY, or OPENAI_BASE_URL for an own endpoint."
        )
    url = base_url or _OPENAI
    return ModelEndpoint(name, url, api_key or "none", f"The model is {name} at {url}.", scripted=False)
