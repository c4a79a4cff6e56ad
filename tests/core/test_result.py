"""What a run came to is what its trials say, and never more."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_runs import END_STATES, MISSING, UNEXPECTED, WRONG, record, result_of, seeded_result

from tbadapters.core.comparison import Comparison
from tbadapters.core.errors import InvalidOption, UnknownName, UnusableFolder
from tbadapters.core.failures import Share, failure_signature
from tbadapters.core.grading import EndState, Expectation, GoldenAction, Ref
from tbadapters.core.messages import Usage
from tbadapters.core.records import AttemptRecord, FaultRecord
from tbadapters.core.result import RunResult
from tbadapters.core.statistics import clopper_pearson
from tbadapters.core.suite import Task, UserBrief
from tbadapters.core.task_info import TaskInfo

T, F, N = True, False, None


def test_figures_of_a_small_run():
    """Every figure of a run that can be worked by hand."""
    found = result_of([[T, T], [T, F], [F, F], [T, T]])
    assert found.pass_at_1 == 0.625
    assert found.pass_at(2) == 0.75
    assert found.pass_hat(2) == 0.5
    assert (found.observed_all.count, found.observed_all.of, found.observed_all.rate) == (2, 4, 0.5)
    assert found.observed_all.undetermined == 0
    assert found.figures.solved_at_least_once.count == 3
    assert found.figures.retention.value == 0.8
    assert found.coverage.to_dict() == {"planned": 8, "valid": 8, "missing": 0}


def test_money_and_tokens():
    """Cost and tokens of all valid trials are shared among the passed trials and the reliable tasks."""
    found = result_of([[T, T], [T, F]])
    assert found.cost == pytest.approx(0.008)
    assert found.figures.cost_per_success.value == pytest.approx(0.008 / 3)
    assert found.figures.cost_per_reliable_task.value == pytest.approx(0.008)
    assert found.figures.tokens_per_success.value == 4 * 1115 / 3
    assert found.usage == Usage(4040, 1600, 420, 80)


def test_money_without_success_or_price():
    """Cost per success is undefined without a pass; one unknown price makes the run's cost unknown, not smaller."""
    assert result_of([[F, F]]).figures.cost_per_success.value is None
    found = result_of([[T, T]])
    found = replace(found, records=(found.records[0], replace(found.records[1], cost=None)))
    assert found.cost is None
    assert found.figures.cost_per_success.value is None


def test_faulted_attempts_are_accounted_apart():
    """Tokens and money of attempts without verdict are in no figure; they are counted apart."""
    found = result_of([[T, N]])
    found = replace(found, faulted=(record("bank/t0", 0, None, usage=Usage(7, 0, 0)),))
    assert found.usage == Usage(1010, 400, 105, 20)
    assert found.figures.cost_per_success.value == 0.002
    assert found.figures.tokens_per_success.value == 1115
    apart = found.to_dict()["spent"]["without_verdict"]
    assert apart["attempts"] == 2
    assert apart["usage"]["input_tokens"] == 7 + 10 + 1010
    assert sum(apart["faults"].values()) == 2
    fault = next(iter(found.infrastructure_faults))
    assert fault in str(found)


def test_missing_trials_are_shown():
    """A trial without verdict, and one that was never run, are missing: in coverage, bounds and the list of trials."""
    found = result_of([[T, N], [T]], k=2)
    assert found.coverage.missing == 2
    assert found.pass_at_1 == 1.0
    assert found.figures.pass_at_1.bounds == (0.5, 1.0)
    assert found.observed_all.undetermined == 2
    seen = result_of([[T, T], [T, N], [F, T]]).observed_all.interval
    assert seen == (clopper_pearson(1, 3).low, clopper_pearson(2, 3).high)
    trials = found.to_dict()["trials"]
    assert [t["verdict"] for t in trials] == ["passed", None, "passed", None]
    assert [t["end_reason"] for t in trials] == ["settled", "fault", "settled", "not_run"]
    assert [t["attempts"] for t in trials] == [1, 1, 1, 0]


@pytest.mark.parametrize(("missing", "refused"), [(2, False), (3, True)])
def test_headline_is_refused_below_the_floor(missing, refused):
    """Below 95 % of the planned trials, or another floor, no headline is given, but the bounds of pass@1 are."""
    rows = [[T] * 20, [T] * (20 - missing) + [N] * missing]
    found = result_of(rows)
    assert found.headline.startswith("No headline") is refused
    assert found.to_dict()["coverage"]["sufficient"] is not refused
    assert ("between 92.5% and 100.0%" in found.headline) is refused
    lowered = replace(found, coverage_floor=0.9)
    assert lowered.headline.startswith("pass@1 is 100.0%")
    assert lowered.to_dict()["coverage"]["floor"] == 0.9
    assert "100% are needed" in replace(found, coverage_floor=1.0).headline


