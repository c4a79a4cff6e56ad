"""A session with a PydanticAI agent: the suite's tools, a meter on every model, an owner for every error.

Imports PydanticAI, so import it only where an agent of it is at hand.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import DeferredToolResults, RunContext, ToolFailed, UsageLimits, exceptions
from pydantic_ai import Tool as FrameworkTool
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.capabilities import AbstractCapability, ReinjectSystemPrompt
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, ToolApproved, ToolDenied
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.toolsets.abstract import AGENT_TOOLSET_ID
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_core import SchemaValidator, core_schema, to_json

from tbadapters.adapters._shared import agent_fault, http_fault
from tbadapters.core.agent import ApprovalRequest, Approvals, NeedsApproval, Recorder, Said
from tbadapters.core.errors import AccessFault, AgentFault, Fault, ProviderFault, describe
from tbadapters.core.messages import Message, Usage
from tbadapters.core.tools import Tool

# Arguments must be an object; whether they fit the schema is judged where the tool is executed, the same for every
# framework, and answered in words.
OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))

# The agent whose session runs here, so that a tool can tell it from a sub-agent.
root: ContextVar[object | None] = ContextVar("tbadapters_pydantic_ai_root", default=None)


class SuiteTool(FrameworkTool[Any]):
    """A suite's tool as PydanticAI's own; its class is how an agent's suite tools are told from its author's."""

    suite_name: str


def suite_tool(tool: Tool, *, can_ask: bool = True) -> SuiteTool:
    """Return ``tool`` for PydanticAI.

    Args:
        tool: Bound to an attempt, or bound by context where it is called.
        can_ask: Whether its agent can end a run with a request for approval. One that can't is told so in words.
    """

    async def call(ctx: RunContext[Any], /, **arguments: Any) -> str:
        if tool.needs_approval and not can_ask:
            raise ToolFailed(f"{tool.name} needs a person's approval, which this sub-agent can't ask for.")
        result = await tool.call(arguments, actor=_actor(ctx))
        if result.is_error:
            raise ToolFailed(result.text)
        return result.text

    made = SuiteTool.from_schema(call, tool.name, tool.description, deepcopy(dict(tool.parameters)), takes_ctx=True)
    made.suite_name = tool.name
    made.function_schema.validator = OBJECT
    made.requires_approval = tool.needs_approval and can_ask
    made.strict = False  # strict mode would rewrite the schema
    return made


def suite_toolset(
    tools: Sequence[Tool], instructions: str | None = None, *, can_ask: bool = True
) -> FunctionToolset[Any]:
    """Return tools of the suite as one toolset, which tells its agent ``instructions``."""
    return FunctionToolset([suite_tool(tool, can_ask=can_ask) for tool in tools], instructions=instructions)


def _actor(ctx: RunContext[Any]) -> str | None:
    top = root.get()
    return None if top is None or ctx.agent is None or ctx.agent is top else actor_name(ctx.agent)


def actor_name(agent: AbstractAgent[Any, Any]) -> str:
    """Return the name under which a sub-agent's requests and tool calls are recorded."""
    return agent.name or "sub-agent"


def unwrapped(agent: AbstractAgent[Any, Any]) -> AbstractAgent[Any, Any]:
    """Return the agent that runs inside any ``WrapperAgent``."""
    while isinstance(agent, WrapperAgent):
        agent = agent.wrapped
    return agent


def can_ask(agent: AbstractAgent[Any, Any]) -> bool:
    """Whether a run of the agent may end in ``DeferredToolRequests``."""
    return DeferredToolRequests in output_types(agent)


def output_types(agent: AbstractAgent[Any, Any]) -> list[Any]:
    """Return the agent's output types as a list."""
    spec: Any = agent.output_type
    return list(spec) if isinstance(spec, (list, tuple)) else [spec]


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


@dataclass
class Belongings:
    """The tools that an agent's author gave it.

    Attributes:
        suite: Names of those that are a suite's.
        tools: Those of the author's function tools that are to stay.
        toolsets: Other toolsets that are to stay.
        native: Tools of the provider that are to stay.
        foreign: Names of the author's tools of which nobody said that they are to stay.
        own_toolsets: All toolsets but the one of the agent's function tools, as the author nested them.
    """

    suite: list[str] = field(default_factory=list)
    tools: list[FrameworkTool[Any]] = field(default_factory=list)
    toolsets: list[Any] = field(default_factory=list)
    native: list[Any] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    own_toolsets: list[Any] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether the agent brings no tool at all."""
        return not (self.suite or self.tools or self.toolsets or self.foreign)


def belongings(agent: AbstractAgent[Any, Any], keep: tuple[str, ...]) -> Belongings:
    """Look through all toolsets of an agent, nested ones too, and its provider's tools."""
    found, leaves = Belongings(), list[Any]()
    for toolset in agent.toolsets:
        toolset.apply(leaves.append)
        if toolset.id != AGENT_TOOLSET_ID:
            found.own_toolsets.append(toolset)
    for leaf in leaves:
        if not isinstance(leaf, FunctionToolset):
            _sort(leaf, leaf.id or leaf.label, keep, found.toolsets, found.foreign)
            continue
        for tool in leaf.tools.values():
            if isinstance(tool, SuiteTool):
                found.suite.append(tool.suite_name)
            else:
                _sort(tool, tool.name, keep, found.tools, found.foreign)
    for native in agent.root_capability.get_native_tools():
        name = str(getattr(native, "kind", None) or getattr(native, "__name__", "native tool"))
        # PydanticAI adds the search among deferred tools to every agent.
        _sort(native, name, (*keep, "tool_search"), found.native, found.foreign)
    return found


