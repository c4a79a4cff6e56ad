"""Several suites in one run: each task keeps its own backend, policy and tools."""

from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters import evaluate, factory, load_suite
from tbadapters.core.errors import InvalidOption, ToolsDiffer
from tbadapters.core.manifest import suite_digest
from tbadapters.core.store import read_manifest
from tbadapters.core.suite import joined

DATA = Path(__file__).parents[1] / "data"
AGENTS = DATA / "agents.py"
DESK, LIBRARY = str(DATA / "desk.py"), str(DATA / "library.py")


@pytest.fixture
def library():
    """The library suite of the tests."""
    return load_suite(LIBRARY)


async def test_each_task_keeps_its_tools_policy_and_backend(tmp_path, desk, library):
    """In a run of two suites the agent is made with the tools and told the policy of each task's own suite."""
    seen = {}

    def make(tools, brief):
        names = frozenset(tool.name for tool in tools)
        seen[names] = brief.instructions

        async def answer(message, ctx):
            if "set_status" not in names:
                return "I could not do it."
            if "ticket" not in ctx.state:
                ctx.state["ticket"] = next(word for word in message.split() if word.startswith("T-"))
                return "On which day may we call you?"
            await ctx.call("set_status", ticket_id=ctx.state["ticket"], status="hold")
            await ctx.call("book_call", ticket_id=ctx.state["ticket"], day="Tuesday")
            return "Your ticket is on hold and the call is booked for Tuesday."

        return answer

    result = await evaluate(factory(make), suite=[desk, LIBRARY], trials=1, out=tmp_path, progress="off")
    assert result.suite == "desk+library"
    assert len(result.trials) == len(desk.tasks) + len(library.tasks)
    assert {r.task.split("/")[0] for r in result.trials if r.passed} == {"desk"}
    assert all(r.passed is not None for r in result.trials)
    assert seen == {frozenset(t.name for t in suite.tool_list): suite.policy for suite in (desk, library)}


async def test_tasks_with_different_tools_take_a_factory_only(tmp_path):
    """An agent that is built once is refused, with the sentence that shows what works; for one part it is not."""
    with pytest.raises(ToolsDiffer, match=r"evaluate\(factory\(make\).*suite='desk' \(the parts are desk, library\)"):
        await evaluate(f"{AGENTS}:good", suite=[DESK, LIBRARY], out=tmp_path, progress="off")
    assert list(tmp_path.iterdir()) == []
    result = await evaluate(
        f"{AGENTS}:good", suite=[DESK, LIBRARY], tasks="desk/*", trials=1, out=tmp_path, progress="off"
    )
    assert result.pass_at_1 == 1.0


def test_tools_that_differ_have_no_framework_form(desk, library):
    """Where tasks have different tools there are none to hand to an agent beforehand."""
    with pytest.raises(ToolsDiffer):
        joined([desk, library]).tools("langgraph")


def test_suites_with_the_same_tools_take_any_agent(desk):
    """Two parts of one domain have their tools in common."""
    first, second = desk.select(["desk/hold/1"]), desk.select(["desk/hold/2"])
    both = joined([first, second], name="desk")
    assert both.tools() == desk.tools()
    assert both.part_of(both.tasks[1]) is second
    assert both.select(1).parts == (first,)
    assert joined([first]) is first


def test_a_digest_covers_every_part(desk, library):
    """What decides a trial is digested for each part: another tool in one makes another run."""
    other = joined([desk, joined([library])])
    fewer = type(library)(**{**vars(library), "tool_list": library.tool_list[1:]})
    assert suite_digest(other) == suite_digest(joined([desk, library]))
    assert suite_digest(other) != suite_digest(joined([desk, fewer]))


def test_the_same_task_twice_is_refused(desk):
    """A suite can't be named twice; no suite at all is none."""
    with pytest.raises(InvalidOption, match=r"suite=\[desk, desk\]: no task can be part of a run twice"):
        joined([desk, desk])
    with pytest.raises(InvalidOption, match="at least one suite"):
        load_suite([])


async def test_a_manifest_says_how_to_load_it_again(tmp_path):
    """Sources and options of a joined suite are in the manifest, as load_suite takes them."""
    suite = await to_thread.run_sync(load_suite, f"{DESK},{LIBRARY}")
    make = factory(lambda tools: lambda message, ctx: "No.")
    result = await evaluate(make, suite=suite, tasks="desk/hold/1", trials=1, out=tmp_path, progress="off")
    found = await to_thread.run_sync(read_manifest, result.folder)
    again = await to_thread.run_sync(lambda: load_suite(found["suite_source"], **found["suite_options"]))
    assert again.name == "desk+library"


def test_a_suite_keeps_its_options():
    """What a suite was loaded with stays with it; one that is made already takes none."""
    suite = load_suite(DESK, size=2)
    assert suite.options == {"size": 2}
    with pytest.raises(InvalidOption, match="its options go where it is loaded"):
        load_suite(suite, size=2)


def test_parts_of_a_suite_are_named_after_a_slash():
    """Who asks for a part of a suite that has none is told so."""
    with pytest.raises(InvalidOption, match="The suite 'neobank' has no parts"):
        load_suite("neobank/card_lost")
