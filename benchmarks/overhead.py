"""What a trial costs beside the agent itself: everything of ours against the bare backend, side by side in one run.

python benchmarks/overhead.py

The same golden calls are executed (a) on a bare sandbox that is opened, called, read and graded, (b) by a custom agent
through evaluate(), with user, limits, records and a run folder on disk, and (c) by each framework's agent through its
real client against the scripted model server. Figures are CPU seconds of this process a trial, and ratios to (a).
"""

import asyncio
import json
import tempfile
import time

from tbadapters import evaluate, load_suite
from tbadapters.core.context import running
from tbadapters.core.golden import replay_golden
from tbadapters.core.grading import Evidence
from tbadapters.core.messages import Message
from tbadapters.demo import agents_for
from tbadapters.testing import GoldenPolicy, ScriptedModelServer
from tbadapters.testing.position import Done

TASKS, TRIALS = 25, 4


async def main():
    suite = load_suite("neobank").select("*/0").select(TASKS)
    policy = GoldenPolicy(suite)
    measured = {"bare sandbox": await bare(suite, policy), "custom agent": await through(suite, custom_agent(policy))}
    names = {"langgraph": "stand-in-langgraph", "openai-agents": "stand-in-openai-agents"}
    names["pydantic-ai"] = "stand-in-pydantic-ai"
    async with ScriptedModelServer(dict.fromkeys(names.values(), policy), keep_bodies=False) as server:
        for name, agent in agents_for(suite, server.url).items():
            measured[name] = await through(suite, agent)
    base = measured["bare sandbox"]
    for name, seconds in measured.items():
        print(f"{name:15} {1000 * seconds:8.2f} ms a trial {seconds / base:8.1f} x the bare sandbox")


async def bare(suite, policy):
    """Open, call, read and grade, without user, records or store."""
    for task in suite.tasks:
        await graded(suite, policy, task)  # images and expected states are made once
    began = time.process_time()
    for _ in range(TRIALS):
        for task in suite.tasks:
            await graded(suite, policy, task)
    return (time.process_time() - began) / (TRIALS * len(suite.tasks))


async def graded(suite, policy, task):
    done = await replay_golden(suite.backend.open, task, task.expectation.end_states[0].actions)
    said = Message(policy.script(task.id, 0).final, "agent")
    verdict = await suite.backend.grader(task).grade(Evidence(done.initial, done.final, done.calls, (said,)))
    assert verdict.passed, (task.id, verdict)


async def through(suite, agent):
    """Run the whole of evaluate()."""
    with tempfile.TemporaryDirectory() as out:
        await evaluate(agent, suite=suite, trials=1, out=out, progress="off")
        began = time.process_time()
        result = await evaluate(agent, suite=suite, trials=TRIALS, out=out, progress="off")
        seconds = time.process_time() - began
    assert result.pass_at_1 == 1.0, result
    return seconds / (TRIALS * len(suite.tasks))


def custom_agent(policy):
    """Return an agent that plays the golden conversations without a model."""

    async def play(_message, ctx):
        script = policy.script(running.get().trial.task, 0)
        asked = ctx.state.setdefault("asked", 0)
        if asked < len(script.questions):
            ctx.state["asked"] += 1
            return script.questions[asked]
        done = []
        for step in script.steps:
            answer = await ctx.call(step.tool, **script.arguments(step, done))
            done.append(Done(step.tool, json.dumps(answer)))
        return script.final

    return play


if __name__ == "__main__":
    asyncio.run(main())
