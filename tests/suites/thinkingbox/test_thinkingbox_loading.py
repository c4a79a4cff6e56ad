"""What load_suite("thinkingbox") gives, and how its tasks are run."""

import sys
from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters import evaluate, factory, load_suite
from tbadapters.core.errors import InvalidOption, SuiteError, ToolsDiffer, UnknownName, UsageError
from tbadapters.core.manifest import suite_digest
from tbadapters.core.store import read_manifest

SMALL = Path(__file__).parents[2] / "data" / "thinkingbox_small"
WORKSHOP_TOOLS = [
    "ReportInstructionInAnswer", "find_customer", "get_job", "list_parts", "update_job", "job_price", "order_part",
    "search_rules",
]  # fmt: skip


def loaded(name="thinkingbox", **options):
    return load_suite(name, **{"data": SMALL, "python": sys.executable, "search": "stand-in"} | options)


# -- loading ----------------------------------------------------------------------------------------------------------


def test_tasks_have_short_stable_ids(small):
    """An id is domain and function; the file's name is there only where two functions have one name."""
    assert [task.id.removeprefix("thinkingbox/") for task in small.tasks] == [
        "front_desk/test_remark",
        "front_desk/test_fields",
        "workshop/workshop/test_chain",
        "workshop/test_two_tubes",
        "workshop/test_late_repair",
        "workshop/test_ready_repair",
        "workshop/test_cancel",
        "workshop/test_price_is_told",
        "workshop/workshop_answers/test_chain",
    ]


def test_a_task_says_what_its_test_says(small):
    """Opening, user, tags, replies, records and golden calls are the test's, over its scenario's."""
    task = small.task("workshop/workshop/test_chain")
    assert task.opening.startswith("Hello, this is Ines Falk.")
    assert task.user.context.startswith("You are Ines Falk, ines@example.com.")
    assert task.tags == ("workshop", "records", "creates")
    assert task.max_user_replies == 6
    assert [row["id"] for row in task.world["workshop"]["data_patch"]["customers"]] == ["C-1", "C-2"]
    (golden,) = task.expectation.end_states
    assert [action.tool for action in golden.actions] == ["get_job", "list_parts", "order_part", "update_job"]
    assert small.task("workshop/test_cancel").max_user_replies == 0, "nobody answers in the name of no context"
    assert [t.id.rpartition("/")[2] for t in small.tasks if t.needs_judge] == ["test_price_is_told"]


def test_an_agent_is_told_policy_and_tools_of_its_domain():
    """The agent file's text, then the scenario's, then the test's; the scenario's tools as it words them, and end-turn ones."""
    desk = loaded("thinkingbox/front_desk")
    assert desk.policy.endswith(
        "End your last message, and no other, with <DONE>.\n\n\nYou keep the list of repairs at the front desk."
    )
    tools = {tool.name: tool for tool in desk.tool_list}
    assert list(tools) == ["ReportInstructionInAnswer", "get_job", "update_job"]
    assert tools["get_job"].description == "Look up a repair."
    assert tools["update_job"].parameters["properties"]["remark"]["description"] == "What the mechanic should know."
    assert [tool.name for tool in desk.tool_list if tool.ends_turn] == ["ReportInstructionInAnswer"]
    workshop = loaded("thinkingbox/workshop")
    assert [tool.name for tool in workshop.tool_list] == WORKSHOP_TOOLS
    told = workshop.task("test_price_is_told").instructions
    assert told == f"{workshop.policy}\nName the price whenever it changes."


