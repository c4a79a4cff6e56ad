"""A meter on every model of a PydanticAI agent, and an owner for every error of one.

Imports PydanticAI, so import it only where an agent of it is at hand.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext, exceptions
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from tbadapters.adapters._shared import agent_fault, http_fault
from tbadapters.core.agent import Recorder
from tbadapters.core.errors import AccessFault, AgentFault, Fault, ProviderFault, describe
from tbadapters.core.messages import Usage


@dataclass
class Meter(AbstractCapability[Any]):
    """Reports every model request of an attempt to its recorder.

    As a capability of the agent's own run it wraps whichever model serves a request; a sub-agent's model is wrapped
    by an override.
    """

    recorder: Recorder | None = None
    answered: int = field(default=0)

    def get_wrapper_model(self, model: Model) -> Model:
        """Wrap the model that is about to serve a request of the agent itself."""
        return MeteredModel(model, self, None)

    def starts(self, actor: str | None) -> None:
        """Say that a request is about to be made; the recorder raises where a limit is met."""
        if self.recorder:
            self.recorder.request_starts(actor)

    def ended(self, model: str, usage: RequestUsage, actor: str | None) -> None:
        """Record an answered request."""
        self.answered += 1
        if self.recorder:
            self.recorder.model_request(model, _tokens(usage), actor=actor)

    @contextmanager
    def failures(self, model: str, actor: str | None) -> Iterator[None]:
        """Record a request that fails in the block, where it fails: the agent may go on as if nothing had happened."""
        try:
            yield
        except Exception as error:
            if self.recorder:
                self.recorder.model_request(model, None, fault=fault_of(error), actor=actor)
            raise


class MeteredModel(WrapperModel):
    """A model whose requests are counted before they are made and recorded with their tokens when they end.

    A request that is cancelled is started and never ended: that is how the core sees that an endpoint stalled.
    """

    def __init__(self, wrapped: Model | str, meter: Meter, actor: str | None) -> None:
        super().__init__(wrapped)
        self.meter, self.actor = meter, actor

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make a request that is answered as a whole."""
        self.meter.starts(self.actor)
        with self.meter.failures(self.model_name, self.actor):
            response = await super().request(messages, model_settings, model_request_parameters)
        self.meter.ended(response.model_name or self.model_name, response.usage, self.actor)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Make a request that is answered as a stream; its tokens are known when it is closed."""
        self.meter.starts(self.actor)
        with self.meter.failures(self.model_name, self.actor):
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                yield stream
        self.meter.ended(stream.model_name or self.model_name, stream.usage, self.actor)


def _tokens(usage: RequestUsage) -> Usage | None:
    if not usage.has_values():
        return None
    reasoning = usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0)
    return Usage(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, reasoning)


# By PydanticAI's own categories, most specific first; they hold for every provider.
_OWNERS: tuple[tuple[type[Exception], type[Fault], str], ...] = (
    (exceptions.ModelQuotaExceededError, AccessFault, "insufficient_quota"),
    (exceptions.ModelContextWindowExceededError, AgentFault, "context_length_exceeded"),
    (exceptions.ModelAuthenticationError, AccessFault, "authentication"),
    (exceptions.ModelNotFoundError, AccessFault, "model_not_found"),
    (exceptions.ModelRateLimitError, ProviderFault, "rate_limit"),
    (exceptions.ModelServerError, ProviderFault, "server_error"),
    (exceptions.ModelUnavailableError, ProviderFault, "server_error"),
    (exceptions.ModelTimeoutError, ProviderFault, "timeout"),
    (exceptions.ModelRequestTimeout, ProviderFault, "timeout"),
    (exceptions.ModelConnectionError, ProviderFault, "connection"),
    (exceptions.ModelRequestRejectedError, AgentFault, "invalid_request"),
    (exceptions.ContentFilterError, AgentFault, "content_filter"),
    (exceptions.UnexpectedModelBehavior, AgentFault, "invalid_model_output"),
    (exceptions.UsageLimitExceeded, AgentFault, "agent_limit"),
)


def fault_of(error: Exception) -> Fault:
    """Return the fault for an error that escaped from a PydanticAI run or from a model's request.

    Raises:
        TbAdaptersError: an error of ours that is no fault passes as it is.
    """
    if isinstance(error, exceptions.FallbackExceptionGroup):
        faults = [fault_of(failed) for failed in error.exceptions]
        # All models of a fallback failed: another attempt can help if it can help one of them.
        return next((f for f in faults if type(f) is ProviderFault), faults[0])
    for kind, fault, code in _OWNERS:
        if isinstance(error, kind):
            return fault(describe(error), code=code, retry_after=getattr(error, "retry_after", None))
    if isinstance(error, exceptions.UserError | ImportError) and _raised_while_setting_up(error):
        return AccessFault(describe(error), code="client_setup")
    if isinstance(error, exceptions.ModelHTTPError):
        return http_fault(error.status_code, describe(error), headers=error.headers)
    return agent_fault(error)


def _raised_while_setting_up(error: Exception) -> bool:
    """Whether an error says that a model can't be reached at all: no key, no such name, no client installed.

    PydanticAI has no type of its own for it, but it is raised by a provider's own module, or by what looks models up.
    """
    innermost, trace = "", error.__traceback__
    while trace is not None:
        innermost, trace = str(trace.tb_frame.f_globals.get("__name__")), trace.tb_next
    return innermost == "pydantic_ai.models" or innermost.startswith("pydantic_ai.providers")