def test_tasks_without_a_verdict_are_no_evidence():
    """The intervals of counts hold whatever the missing trials would be: without any verdict they are all there is."""
    figures = result_of([[T, N], [F, F], [F, N], [N, N]]).figures
    assert figures.solved_at_least_once.undetermined == 2
    worst, best = (result_of([[T, x], [F, F], [F, x], [x, x]]).figures.solved_at_least_once.interval for x in (F, T))
    assert figures.solved_at_least_once.interval == (worst.low, best.high)
    nothing = result_of([[N, N]] * 5).figures
    assert nothing.solved_at_least_once.interval == nothing.observed_all.interval == (0.0, 1.0)


def test_the_headline_tells_of_undetermined_tasks():
    """A count of tasks that missing trials hold down is not told without them, nor is a cost made of it."""
    found = result_of([[T] * 20] * 19 + [[T] * 19 + [N]])
    assert found.headline.endswith("19 of 20 tasks passed all 20 trials, 1 could while trials are missing.")
    assert found.figures.cost_per_reliable_task.value is None


def test_headline_of_nothing():
    """A run without any verdict has no headline, and says that anything is possible."""
    assert "between 0.0% and 100.0%" in result_of([[N, N]]).headline


def test_notes_stand_beside_the_headline():
    """What a suite says of its figures is read from the manifest and told wherever the headline is."""
    found = replace(result_of([[T, F]]), manifest={"notes": ["The clock is not canonical."]})
    assert found.notes == ("The clock is not canonical.",)
    assert found.to_dict()["notes"] == ["The clock is not canonical."]
    assert result_of([[T, F]]).notes == ()
    shown = str(found)
    assert shown.index("pass@1 is") < shown.index("The clock is not canonical.") < shown.index("Figures")


def test_figures_by_tag():
    """A tag's figures are those of the tasks that carry it."""
    found = result_of([[T, T], [F, F], [T, F]])
    assert list(found.by_tag) == ["even", "odd"]
    assert found.by_tag["even"].pass_at_1.value == 0.75
    assert found.by_tag["odd"].pass_at_1.value == 0.0
    assert found.to_dict()["by_tag"]["odd"]["coverage"] == {"planned": 2, "valid": 2, "missing": 0}


def test_trials_are_found():
    """A trial is found by task and index, with or without the suite's name; what is not there is named."""
    found = result_of([[T, F], [T]], k=2)
    assert found.trial("bank/t0", 1).passed is False
    assert found.trial("t1", 0).passed is True
    assert [r.index for r in found.task("t0").trials] == [0, 1]
    with pytest.raises(UnknownName, match="no task 't7'"):
        found.trial("t7", 0)
    with pytest.raises(UnknownName, match="trial of t1 '1'"):
        found.trial("t1", 1)


@pytest.mark.parametrize("k", [0, 3])
def test_k_beyond_the_run_is_refused(k):
    """A figure of more trials than a task has is refused."""
    with pytest.raises(InvalidOption, match="2 trials a task"):
        result_of([[T, F]]).pass_at(k)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_order_of_records_does_not_matter(seed):
    """However the trials ended in time, the result is the same."""
    found = seeded_result(tasks=6, trials=3, faults=0.2, seed=seed)
    shuffled = list(found.records)
    random.Random(seed).shuffle(shuffled)
    assert replace(found, records=tuple(shuffled)).to_dict() == found.to_dict()


def test_results_are_json_with_the_documented_top():
    """``to_dict`` is JSON whose top has the documented fields, and each figure its documented name."""
    data = json.loads(json.dumps(seeded_result(faults=0.1).to_dict(), allow_nan=False))
    assert data["schema"] == "tbadapters.results/1"
    assert {"suite", "agent", "trials_per_task", "coverage", "figures", "by_tag", "tasks", "trials"} <= set(data)
    assert list(data["figures"]) == [
        "pass@1", "pass@k (unbiased)", "pass^k (unbiased)", "pass^k (plug-in)", "observed k/k",
        "solved at least once", "retention", "cost per trial", "cost per success", "cost per reliable task",
        "tokens per success",
    ]  # fmt: skip
    assert {"count", "of", "rate", "undetermined", "interval", "bounds"} <= set(data["figures"]["observed k/k"])
    assert set(data["figures"]["pass@k (unbiased)"]["by_k"]) == {"1", "2", "3", "4", "5"}
    assert len(data["trials"]) == 150
    assert len(data["tasks"]) == 30


