"""Rows of results as the reference harness writes them (``tb infer``), read as records of attempts.

A row is one trial: its messages, what the test said, the tokens of each of the agent's model requests, or the error that
kept it from a verdict. Errors of decoding, of the judge and of the test's code are nobody's failed trial here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from tbadapters.core.cost import Prices, cost_of
from tbadapters.core.grading import Verdict
from tbadapters.core.judge import Judgement
from tbadapters.core.messages import Entry, ModelRequest, Usage
from tbadapters.core.records import AttemptRecord, FaultRecord
from tbadapters.core.tools import ToolCall, ToolResult
from tbadapters.suites.thinkingbox.replaying import says_error

ENDS = {
    "done": "agent_ended",
    "end_turn_tool": "end_turn_tool",
    "user_limit": "max_user_replies",
    "user_done": "settled",
    "no_user_llm": "max_user_replies",
    "agent_error": "agent_error",
}
"""How the reference says why a conversation ended -> how we do; any other of its reasons is kept."""
_LINE = 500  # characters of an error that are kept
_PROXY = "mcp_proxy_client.py"
_UNKNOWN = "Error: function "  # what the reference answers to a call of a tool that does not exist


class _Message(BaseModel):
    """Something said, calls, or a tool's answer: whichever ``T`` says."""

    T: str = "Text"
    metadata: dict[str, Any] = {}
    role: str | None = None
    content: str | None = None
    name: str | None = None
    id: str | None = None
    arguments: dict[str, Any] = {}
    tool_calls: list[_Message] = []


class _Details(BaseModel):
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class _Usage(BaseModel):
    input_tokens: int = 0
    input_tokens_details: _Details = _Details()
    output_tokens: int = 0
    output_tokens_details: _Details = _Details()

    def usage(self) -> Usage:
        return Usage(
            self.input_tokens,
            self.input_tokens_details.cached_tokens,
            self.output_tokens,
            self.output_tokens_details.reasoning_tokens,
        )


class _TestResult(BaseModel):
    result: bool
    reward: float = Field(ge=0, le=1)
    is_system_error: bool = False
    tb: str = ""
    lineno: int = -1
    line_content: str = ""
    metadata: dict[str, Any] = {}


class Row(BaseModel):
    """One row."""

    uid: str
    messages: list[_Message] = []
    test_result: _TestResult | None = None
    usage: list[_Usage] | None = None
    metadata: dict[str, Any] = {}
    is_system_error: bool = False
    finish_reason: str = "done"

    @property
    def repetition(self) -> int | None:
        """Which repetition of its test it is, from 0, where the row says so."""
        number = self.metadata.get("repetition")
        return number if isinstance(number, int) else None


@dataclass(frozen=True, slots=True)
class Trial:
    """Which trial a row is, and what its model is called and costs."""

    task: str
    index: int
    model: str
    prices: Prices


def record_of(row: Row, trial: Trial) -> AttemptRecord:
    """Return a row as the record of a trial's one attempt."""
    calls = _calls(row.messages)
    fault = _fault(row)
    requests = tuple(ModelRequest(trial.model, one.usage()) for one in row.usage or ())
    return AttemptRecord(
        task=trial.task,
        index=trial.index,
        attempt=0,
        end_reason="fault" if fault else ENDS.get(row.finish_reason, row.finish_reason),
        verdict=None if fault or row.test_result is None else _verdict(row.test_result),
        fault=fault,
        transcript=(*_transcript(row.messages, calls), *_judgements(row.test_result)),
        tool_calls=tuple(calls.values()),
        requests=requests,
        cost=cost_of(requests, trial.prices),
        seconds=_seconds(row.metadata),
    )