def _sort(item: Any, name: str, keep: tuple[str, ...], kept: list[Any], foreign: list[str]) -> None:
    if name in keep:
        kept.append(item)
    else:
        foreign.append(name)


def history(messages: Sequence[Message]) -> list[ModelMessage]:
    """Return what user and agent said before the trial as PydanticAI's messages."""
    return [
        ModelResponse([TextPart(m.text)]) if m.role == "agent" else ModelRequest([UserPromptPart(m.text)])
        for m in messages
        if m.role != "system"
    ]


def agents_used_by(tool: FrameworkTool[Any]) -> list[AbstractAgent[Any, Any]]:
    """Return the agents that a tool's function can be seen to use (its globals and closure)."""
    try:
        seen = inspect.getclosurevars(inspect.unwrap(tool.function))
    except TypeError:  # no plain function
        return []
    return [v for v in {**seen.globals, **seen.nonlocals}.values() if isinstance(v, AbstractAgent)]


@dataclass
class Session:
    """One attempt's conversation: each turn is a run that goes on from the messages of the last one."""

    agent: AbstractAgent[Any, Any]
    model_settings: ModelSettings | None
    deps: Any
    instructions: str | None
    output_type: Any
    overrides: list[tuple[AbstractAgent[Any, Any], dict[str, Any]]]
    meter: Meter
    messages: list[Any]
    capabilities: list[Any] = field(default_factory=list)
    waiting: tuple[str, ...] = ()
    uncounted: int = 0
    usage: RunUsage = field(default_factory=RunUsage)

    def __post_init__(self) -> None:
        # A history that does not begin with the agent's own run lacks its system prompt.
        self.capabilities = [self.meter, *([ReinjectSystemPrompt()] if self.messages else [])]

    async def send(self, turn: Message | Approvals) -> Said | NeedsApproval:
        """Run the agent on one turn of the user."""
        try:
            with self._overridden():
                result = await self._run(turn)
        except Exception as error:
            fault = fault_of(error)
            if fault is error:
                raise
            raise fault from error
        self.messages, self.waiting = result.all_messages(), ()
        self._note_uncounted()
        output = result.output
        if not isinstance(output, DeferredToolRequests):
            return Said(_text(output))
        if output.calls:
            names = ", ".join(call.tool_name for call in output.calls)
            raise AgentFault(f"The agent waits for results from outside that nobody gives: {names}.")
        self.waiting = tuple(call.tool_call_id for call in output.approvals)
        return NeedsApproval(
            tuple(ApprovalRequest(call.tool_call_id, call.tool_name, call.args_as_dict()) for call in output.approvals)
        )

    @contextmanager
    def _overridden(self) -> Iterator[None]:
        token = root.set(unwrapped(self.agent))
        try:
            with ExitStack() as stack:
                for agent, changes in self.overrides:
                    stack.enter_context(agent.override(**changes))
                yield
        finally:
            root.reset(token)

    async def _run(self, turn: Message | Approvals) -> Any:
        # What is not agreed to is declined.
        answers: dict[str, bool | ToolApproved | ToolDenied] = dict.fromkeys(self.waiting, False)
        if isinstance(turn, Approvals):
            answers |= turn.decisions
        return await self.agent.run(
            turn.text if isinstance(turn, Message) else None,
            message_history=self.messages,
            deferred_tool_results=DeferredToolResults(approvals=answers) if answers else None,
            instructions=self.instructions,
            deps=self.deps,
            model_settings=self.model_settings,
            output_type=self.output_type,
            usage=self.usage,
            usage_limits=UsageLimits(request_limit=None),
            infer_name=False,
            capabilities=self.capabilities,
        )

    def _note_uncounted(self) -> None:
        """Say it when agents that nobody named share the run's usage: their requests were not recorded."""
        missed = self.usage.requests - self.meter.answered
        if missed > self.uncounted and self.meter.recorder:
            self.uncounted = missed
            self.meter.recorder.note(
                f"{missed} model requests were made by agents that are not named in subagents=; "
                "their tokens are not counted."
            )


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "" if output is None else to_json(output, fallback=str).decode()


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
    if isinstance(error, exceptions.ModelHTTPError):
        return http_fault(error.status_code, describe(error), headers=error.headers)
    return agent_fault(error)