def test_figures_follow_from_the_trials_list():
    """pass@1 and observed k/k in the file can be recomputed from its own list of trials."""
    data = seeded_result(faults=0.1).to_dict()
    valid, passed = Counter(), Counter()
    for trial in data["trials"]:
        valid[trial["task"]] += trial["verdict"] is not None
        passed[trial["task"]] += trial["verdict"] == "passed"
    rates = [passed[task] / valid[task] for task in valid if valid[task]]
    assert data["figures"]["pass@1"]["value"] == pytest.approx(sum(rates) / len(rates))
    assert data["figures"]["observed k/k"]["count"] == sum(count == 5 for count in passed.values())


def test_failure_signature_by_hand():
    """Only failures that ended by themselves, wrote, and did not end on an error looked clean; classes overlap."""
    looped = record("t", 2, F, effects=[MISSING], end_reason="tool_calls")
    silent = replace(record("t", 3, F, effects=[WRONG]), tool_calls=())
    found = failure_signature([
        record("t", 0, T), record("t", 1, F, effects=[WRONG, replace(WRONG, key="B"), MISSING]), looped, silent,
        record("u", 0, F, effects=[UNEXPECTED]), record("u", 1, F), record("u", 2, N),
    ])  # fmt: skip
    assert found.looked_clean == Share(3, 5)
    assert found.classes == {"wrong_value": Share(1, 3), "unexpected": Share(1, 3), "missing": Share(1, 3)}
    assert found.all_classes["wrong_value"] == Share(2, 5)
    assert found.without_effects == Share(1, 5)
    assert found.end_reasons == {"settled": 4, "tool_calls": 1}
    first = found.most_frequent[0]
    assert (first.table, first.column, first.kind, first.trials, first.task, first.index) == (
        "accounts", "balance", "wrong_value", 2, "t", 1,
    )  # fmt: skip


def test_no_failures():
    """A run without failures has a signature of nothing, not a division by it."""
    assert failure_signature([record("t", 0, T)]).looked_clean.share is None


def test_task_info_of_a_task():
    """Golden actions are kept as lines; a reference names the action that it reads."""
    actions = (GoldenAction("open", {"topic": "fee"}), GoldenAction("close", {"ticket": Ref(0, "id"), "sure": True}))
    task = Task("s/t", "Hi", UserBrief("x"), Expectation((EndState("closed", actions),)), tags=("a",))
    info = TaskInfo.of(task)
    assert info.golden("closed", 1) == "close(ticket=<id of action 0>, sure=true)"
    assert info.golden("closed", 2) is info.golden("other", 0) is info.golden(None, None) is None
    assert TaskInfo.from_dict(json.loads(json.dumps(info.to_dict()))) == info


def test_records_survive_the_run_folder():
    """A record that went through JSON gives the same result."""
    found = seeded_result(tasks=4, faults=0.2)
    again = tuple(AttemptRecord.from_dict(json.loads(json.dumps(r.to_dict()))) for r in found.records)
    assert replace(found, records=again).to_dict() == found.to_dict()


@pytest.mark.parametrize("name", ["r.html", "r.xml", "r.json"])
def test_reports_are_written(tmp_path, name):
    """Each kind of report is written where it was asked for."""
    path = result_of([[T, F]]).report(tmp_path / name)
    assert path == tmp_path / name
    assert "bank/t0" in path.read_text(encoding="utf-8")