def _fault(row: Row) -> FaultRecord | None:
    """Return what kept a row from a verdict, with its owner, or None."""
    result = row.test_result
    if row.is_system_error:
        error = row.metadata.get("error")
        error = error if isinstance(error, Mapping) else {}
        text = f"{error.get('type', 'Error')}: {error.get('message', 'no message')}"
        owner = _owner(str(error.get("message", "")), str(error.get("tb", "")))
        return FaultRecord(owner, "decoding", _one_line(text))
    if result is None:
        return FaultRecord("grader", "not_graded", "The test was not executed (tb infer --no-test).")
    if result.is_system_error:
        owner = "judge" if "JudgeException" in result.tb else "grader"
        return FaultRecord(owner, "test_error", _one_line(result.tb.strip().rpartition("\n")[2]))
    return None


def _owner(message: str, trace: str) -> str:
    """Return whose fault an error of decoding is, as far as the reference's own words and the traceback tell.

    While it decodes a turn it asks the agent's model, and calls tools through its proxy.
    """
    if message.startswith("Error during user LLM simulation"):
        return "user"
    if _PROXY in trace:
        return "sandbox"
    if message.startswith("Error during decoding turn"):
        return "provider"
    return "harness"


def _verdict(result: _TestResult) -> Verdict:
    if result.result:
        return Verdict(True, result.reward)
    said = next((line for line in reversed(result.tb.splitlines()) if line.startswith("AssertionError")), "")
    place = f" (line {result.lineno})" if result.lineno > 0 else ""
    what = said.partition(":")[2].strip() or result.line_content.strip() or "an assertion does not hold"
    return Verdict(False, result.reward, reasons=(f"The test failed{place}: {_one_line(what)}",))


def _calls(messages: Iterable[_Message]) -> dict[str, ToolCall]:
    """Return the calls by their id, each with its answer."""
    messages = list(messages)
    answers = {one.id: one.content or "" for one in messages if one.T == "ToolResponse"}
    found: dict[str, ToolCall] = {}
    for call in _each_call(messages):
        key = call.id or f"call {len(found)}"
        found[key] = ToolCall(len(found), call.name or "", call.arguments, _result(call, answers.get(call.id, "")))
    return found


def _each_call(messages: Iterable[_Message]) -> Iterator[_Message]:
    for message in messages:
        if message.T == "ToolCall":
            yield message
        elif message.T == "ParallelToolCall":
            yield from message.tool_calls


def _result(call: _Message, text: str) -> ToolResult:
    """Return what came of a call. The reference drops whether it was an error: the servers' own form of one tells."""
    refused = bool(call.metadata.get("error"))
    if refused or call.metadata.get("is_end_turn_tool"):
        return ToolResult(text, is_error=refused)
    return ToolResult(text, is_error=says_error(text) or text.startswith(_UNKNOWN), changes=None)


def _transcript(messages: Iterable[_Message], calls: Mapping[str, ToolCall]) -> Iterator[Entry]:
    kinds = {"user": "user", "assistant": "agent"}
    for message in messages:
        if message.T == "Text" and message.role in kinds and not _is_hidden(message):
            yield Entry("user" if message.role == "user" else "agent", message.content or "")
        for call in _each_call([message]):
            made = calls.get(call.id or "")
            if made is not None:
                yield Entry("tool_call", made.name, {"index": made.index})


def _is_hidden(message: _Message) -> bool:
    return message.metadata.get("tag") == "think" or bool(message.metadata.get("is_dummy"))


def _judgements(result: _TestResult | None) -> Iterator[Entry]:
    told = result.metadata.get("judge_motivation") if result else None
    for one in told if isinstance(told, list) else ():
        if isinstance(one, Mapping) and "question" in one:
            answer = bool(one.get("answer"))
            made = Judgement(str(one["question"]), answer, (answer,), (str(one.get("motivation", "")),))
            yield Entry("judgement", str(made), made.to_dict())


def _seconds(metadata: Mapping[str, Any]) -> dict[str, float]:
    names = {"time_agent_user_loop": "agent", "time_test": "grading", "execution_time": "total"}
    return {ours: float(metadata[name]) for name, ours in names.items() if isinstance(metadata.get(name), int | float)}


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LINE]
