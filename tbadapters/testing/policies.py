"""A scripted model that plays a suite's tasks: right, or with one flaw, as seeded outcomes say."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from tbadapters.core.conversation import DONE
from tbadapters.core.errors import UnknownName
from tbadapters.core.grading import GoldenAction
from tbadapters.core.suite import Suite, Task
from tbadapters.testing.flawed import Flaws
from tbadapters.testing.outcomes import Outcomes
from tbadapters.testing.position import (
    Position,
    answers_to,
    next_step,
    read_position,
    write_brief,
    write_report,
)
from tbadapters.testing.scripts import Injected, Script, golden_script, refers_to
from tbadapters.testing.turns import Call, ModelTurn, OfferedTool, Reply

NO_TOOL = "I'm not able to do this: I have no tool for it."
_TRANSFERS = ("transfer_to_", "transfer_back_to_", "handoff_to_", "hand_off_to_")


class GoldenPolicy:
    """Plays each trial's script: asks the user for what only the user knows, makes the golden calls, claims the end.

    Where a conversation stands is read from its messages alone. Which trial it is says the request's header, or, for
    an agent in another process, the opening that the conversation holds; trials are then counted in the order in
    which they come to their first call, and a sub-agent that is called as a tool is not told from its caller.

    It plays agents of any make: one that has the suite's tools; one that hands over by ``transfer_to_...`` tools; one
    that calls specialists as tools (each takes the request as its one required text, and has some of the suite's
    tools itself).

    Args:
        suite: Whose tasks it plays.
        outcomes: Which trials it passes, and how it fails the others; None: it passes all.
        parallel: Whether reading calls that do not need one another are made at once.
    """

    def __init__(self, suite: Suite, *, outcomes: Outcomes | None = None, parallel: bool = True) -> None:
        self.suite = suite
        self.outcomes = outcomes or Outcomes(pass_rate=1.0)
        self._parallel = parallel
        self._flaws = Flaws(suite, self.outcomes)
        self._tools = {tool.name: tool for tool in suite.every_tool}
        self._tasks = {task.id: task for task in suite.tasks}
        self._openings = {task.opening.strip(): task for task in suite.tasks}
        self._golden: dict[str, Script] = {}
        self._scripts: dict[tuple[str, int], Script] = {}
        self._arrived: Counter[str] = Counter()
        self._lock = threading.Lock()

    def script(self, task_id: str, index: int) -> Script:
        """Return what it does in a trial.

        Raises:
            UnknownName: the suite has no such task.
        """
        task = self._task_of(task_id)
        with self._lock:
            script = self._scripts.get((task.id, index))
            if script is None:
                script = self._flaws.script(task, index)
                self._scripts[task.id, index] = script
            return script

    def injected(self, task_id: str, index: int) -> Injected:
        """Return what it does wrong in a trial.

        Raises:
            UnknownName: the suite has no such task.
        """
        return self.script(task_id, index).injected

    def respond(self, request: ModelTurn) -> Reply:
        """Return the answer to one request.

        Raises:
            UnknownName: the request belongs to no task of the suite.
        """
        task = self._identify(request)
        position = read_position(request, self._tools.keys())
        golden = self._golden_of(task)
        if not request.offered & self._tools.keys():
            return self._coordinate(request, task, position, golden)
        question = _open_question(golden, position)
        if question:
            return Reply(text=question)
        index = self._index(request, task, position)
        return self._play(request, task, position, self.script(task.id, index), index)

    def _play(self, request: ModelTurn, task: Task, position: Position, script: Script, index: int) -> Reply:
        """Make the next calls, or hand over, or end."""
        following = script.step(len(position.done))
        if following is None:
            return Reply(text=write_report(position.done, None) if position.briefed else self._last(task, script))
        if following.tool not in request.offered:
            return self._pass_on(request, task, position, script, following.tool)
        steps = list(self._together(request, script, len(position.done)))
        calls = [
            Call(step.tool, script.arguments(step, position.done), f"call_{index}x{position.calls_made}_{place}")
            for place, step in enumerate(steps)
        ]
        return Reply(tool_calls=calls)

    def _last(self, task: Task, script: Script) -> str:
        """Return the closing claim, marked as the last message where the conversation's protocol asks for that."""
        marked = self.suite.part_of(task).conversation == "thinkingbox"
        return f"{script.final} {DONE}" if marked else script.final

    def _together(self, request: ModelTurn, script: Script, first: int) -> Iterator[GoldenAction]:
        """Yield the next step, and the reading steps after it that can be made at the same time."""
        step = script.step(first)
        if step is None:
            return
        yield step
        if script.loops or not self._parallel or not request.parallel or not self._reads(step):
            return
        for place, other in enumerate(takewhile(self._reads, script.steps[first + 1 :]), start=first + 1):
            if other.tool not in request.offered or refers_to(other, range(first, place)):
                return
            yield other

    def _reads(self, step: GoldenAction) -> bool:
        return step.tool in self._tools and self._tools[step.tool].writes is False

    def _coordinate(self, request: ModelTurn, task: Task, position: Position, golden: Script) -> Reply:
        """Answer for an agent without tools of the suite: hand over, or ask the user and call the specialists."""
        if not golden.steps or self._reported(request, position):
            return Reply(text=_open_question(golden, position) or self._last(task, golden))
        wanted = next_step(position.report) or golden.steps[min(len(position.done), len(golden.steps) - 1)].tool
        return self._pass_on(request, task, position, golden, wanted)

    @staticmethod
    def _reported(request: ModelTurn, position: Position) -> bool:
        """Whether the last specialist has answered, and names no further step."""
        specialists = {tool.name for tool in request.tools if _request_argument(tool)}
        called = bool(position.delegations) and position.delegations[-1] in specialists
        return called and position.report is not None and next_step(position.report) is None

    def _pass_on(self, request: ModelTurn, task: Task, position: Position, script: Script, wanted: str) -> Reply:
        """Call whoever fits a tool that is not on offer: a transfer, else a specialist; else say that it can't go on."""
        transfers = [tool for tool in request.tools if tool.name.startswith(_TRANSFERS)]
        specialists = [tool for tool in request.tools if tool not in transfers and _request_argument(tool)]
        if transfers:
            chosen = self._fittest(transfers, position, wanted)
            return Reply(tool_calls=[Call(chosen.name, _filled(chosen, task.opening))])
        specialists = [tool for tool in specialists if tool.name not in self._tools]
        if not specialists:
            return Reply(text=write_report(position.done, wanted) if position.briefed else NO_TOOL)
        question = _open_question(script, position)
        if question:
            return Reply(text=question)
        chosen = self._fittest(specialists, position, wanted)
        brief = write_brief(task.opening, answers_to(request.messages, script.questions), position.done)
        return Reply(tool_calls=[Call(chosen.name, {_request_argument(chosen) or "input": brief})])

    def _fittest(self, tools: Sequence[OfferedTool], position: Position, wanted: str) -> OfferedTool:
        """Return the tool that was tried least since the last step, and of these the one whose words fit best."""
        tried = Counter(position.delegations)
        words = _words(wanted)

        def rank(tool: OfferedTool) -> tuple[int, int]:
            fit = 2 * len(words & _words(tool.name)) + len(words & _words(tool.description))
            return tried[tool.name], -fit

        return min(tools, key=rank)

    def _identify(self, request: ModelTurn) -> Task:
        if request.trial is not None:
            return self._task_of(request.trial.task)
        texts = [message.text for message in request.messages if message.role == "user"]
        for text in texts:
            if text.strip() in self._openings:
                return self._openings[text.strip()]
        for opening, task in self._openings.items():
            if any(opening in text for text in texts):
                return task
        raise UnknownName("task with the opening", texts[0] if texts else "", self._openings)

    def _index(self, request: ModelTurn, task: Task, position: Position) -> int:
        if request.trial is not None:
            return request.trial.index
        if position.trial_index is not None:
            return position.trial_index
        with self._lock:
            index = self._arrived[task.id]
            self._arrived[task.id] += 1
        return index

    def _golden_of(self, task: Task) -> Script:
        if task.id not in self._golden:
            self._golden[task.id] = golden_script(task)
        return self._golden[task.id]

    def _task_of(self, task_id: str) -> Task:
        try:
            return self._tasks[task_id]
        except KeyError:
            raise UnknownName("task", task_id, self._tasks) from None


def _open_question(script: Script, position: Position) -> str | None:
    return next((question for question in script.questions if not position.said(question)), None)


def _request_argument(tool: OfferedTool) -> str | None:
    """Return the argument by which a specialist takes its request: the one required text; None: it is no specialist."""
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", [])
    texts = [name for name in required if properties.get(name, {}).get("type") == "string"]
    return texts[0] if len(required) == len(texts) == 1 else None


def _filled(tool: OfferedTool, text: str) -> dict[str, Any]:
    properties = tool.parameters.get("properties", {})
    return {n: text for n in tool.parameters.get("required", []) if properties.get(n, {}).get("type") == "string"}


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in text.lower().replace("_", " ").replace(".", " ").replace(",", " ").split()}
