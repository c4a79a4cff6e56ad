"""The doors: ``evaluate`` and ``compare``. What they do is told in ``campaign.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, Unpack

from tbadapters.campaign import Campaign, Folder, Tasks, User
from tbadapters.core.approvals import ApprovalPolicy
from tbadapters.core.comparison import Comparison
from tbadapters.core.cost import Price
from tbadapters.core.errors import UsageError
from tbadapters.core.event_loop import run_kept
from tbadapters.core.events import OnEvent
from tbadapters.core.limits import Limits, Retries
from tbadapters.core.options import check_agents
from tbadapters.core.result import RunResult
from tbadapters.core.tool_faults import ToolFaults
from tbadapters.suites import Suites


class Options(TypedDict, total=False):
    """The options of ``evaluate`` and ``compare``; ``evaluate`` says what each means."""

    tasks: Tasks
    trials: int
    concurrency: int | None
    limits: Limits
    retries: Retries
    user: User
    judge: object
    instructions: Literal["append", "none"]
    seed: int
    max_cost: float | None
    prices: Mapping[str, Price] | None
    coverage_floor: float | None
    out: Folder | None
    progress: Literal["auto", "on", "off"]
    approvals: ApprovalPolicy
    isolation: Literal["none", "process"]
    faults: ToolFaults | None
    on_event: OnEvent | None


async def evaluate(
    agent: object,
    *,
    suite: Suites,
    tasks: Tasks = None,
    trials: int = 20,
    concurrency: int | None = None,
    limits: Limits = Limits(),
    retries: Retries = Retries(),
    user: User = "scripted",
    judge: object = None,
    instructions: Literal["append", "none"] = "append",
    seed: int = 0,
    max_cost: float | None = None,
    prices: Mapping[str, Price] | None = None,
    coverage_floor: float | None = None,
    out: Folder | None = None,
    resume: Folder | None = None,
    progress: Literal["auto", "on", "off"] = "auto",
    approvals: ApprovalPolicy = "user",
    isolation: Literal["none", "process"] = "none",
    faults: ToolFaults | None = None,
    on_event: OnEvent | None = None,
) -> RunResult:
    """Run an agent ``trials`` times on every task of a suite, each time from the same clean backend, and grade it.

    Args:
        agent: A LangGraph graph, an OpenAI Agents SDK agent, a PydanticAI agent, ``factory(make)``, a callable
            ``(message, ctx) -> str``, or ``"module:attr"`` / ``"file.py:attr"`` naming one.
        suite: A suite's name or a part of one (``"thinkingbox/retail"``), the path of a suite's file, ``"module:attr"``, or
            a ``Suite``; or a list of these, run as one.
        tasks: Ids, shell patterns or ``tag:NAME`` of tasks, or a number (the first n); None for all.
        trials: Trials of each task (k).
        concurrency: Trials under way at once. None adapts it to what the model endpoints take: 16 at first, 64 at most,
            and requests at the pace at which an endpoint refuses none.
        limits: What one trial may use.
        retries: How faults of the infrastructure are retried; outcomes never are.
        user: ``"scripted"``; a language model (``"openai:gpt-5-mini"``, any PydanticAI model name or ``Model``) or
            ``LLMUser(model, ...)``; or a callable that returns a task's simulated user.
        judge: A language model, ``LLMJudge(model, ...)`` or any ``Judge``, for tasks whose grader asks about what was
            said. Without one such tasks are not planned, and the run says so.
        instructions: ``"append"`` gives the suite's policy to the agent; ``"none"`` leaves it as its author built it.
        seed: For whatever draws at random, such as scripted stand-ins.
        max_cost: US dollars at which no further trial is begun; what is under way is finished.
        prices: The user's own prices by model name, beside the price table's.
        coverage_floor: The least share of planned trials with a verdict that allows a headline; None for 0.95.
        out: The folder in which the run's folder is made; None for ``runs``.
        resume: A run folder: only its trials without a verdict are run. Settings must be those it was started with.
        progress: ``"auto"`` shows progress on standard error where it is a terminal, and the plan in any case.
        approvals: Who agrees to tool calls that the agent wants a person to confirm: the simulated ``"user"``, or in its
            place ``"approve"`` (to all), ``"deny"`` (to none), or a callable ``(request) -> bool``, async or not.
        isolation: ``"process"`` runs every attempt's agent in a process of its own, which reaches its tools and nothing
            else of the run (``docs/isolation.md``); the agent is then passed by name, or as a module's own function
            or factory.
        faults: ``ToolFaults(late_timeout=0.1, ...)``: faults that tool calls meet, to see whether the agent is safe then
            (``docs/tool_faults.md``); None for none.
        on_event: Called with each event of ``tbadapters.core.events``.

    Returns:
        The result; its files are in ``result.folder``. ``result.stopped`` says why a run ended early.

    Raises:
        UsageError: something asked for can't be done; no trial was run.
        SuiteError: the suite is wrong: nobody can be graded by it.
        RunStopped: a model endpoint refuses further requests, or the disk is full; what is finished is kept, resume
            when it is mended.
    """
    campaign = Campaign(
        {None: agent}, suite=suite, tasks=tasks, trials=trials, concurrency=concurrency, limits=limits,
        retries=retries, user=user, judge=judge, instructions=instructions, seed=seed, max_cost=max_cost, prices=prices or {},
        coverage_floor=coverage_floor, out=out, resume=resume, progress=progress, approvals=approvals, isolation=isolation,
        faults=faults, on_event=on_event,
    )  # fmt: skip
    (result,) = await campaign.run()
    return result


def evaluate_sync(
    agent: object, *, suite: Suites, resume: Folder | None = None, **options: Unpack[Options]
) -> RunResult:
    """Do the same as ``evaluate`` from code without an event loop.

    Raises:
        UsageError: an event loop is running here: ``await evaluate(...)`` instead.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_kept(evaluate(agent, suite=suite, resume=resume, **options))
    raise UsageError("evaluate_sync() was called inside a running event loop: use `await evaluate(...)` there.")


async def compare(agents: Mapping[str, object], *, suite: Suites, **options: Unpack[Options]) -> Comparison:
    """Run several agents on the same tasks and seeds, interleaved rather than one after the other.

    Args:
        agents: The agents by the name that tables and folders show.
        suite: As in ``evaluate``.
        options: As in ``evaluate``. ``concurrency`` counts the trials of all agents together.

    Returns:
        The comparison; each agent's result is in ``comparison.results``.
    """
    check_agents(agents)
    return await Campaign(dict(agents), suite=suite, **_campaign_options(options)).comparison()


def _campaign_options(options: Options) -> dict[str, Any]:
    given: dict[str, Any] = {**options}
    given["prices"] = given.get("prices") or {}
    return given