def test_parts_are_domains_tests_and_tasks():
    """A part is named by its domain, a test's uid or function, or a task; what there is not is answered with the nearest."""
    assert {t.tags[0] for t in loaded("thinkingbox/front_desk").tasks} == {"front_desk"}
    (one,) = loaded("thinkingbox/workshop.py:test_cancel").tasks
    assert one.id == "thinkingbox/workshop/test_cancel"
    assert [t.id for t in loaded("thinkingbox/workshop/test_cancel").tasks] == [one.id]
    assert [t.id for t in loaded("thinkingbox/test_cancel").tasks] == [one.id]
    assert len(loaded("thinkingbox/test_chain").tasks) == 2, "two files have one of that name"
    with pytest.raises(UnknownName, match=r"'test_cancl'\. Did you mean 'test_cancel'"):
        loaded("thinkingbox/test_cancl")
    answers = loaded("thinkingbox/workshop/workshop_answers.py:test_chain")  # its folder may be named, too
    assert [t.id for t in answers.tasks] == ["thinkingbox/workshop/test_chain"]
    with pytest.raises(UnknownName, match=r"no part of the suite 'thinkingbox' 'workshp'\. Did you mean 'workshop'"):
        loaded("thinkingbox/workshp")
    with pytest.raises(UnknownName, match=r"no test function 'workshop\.py:test_cancl'. Did you mean"):
        loaded("thinkingbox/workshop.py:test_cancl")
    both = loaded(["thinkingbox/front_desk", "thinkingbox/workshop"])
    assert len(both.tasks) == len(loaded().tasks)
    assert both.tools_differ


def test_what_only_the_reference_harness_has_is_left_out_and_said(data):
    """A test that can't be honoured makes no task, and the figures' reader is told which and why."""
    path = data / "dataset" / "test_case" / "front_desk.py"
    text = path.read_text()
    path.write_text(text.replace("def test_fields(x)", "def test_fields(x, evaluator)"))
    suite = loaded(data=data)
    note = "; ".join(note for note in suite.notes if "left out" in note)
    assert "front_desk.py:test_fields (the fixture evaluator)" in note
    assert "workshop.py:test_greeting (format_query)" in note
    assert "thinkingbox/front_desk/test_fields" not in suite.task_ids
    with pytest.raises(SuiteError, match=r"No test can be run: .*test_fields \(the fixture evaluator\)"):
        loaded("thinkingbox/front_desk.py:test_fields", data=data)


def test_figures_say_what_is_not_canonical():
    """A frozen clock, the stand-in of the search and another protocol are noted; the canonical way is not."""
    notes = loaded(protocol="default", tests="workshop.py:test_cancel").notes
    assert [note.partition(":")[0] for note in notes] == ["clock", "search", "conversation"]
    assert not any(note.startswith("clock") for note in loaded(clock="wall").notes)


def test_what_decides_a_trial_is_in_the_digest(data):
    """Another clock, server, test or record makes another run; the same folder elsewhere makes the same."""
    before = suite_digest(loaded(data=data))
    assert suite_digest(loaded()) == before
    assert suite_digest(loaded(clock="wall", data=data)) != before
    for name in (
        "servers/workshop_servers/workshop_servers/shop.py",
        "dataset/test_case/workshop.py",
        "dataset/scenario/workshop.yaml",
    ):
        path = data / name
        kept = path.read_text()
        path.write_text(kept + "\n# changed\n" if name.endswith(".py") else kept.replace("stock: 12", "stock: 13"))
        assert suite_digest(loaded(data=data)) != before, name
        path.write_text(kept)


@pytest.mark.usefixtures("cache")
def test_a_suite_loads_without_an_environment_for_its_servers():
    """Tasks are read without any server; who looks at tools then is told how to make what runs them."""
    suite = loaded(python=None)
    assert len(suite.tasks) == 9
    with pytest.raises(UsageError, match="make it by `tbadapters thinkingbox setup --data"):
        list(suite.parts[0].tool_list)


def test_options_that_make_no_sense_are_refused():
    """One sentence names the option and what is needed."""
    for option, said in (("protocol", "thinkingbox"), ("search", "stand-in"), ("clock", "policy")):
        with pytest.raises(InvalidOption, match=rf"{option}='maybe'.*'{said}'"):
            loaded(**{option: "maybe"})
    with pytest.raises(InvalidOption, match=r"clock='2025-10-01': 'policy', 'wall', or a moment with its offset"):
        loaded(clock="2025-10-01")
    with pytest.raises(UnknownName, match=r"no agent file 'thick'\. Did you mean 'think'"):
        loaded(agent="thick")
    with pytest.raises(UsageError, match=r"The test 'test_cancel' names no file: file\.py:function"):
        loaded(tests="test_cancel")
    with pytest.raises(InvalidOption, match=r"no option 'suite_seed'\. It has data, tests, "):
        loaded("thinkingbox/workshop", suite_seed=1)  # the part stands in the name, and is no option beside it


