"""An OpenAI-compatible model server on loopback whose model is a script: for tests of agents, without a model.

    with ScriptedModelServer(FixedPolicy(["Hello."])) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="any")

It speaks chat completions and responses, whole and streamed, over real HTTP, in a thread and a loop of its own: an
agent that blocks its loop does not block the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, Self

from tbadapters.core.loopback import HOST, EnteredByThread, LoopbackServer
from tbadapters.core.messages import Usage
from tbadapters.core.transport import observe_transport
from tbadapters.testing.endpoints import Endpoints, Gate
from tbadapters.testing.faults import FaultPlan, Faults
from tbadapters.testing.server_log import Exchange, ServerLog
from tbadapters.testing.trial_header import TrialHeader
from tbadapters.testing.turns import PolicyLike


class ScriptedModelServer(EnteredByThread):
    """Serves scripted models while its ``with`` (or ``async with``) block runs.

    While it runs, requests that this process makes to it carry the running trial in a header.

    Args:
        policy: What the model answers: a policy, or a callable ``turn -> Reply or str``; a mapping from a model's name
            to its policy serves several models, and no other.
        faults: Which faults happen: ``Faults(...)`` by probability, or a callable ``request_number -> kind or None``.
        api_key: The key that is asked for; None: any key, or none, will do.
        missing_models: Names of models that are answered 404.
        keep_bodies: Whether ``requests`` keep what was sent; False for long runs.
    """

    def __init__(
        self,
        policy: PolicyLike | Mapping[str, PolicyLike],
        *,
        faults: Faults | FaultPlan | None = None,
        api_key: str | None = None,
        missing_models: Iterable[str] = (),
        keep_bodies: bool = True,
    ) -> None:
        self.log = ServerLog()
        gate = Gate(api_key, frozenset(missing_models))
        self._endpoints = Endpoints(policy, self.log, faults or Faults(), gate, keep_bodies=keep_bodies)
        self._server = LoopbackServer(self._endpoints.app(), name="scripted-model-server")
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """The base URL for a client, such as ``http://127.0.0.1:40123/v1``."""
        return f"http://{HOST}:{self._server.port}/v1"

    @property
    def requests(self) -> list[Exchange]:
        """Everything that it received and sent."""
        return self.log.exchanges

    @property
    def totals(self) -> Usage:
        """The tokens that its clients were told of."""
        return self.log.totals

    def usage_by_trial(self) -> dict[tuple[str, int], Usage]:
        """Return the tokens that its clients were told of, by task and trial index."""
        return self.log.by_trial()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._server)
        self._stack.enter_context(observe_transport(TrialHeader(HOST, self._server.port)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._stack.close()
        if error is None and self._endpoints.policy_errors:
            raise RuntimeError("The policy of the scripted model failed.") from self._endpoints.policy_errors[0]
        return False
