"""What a LangGraph run reports while it runs: model requests and their tokens, hints, faults.

Imports LangChain and LangGraph at the top: ``langgraph.py`` imports this module only when a graph is at hand.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core import exceptions as langchain_errors
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.manager import handle_event
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langgraph.errors import GraphRecursionError

from tbadapters.adapters._shared import agent_fault, causes, model_fault
from tbadapters.adapters.langgraph_tools import actor_of
from tbadapters.core.agent import Recorder
from tbadapters.core.errors import AccessFault, AgentFault, Fault, ProviderFault, describe
from tbadapters.core.messages import Usage

# The providers whose integration is not langchain-openai: their errors by LangChain's own types.
_FAULTS: tuple[tuple[type[BaseException], type[Fault], str], ...] = (
    (langchain_errors.ModelAuthenticationError, AccessFault, "authentication"),
    (langchain_errors.ModelPermissionDeniedError, AccessFault, "permission"),
    (langchain_errors.ModelNotFoundError, AccessFault, "model_not_found"),
    (langchain_errors.ModelRateLimitError, ProviderFault, "rate_limit"),
    (langchain_errors.ModelAPIError, ProviderFault, "server_error"),
    (langchain_errors.ModelConnectionError, ProviderFault, "connection"),
    (langchain_errors.ModelTimeoutError, ProviderFault, "timeout"),
    (langchain_errors.ContextOverflowError, AgentFault, "context_length_exceeded"),
    (langchain_errors.ModelRefusalError, AgentFault, "refusal"),
    (langchain_errors.ModelInvalidRequestError, AgentFault, "invalid_request"),
    (GraphRecursionError, AgentFault, "recursion_limit"),
)


def _not_ours(record: logging.LogRecord) -> bool:
    return not (isinstance(record.args, tuple) and record.args and record.args[0] == Watch.__name__)


# LangChain logs every exception of a handler; ours are limits that are met, which the trial's record tells of.
logging.getLogger("langchain_core.callbacks.manager").addFilter(_not_ours)


class Watch(BaseCallbackHandler):
    """Reports what happens inside one session to the recorder.

    Attributes:
        stop: The first fault that ends the attempt; the author's code may have swallowed it.
    """

    raise_error = True  # else LangChain logs a limit that is reached and goes on
    run_inline = True  # else every event costs a thread

    def __init__(self, recorder: Recorder, policy: str | None, blocking: set[UUID]) -> None:
        self.stop: Fault | None = None
        self._recorder = recorder
        self._policy = policy
        self._blocking = blocking
        self._pending: dict[UUID, tuple[str, str | None]] = {}
        self._failed: list[tuple[BaseException, Fault]] = []
        self._noted: set[str] = set()
        # Sync nodes run in worker threads, and their events with them.
        self._one_at_a_time = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()

    def fault_of(self, error: BaseException) -> Fault:
        """Return the fault for an exception that escaped from the graph."""
        for cause in causes(error):
            for seen, fault in self._failed:
                if cause is seen:
                    return fault
        return _fault(error) or agent_fault(error)

    # -- LangChain's events ---------------------------------------------------------------------------------------

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002  # the event's signature
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a request that starts."""
        if self._blocks_loop():
            self._note(
                "A node calls its model synchronously in async code, and all trials wait: use `await ...ainvoke`."
            )
        self._starts(run_id, metadata, kwargs)
        self._look_for_policy([message.text for batch in messages for message in batch], actor_of(metadata))

    def on_llm_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002  # the event's signature
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a request of a completion model that starts."""
        self._starts(run_id, metadata, kwargs)
        self._look_for_policy(prompts, actor_of(metadata))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Record a request that ended, with its tokens."""
        asked, actor = self._pending.pop(run_id, ("unknown", None))
        message = _message(response)
        if message is not None and dict(message.usage_metadata or ()).get("total_cost") == 0:
            self._note("A model request was answered from LangChain's cache: the trials are not independent.")
            self._report(lambda: self._recorder.model_request(asked, Usage(), actor=actor))
            return
        model = _model(response, message) or asked
        self._report(lambda: self._recorder.model_request(model, _usage(response, message), actor=actor))
        if message is not None:
            self._hints(message)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Record a request that failed."""
        model, actor = self._pending.pop(run_id, ("unknown", None))
        fault = None
        if isinstance(error, Exception):  # a cancelled request is nobody's fault
            timeout = ProviderFault(describe(error), code="timeout") if isinstance(error, TimeoutError) else None
            fault = _fault(error) or timeout or agent_fault(error)
            self._failed.append((error, fault))
        self._report(lambda: self._recorder.model_request(model, None, fault=fault, actor=actor))

    def on_chain_start(self, serialized: dict[str, Any] | None, inputs: Any, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002  # the event's signature
        """Keep a run that was invoked synchronously in async code: it blocks the loop until it ends."""
        if self._blocks_loop():
            self._blocking.add(run_id)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002  # the event's signature
        """Forget a blocking run that ended."""
        self._blocking.discard(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002  # the event's signature
        """Forget a blocking run that failed."""
        self._blocking.discard(run_id)

    def on_tool_error(self, error: BaseException, **_: Any) -> None:
        """Keep a fault that a tool node may be about to turn into a message."""
        if isinstance(error, Fault):
            self.stop = self.stop or error

    # -- reports ----------------------------------------------------------------------------------------------------

    def _starts(self, run_id: UUID, metadata: Mapping[str, Any] | None, kwargs: Mapping[str, Any]) -> None:
        params = kwargs.get("invocation_params") or {}
        model = (metadata or {}).get("ls_model_name") or params.get("model") or params.get("model_name") or "unknown"
        actor = actor_of(metadata)
        self._report(lambda: self._recorder.request_starts(actor))
        self._pending[run_id] = (str(model), actor)

    def _blocks_loop(self) -> bool:
        """Whether the event comes from a synchronous call on the event loop's thread."""
        event = inspect.currentframe()
        caller = event.f_back.f_back if event and event.f_back else None
        return (
            threading.get_ident() == self._loop_thread and caller is not None and caller.f_code is handle_event.__code__
        )

    def _report(self, say: Callable[[], None]) -> None:
        with self._one_at_a_time:
            try:
                say()
            except Fault as fault:
                self.stop = self.stop or fault
                raise
            finally:
                self._loop.call_soon_threadsafe(lambda: None)  # what was said from a thread wakes who waits for it

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._report(lambda: self._recorder.note(text))

    def _look_for_policy(self, texts: Sequence[str], actor: str | None) -> None:
        if self._policy and not any(self._policy in text for text in texts):
            who = f"The sub-agent {actor}" if actor else "The agent"
            self._note(f"{who} made a model request without the suite's policy: the graph does not pass it on.")

    def _hints(self, message: AIMessage) -> None:
        for call in message.invalid_tool_calls:
            self._note(f"The model called {call['name']} with malformed JSON arguments; LangGraph ignores such a call.")
        if refusal := message.additional_kwargs.get("refusal"):
            self._note(f"The model refused: {refusal}")
        if message.response_metadata.get("finish_reason") in ("content_filter", "length"):
            self._note(f"The model's answer was cut off: {message.response_metadata['finish_reason']}.")