def test_a_folder_of_another_layout_is_refused(data):
    """The harness's own repository has scenarios and tests, but no servers: what is missing is named, and what is needed."""
    (data / "servers" / "servers.yaml").unlink()
    with pytest.raises(
        UsageError, match=r"holds no servers/servers\.yaml: give the folder of a checkout of .*data=PATH"
    ):
        loaded(data=data)


def test_a_scenario_may_only_name_tools_that_are_there(data):
    """A tool that no server has is named, and the servers that were asked."""
    path = data / "dataset" / "scenario" / "front_desk.yaml"
    path.write_text(path.read_text().replace("name: get_job", "name: get_jobs"))
    with pytest.raises(SuiteError, match=r"No server of the scenario \(workshop\) has the tool 'get_jobs'"):
        list(loaded("thinkingbox/front_desk", data=data).tool_list)


# -- runs -------------------------------------------------------------------------------------------------------------


def golden(suite, *, but=()):
    """Return an agent that makes a task's golden calls, or none where the task is one of ``but``."""
    calls = {task.opening: task for task in suite.tasks}

    def make(tools):
        offered = {tool.name for tool in tools}

        async def answer(message, ctx):
            task = calls[message]
            if task.id.rpartition("/")[2] not in but:
                for action in task.expectation.end_states[0].actions:
                    assert action.tool in offered
                    await ctx.call(action.tool, **action.arguments)
            return "It is settled. <DONE>"

        return answer

    return factory(make)


async def test_golden_calls_pass_and_others_fail(small, tmp_path):
    """Through a real run, each task is opened afresh, with its own tools, and graded by its own test function."""
    result = await evaluate(
        golden(small, but=("test_late_repair",)), suite=small, trials=2, out=tmp_path, progress="off", concurrency=4
    )
    assert result.suite == "thinkingbox"
    assert {r.task.rpartition("/")[2] for r in result.trials if not r.passed} == {"test_late_repair"}
    assert all(r.passed is not None and r.end_reason == "agent_ended" for r in result.trials)
    failed = [r for r in result.trials if not r.passed]
    assert {(e.kind, e.table, e.column) for r in failed for e in r.verdict.effects} == {
        ("wrong_value", "jobs", "price")
    } or {(e.kind, e.table, e.column) for r in failed for e in r.verdict.effects} == {("missing", "jobs", "price")}
    assert any(note.startswith("Judge-free, 8 of 9") for note in result.notes)
    assert any("clock: frozen" in note for note in result.notes)


async def test_domains_with_different_tools_take_a_factory(small, tmp_path):
    """The whole suite refuses an agent that is built once; a domain takes it, and a resume finds the suite again."""

    async def idle(message, ctx):
        return "I did nothing. <DONE>"

    with pytest.raises(ToolsDiffer, match="the parts are thinkingbox/front_desk, thinkingbox/workshop"):
        await evaluate(idle, suite=small, out=tmp_path, progress="off")
    desk = await to_thread.run_sync(loaded, "thinkingbox/front_desk")
    result = await evaluate(idle, suite=desk, tasks=1, trials=1, out=tmp_path, progress="off")
    assert result.pass_at_1 == 0.0
    found = await to_thread.run_sync(read_manifest, result.folder)
    again = await to_thread.run_sync(lambda: load_suite(found["suite_source"], **found["suite_options"]))
    assert again.name == "thinkingbox/front_desk"
    assert found["suite_options"]["data"] == str(SMALL)


async def test_an_end_turn_tool_ends_the_conversation(tmp_path):
    """The agent file's own tool is offered beside the server's, and a call of it is the end."""

    async def report(message, ctx):
        await ctx.call("ReportInstructionInAnswer", instruction="delete it")
        return "not reached"

    desk = await to_thread.run_sync(loaded, "thinkingbox/front_desk")
    result = await evaluate(report, suite=desk, tasks=1, trials=1, out=tmp_path, progress="off")
    (record,) = result.trials
    assert (record.passed, record.end_reason, record.fault) == (False, "end_turn_tool", None)
    assert [call.name for call in record.tool_calls] == ["ReportInstructionInAnswer"]
    assert "not reached" not in [message.text for message in record.messages]
