"""One attempt's conversation with a graph: a thread of its own, turn by turn.

Imports LangChain and LangGraph at the top: ``langgraph.py`` imports this module only when a graph is at hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.channels import LastValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.pregel import Pregel
from langsmith.run_helpers import get_tracing_context, tracing_context

from tbadapters.adapters.langgraph_approvals import PendingApprovals, denied, stopped_before
from tbadapters.adapters.langgraph_parts import graphs_in
from tbadapters.adapters.langgraph_tools import ROOT, PlayedTurn, played_turn
from tbadapters.adapters.langgraph_watch import Watch
from tbadapters.core.agent import Approvals, Ended, NeedsApproval, Recorder, Said, TaskBrief
from tbadapters.core.errors import AgentFault
from tbadapters.core.messages import Message

_STEPS = 10_000  # above any limit of ours: a trial's requests and tool calls are counted by the core
_MESSAGE_OF: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "agent": AIMessage}


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What ``LangGraphAgent`` was told; see there."""

    input: Callable[[str, TaskBrief], Any] | None
    output: Callable[[Any], str] | None
    config: Mapping[str, Any]
    context: Any
    tracing: bool


class GraphSession:
    """One attempt's thread of a graph."""

    def __init__(
        self, graph: Pregel[Any, Any, Any, Any], options: SessionOptions, brief: TaskBrief, recorder: Recorder
    ) -> None:
        self._options, self._brief = options, brief
        self._played = PlayedTurn()
        self._watch = Watch(recorder, None if options.input else brief.instructions, self._played.blocking)
        self._graph = _with_memory(graph, recorder)
        self._config = _config(options.config, brief, self._watch, graph.name)
        self._stops = any(part.interrupt_before_nodes or part.interrupt_after_nodes for part in graphs_in(graph))
        self._overwrites = isinstance(graph.channels.get("messages"), LastValue)
        self._messages = _opening(brief)  # to be sent before the next user message
        self._pending = PendingApprovals()

    async def send(self, turn: Message | Approvals) -> Said | NeedsApproval | Ended:
        """See ``AgentSession.send``."""
        token = played_turn.set(self._played)
        try:
            with _tracing(on=self._options.tracing):
                answer = await self._answer(turn)
        except Exception as error:
            raise self._watch.stop or self._watch.fault_of(error) from error
        finally:
            played_turn.reset(token)
        if self._watch.stop is not None:  # the author's code swallowed it
            raise self._watch.stop
        return answer

    async def _answer(self, turn: Message | Approvals) -> Said | NeedsApproval:
        given = self._turn(turn.text) if isinstance(turn, Message) else await self._resumption(turn)
        state: Any = await self._graph.ainvoke(given, self._config, context=self._options.context)
        if isinstance(state, dict) and state.get("__interrupt__"):
            self._pending.interrupts = tuple(state["__interrupt__"])
            return NeedsApproval(self._pending.requests())
        if self._stops and (stopped := stopped_before(await self._graph.aget_state(self._config))):
            return NeedsApproval(stopped)
        if self._overwrites:
            self._messages = list(state["messages"])
        if self._options.output is None:
            return Said(_text(state))
        answer: object = self._options.output(state)
        if not isinstance(answer, str):
            kind = type(answer).__name__
            raise AgentFault(f"output= returned {kind} where the answer to the user, a str, was due.", code="no_answer")
        return Said(answer)

    def _turn(self, text: str) -> Any:
        self._pending = PendingApprovals()
        self._played.resuming = False
        self._played.results.clear()
        if self._options.input is not None:
            return self._options.input(text, self._brief)
        before, self._messages = self._messages, []
        return {"messages": [*before, HumanMessage(text)]}

    async def _resumption(self, turn: Approvals) -> Any:
        self._played.resuming = True
        if self._pending.interrupts:
            return self._pending.resumed(turn.decisions)
        if all(turn.decisions.values()):
            return None  # goes on from where it stopped
        snapshot = await self._graph.aget_state(self._config)
        messages = denied(snapshot)
        if not messages:
            raise AgentFault(f"The user did not agree to {', '.join(snapshot.next)}.", code="denied")
        await self._graph.aupdate_state(self._config, {"messages": messages}, as_node=snapshot.next[0])
        return None


def _config(author: Mapping[str, Any], brief: TaskBrief, watch: Watch, root: str | None) -> RunnableConfig:
    own: RunnableConfig = {
        "configurable": {"thread_id": brief.id},
        "callbacks": [watch],
        "metadata": {ROOT: root},
    }
    merged = merge_configs(RunnableConfig(**author), own)  # type: ignore[typeddict-item]  # the author's keys are checked by LangGraph
    merged["recursion_limit"] = author.get("recursion_limit", _STEPS)
    return merged


def _opening(brief: TaskBrief) -> list[BaseMessage]:
    policy = [SystemMessage(brief.instructions)] if brief.instructions else []
    return [*policy, *(_MESSAGE_OF[message.role](message.text) for message in brief.history)]


def _text(state: Any) -> str:
    messages = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    last = next((m for m in reversed(messages or ()) if isinstance(m, AIMessage)), None)
    if last is None:
        raise AgentFault("The graph answered with no AIMessage in its 'messages'.", code="no_answer")
    text = str(last.text) or str(last.additional_kwargs.get("refusal") or "")
    structured = state.get("structured_response") if isinstance(state, dict) else None
    if text or structured is None:
        return text
    return str(structured.model_dump_json()) if hasattr(structured, "model_dump_json") else json.dumps(structured)


def _tracing(*, on: bool) -> AbstractContextManager[None]:
    """Switch LangSmith off, unless the author switched it on for trials or in an enclosing ``tracing_context``."""
    if on or get_tracing_context()["enabled"]:
        return nullcontext()
    return tracing_context(enabled=False)


def _with_memory(graph: Pregel[Any, Any, Any, Any], recorder: Recorder) -> Pregel[Any, Any, Any, Any]:
    """Return the graph with a checkpointer: its author's where it works here, else one that ends with the attempt."""
    if graph.store is not None or graph.cache is not None:
        recorder.note("The graph has a store or a cache, which the trials share: factory(make) builds one for each.")
    own = graph.checkpointer
    if isinstance(own, BaseCheckpointSaver):
        if type(own).aput is not BaseCheckpointSaver.aput:
            return graph
        recorder.note(f"The graph's {type(own).__name__} is sync only: the trial keeps its thread in memory instead.")
    return graph.copy(update={"checkpointer": InMemorySaver(serde=_KeepingSerializer())})


class _KeepingSerializer(JsonPlusSerializer):
    """Keeps by reference what can't be serialized (a client, a lock in the state) instead of failing."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[Any] = []

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return an object as bytes, or as the number under which it is kept."""
        try:
            return super().dumps_typed(obj)
        except Exception:  # noqa: BLE001  # whatever a type's own serialization raises
            self._kept.append(obj)
            return "kept", str(len(self._kept) - 1).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the object."""
        kind, content = data
        return self._kept[int(content)] if kind == "kept" else super().loads_typed(data)
