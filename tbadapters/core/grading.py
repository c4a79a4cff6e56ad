"""What a task expects, and what the grader says of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tbadapters.core.judge import Judge, NoJudge
from tbadapters.core.messages import Entry, Message
from tbadapters.core.state import Effect, State
from tbadapters.core.tools import Change, ToolCall


@dataclass(frozen=True, slots=True)
class Ref:
    """In a golden action's arguments: a value out of the result of an earlier golden action.

    ``Ref(0, "ticket_id")`` is the field ``ticket_id`` of what action 0 returned.
    """

    action: int
    path: str


@dataclass(frozen=True, slots=True)
class GoldenAction:
    """One tool call that leads to an expected end state. Argument values may be ``Ref``s."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EndState:
    """One allowed outcome: golden actions executed on the clean backend, then declared rows laid over it.

    Attributes:
        name: What happened, in a few words (``refunded``, ``escalated``).
        actions: Golden actions in an order that works.
        rows: table -> key -> columns that must have these values (None as a row: must not exist).
    """

    name: str
    actions: tuple[GoldenAction, ...] = ()
    rows: Mapping[str, Mapping[str, Mapping[str, Any] | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy decides in a task, derived from its records and the user's facts, never from its golden actions.

    It is complete: a graded field that is not named here must stay as it was.

    Attributes:
        end_state: Name of the end state that is right.
        rows: table -> key -> columns that change, with their new values (None as a row: it is deleted).
        created: Rows that come to be, as (table, columns that they must have); ids are left out.
    """

    end_state: str
    rows: Mapping[str, Mapping[str, Mapping[str, Any] | None]] = field(default_factory=dict)
    created: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class RequiredFact:
    """Something that the agent must have told the user, by deterministic match in any of its answers.

    Attributes:
        name: What the fact is.
        any_of: Texts of which one must occur (white space, case and markup folded; numbers match as numbers: 1,250.00,
            1.250,00 and 1250 are the same, -1250 and 1250% are others).
    """

    name: str
    any_of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What makes a trial pass: one of the end states, and every required fact."""

    end_states: tuple[EndState, ...]
    required_facts: tuple[RequiredFact, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an attempt left behind, for the grader.

    Attributes:
        initial: The records before the agent touched them.
        final: The records that it left.
        tool_calls: The executed tool calls.
        messages: What user and agent said to each other.
        judge: Whom to ask yes/no questions about what was said: ``await evidence.judge.ask(text, question)``.
        transcript: What happened, in order: messages and tool calls as they followed each other.
    """

    initial: State
    final: State
    tool_calls: tuple[ToolCall, ...]
    messages: tuple[Message, ...]
    judge: Judge = field(default_factory=NoJudge)
    transcript: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the grader says of one trial.

    Attributes:
        passed: True, False, or None where no verdict could be reached (never a fail, never a pass).
        reward: 1.0 for a pass unless the suite says otherwise; None without a verdict.
        effects: How the final state differs from the nearest allowed end state; empty for a pass.
        reasons: Plain sentences: what failed, a required fact that was not said.
        end_state: The name of the nearest allowed end state.
        changes: What each tool call changed, by its index, where the sandbox can't tell and the grader found it out; it
            is kept with the calls.
        errors: Indices of calls whose answer says that the call failed where the sandbox could not tell; kept alike.
    """

    passed: bool | None
    reward: float | None
    effects: tuple[Effect, ...] = ()
    reasons: tuple[str, ...] = ()
    end_state: str | None = None
    changes: Mapping[int, tuple[Change, ...]] = field(default_factory=dict)
    errors: frozenset[int] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON-like data."""
        return {
            "passed": self.passed,
            "reward": self.reward,
            "effects": [e.to_dict() for e in self.effects],
            "reasons": list(self.reasons),
            "end_state": self.end_state,
        }


class Grader(Protocol):
    """Grades what an attempt left behind."""

    async def grade(self, evidence: Evidence) -> Verdict:
        """Return the verdict.

        Raises:
            GraderFault: no verdict can be reached (a golden action errors, a test function fails to run).
            JudgeFault: the judge that it asked could not decide.
        """
        ...