def test_report_json_is_to_dict(tmp_path):
    """The JSON report is ``to_dict`` and nothing else."""
    found = result_of([[T, F]])
    assert json.loads(found.report(tmp_path / "r.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(found.to_dict())
    )


@pytest.mark.parametrize("name", ["r.json", "r.xml", "r.md", "r.csv"])
def test_a_lone_surrogate_breaks_no_report(tmp_path, name):
    """A name that UTF-8 can't encode, as a shell may hand one over, is replaced and leaves every report readable."""
    found = result_of([[T, F]], agent="mine\ud800")
    assert "mine\N{REPLACEMENT CHARACTER}" in found.report(tmp_path / name).read_text(encoding="utf-8")


def test_unknown_kind_of_report_is_refused(tmp_path):
    """A report of another ending is refused before anything is written."""
    with pytest.raises(InvalidOption, match=r"\.html"):
        result_of([[T]]).report(tmp_path / "r.pdf")
    assert not list(tmp_path.iterdir())


def test_unwritable_report_is_one_sentence(tmp_path):
    """A folder that is not there gives one sentence, not a traceback of the file system."""
    with pytest.raises(UnusableFolder, match="can't be written"):
        result_of([[T]]).report(tmp_path / "no" / "r.json")


def test_price_bases():
    """A run says whose price was taken for each model, the user's own included."""
    found = result_of([[T]])
    assert "openai" in found.price_bases()["gpt-4o-mini"]
    own = replace(found, manifest={"prices": {"gpt-4o-mini": {"input": 1, "cached_input": None, "output": 2}}})
    assert own.price_bases() == {"gpt-4o-mini": "given by the user"}


def test_print():
    """Printing a result gives its table."""
    assert "pass@1" in str(result_of([[T, F]]))


def test_tasks_without_trials_are_kept():
    """A task of which nothing was run is in the result, with all its trials missing."""
    found = RunResult("s", "a", "function", 3, 0, (TaskInfo("s/t", (), END_STATES),), ())
    assert found.coverage.to_dict() == {"planned": 3, "valid": 0, "missing": 3}
    assert found.pass_at_1 is None
    assert found.to_dict()["figures"]["pass@1"]["bounds"] == [0.0, 1.0]


def test_what_ended_attempts_is_counted():
    """Faults are listed by owner, code and message, the most frequent first, with an example; the table shows them."""
    found = result_of([[T, F], [F, F]])
    fault = FaultRecord("agent", "exception", "KeyError: 'plan'")
    records = [replace(r, fault=fault) if r.passed is False else r for r in found.records]
    other = replace(records[0], attempt=0, fault=FaultRecord("provider", "rate_limit", "429"))
    found = replace(found, records=tuple(records), faulted=(other,))
    first, second = found.frequent_faults
    assert (first.fault, first.attempts, first.task, first.index) == (fault, 3, "bank/t0", 1)
    assert (second.fault.owner, second.attempts) == ("provider", 1)
    assert found.to_dict()["faults"][0]["message"] == "KeyError: 'plan'"
    assert "KeyError: 'plan'" in str(found)


def test_unseen_tokens_are_unknown_in_the_table():
    """Where no request reported tokens the table does not speak of 0 tokens."""
    found = result_of([[T]])
    found = replace(found, records=tuple(replace(r, requests=()) for r in found.records))
    assert "tokens unknown" in str(found)
    assert "0 input tokens" not in str(found)


class _Printer:
    """Stands in for IPython's."""

    def __init__(self):
        self.shown = []

    def text(self, text):
        self.shown.append(text)


@pytest.mark.parametrize("agents", [1, 2])
def test_a_result_is_one_line_in_other_texts_and_its_tables_in_a_notebook(agents):
    """``repr`` is one line with the headline or the names; IPython shows what ``print`` does."""
    found, printer = result_of([[T, F]]), _Printer()
    if agents > 1:
        found = Comparison({"A": found, "B": found})
    found._repr_pretty_(printer, False)
    assert printer.shown == [str(found)]
    line = repr(found)
    assert "\n" not in line
    assert line.startswith(f"<{type(found).__name__} ")
    assert all(part in line for part in (["pass@1 is 50.0%"] if agents == 1 else ["'A'", "'B'"]))
    assert len(line) < 200


def test_a_run_that_only_measured_its_wiring_says_so():
    """A note names the one error that ended every trial; where one trial ended otherwise there is none."""
    found = result_of([[F, F], [F, N]])
    fault = FaultRecord("agent", "exception", "KeyError: 'API_BASE'")
    broken = [r if r.passed is None else replace(r, end_reason="agent_error", fault=fault) for r in found.records]
    (note,) = replace(found, records=tuple(broken)).notes
    assert note.endswith("KeyError: 'API_BASE'")
    assert "Every trial ended in the same error" in str(replace(found, records=tuple(broken)))
    assert replace(found, records=(found.records[0], *broken[1:])).notes == ()
    other = replace(broken[0], fault=replace(fault, message="KeyError: 'OTHER'"))
    assert replace(found, records=(other, *broken[1:])).notes == ()
    assert found.notes == ()