def _fault(error: BaseException) -> Fault | None:
    by_client = model_fault(error)
    if by_client is not None and by_client.code != "invalid_request":
        return by_client
    for cause in causes(error):
        for kind, fault, code in _FAULTS:
            if isinstance(cause, kind):
                return fault(describe(cause), code=code)
    return by_client


def _message(response: LLMResult) -> AIMessage | None:
    for generations in response.generations:
        for generation in generations:
            message = getattr(generation, "message", None)
            if isinstance(message, AIMessage):
                return message
    return None


def _model(response: LLMResult, message: AIMessage | None) -> str | None:
    told = (message.response_metadata if message else {}) or {}
    name = told.get("model_name") or told.get("model") or (response.llm_output or {}).get("model_name")
    return str(name) if name else None


def _usage(response: LLMResult, message: AIMessage | None) -> Usage | None:
    if message is not None:
        told = message.usage_metadata
        if not told:
            return None
        return Usage(
            told["input_tokens"],
            told.get("input_token_details", {}).get("cache_read") or 0,
            told["output_tokens"],
            told.get("output_token_details", {}).get("reasoning") or 0,
        )
    tokens = (response.llm_output or {}).get("token_usage")
    return Usage(tokens["prompt_tokens"], 0, tokens["completion_tokens"], 0) if tokens else None
