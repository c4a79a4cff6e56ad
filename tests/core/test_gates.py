"""A gate opens where every requirement is met, stays shut where one is not, and says so where too little is known."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import result_of, seeded_result

from tbadapters.core.errors import InvalidOption, UnknownName
from tbadapters.core.gates import Requirement, check_gate

T, F, N = True, False, None
RUN = result_of([[T, T], [T, F], [F, F], [T, T]])  # pass@1 0.625, observed 2/2 of 0.5, cost 8 x 0.002 for 5 passes


def state(result, *require, **options):
    return check_gate(result, require, **options).state


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass@1>=0.625", "met"),
        ("pass@1 >= 62.5%", "met"),
        ("pass@1>0.625", "not met"),
        ("pass@1<=0.625", "met"),
        ("pass@1<0.625", "not met"),
        ("pass@2>=0.75", "met"),
        ("pass@2>0.75", "not met"),
        ("pass^2>=0.5", "met"),
        ("pass@k>=0.75", "met"),
        ("pass^k>0.5", "not met"),
        ("pass^1>=0.625", "met"),
        ("pass@k (unbiased)>=0.75", "met"),
        ("pass^k (unbiased), k = 2>=0.5", "met"),
        ("pass^k (plug-in)>=0.5625", "met"),
        ("pass^k (plug-in), k = 2>0.5625", "not met"),
        ("observed k/k>=0.5", "met"),
        ("observed 2/2>50%", "not met"),
        ("solved at least once>=0.75", "met"),
        ("retention>=0.8", "met"),
        ("retention>0.8", "not met"),
        ("cost per trial<=0.002", "met"),
        ("cost per success<0.0032", "not met"),
        ("cost per success<=0.0032", "met"),
        ("cost per reliable task<=0.008", "met"),
        ("tokens per success<=1784", "met"),
        ("tokens per success<1784", "not met"),
        ("task:t0:pass@1>=1", "met"),
        ("task:bank/t[03]:observed k/k>=1", "met"),
        ("task:t*:pass@1>=0.5", "not met"),
        ("tag:even:pass@1>=0.5", "met"),
        ("tag:*:pass@1>0.5", "not met"),
        ("tag:odd:cost per success<=0.00267", "met"),
    ],
)
def test_requirements_on_a_run_worked_by_hand(text, expected):
    """Each figure by its printed name, of all tasks, of each task of a pattern, and of a tag, is held to its number."""
    assert state(RUN, text) == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pass@1", "must read"),
        ("pass@1=>0.8", "no figure 'pass@1='"),
        ("pass@1==0.8", "must read"),
        ("pass@1>=0.8.1", "must read"),
        (">=0.8", "must read"),
        ("pass1>=0.8", "Did you mean 'pass@1'"),
        ("success rate>=0.8", "no figure 'success rate'"),
        ("pass@1>=80", "percentage \\(80%\\)"),
        ("cost per success<=5%", "it is no rate"),
        ("pass@3>=0.5", "3 trials: this run has 2 trials"),
        ("observed 3/3>=0.5", "3 trials: this run has 2 trials"),
        ("observed 1/1>=0.5", "1 trial: this run has 2 trials a task"),
        ("observed 1/2>=0.5", "no figure 'observed 1/2'"),
        ("pass@0>=0.5", "0 trials"),
    ],
)
def test_what_is_no_requirement_is_refused(text, named):
    """A requirement that can't be read, or asks for what the run can't have, is refused in one sentence."""
    with pytest.raises(InvalidOption, match=named):
        check_gate(RUN, [text])


def test_what_names_nothing_is_refused():
    """A pattern that names no task, or no tag, does not count as met; nor does a gate without a requirement."""
    with pytest.raises(UnknownName, match="no task 'card_"):
        check_gate(RUN, ["task:card_*:pass@1>=0.9"])
    with pytest.raises(UnknownName, match="no tag 'card'"):
        check_gate(RUN, ["tag:card:pass@1>=0.9"])
    with pytest.raises(InvalidOption, match="at least one requirement"):
        check_gate(RUN)
    for drop in (0.03, 3, -0.1, float("nan")):
        with pytest.raises(InvalidOption, match="max_drop"):
            check_gate(RUN, ["pass@1>=0.5"], max_drop=drop)


def test_each_task_of_a_pattern_must_meet_it():
    """One task that fails is not hidden by the others' mean, and it is named with its figure."""
    (found,) = check_gate(RUN, ["task:t[013]:pass@1>=0.8"]).findings
    assert found.state == "not met"
    assert found.why.startswith("1 of 3 tasks: bank/t1: 0.5000")


@pytest.mark.parametrize(("sign", "first"), [(">=", "bank/t2: 0.0000; bank/t1: 0.5000"), ("<", "bank/t0: 1.0000")])
def test_the_worst_are_named_first(sign, first):
    """Of the tasks that do not meet a requirement, those that are furthest from it are named first."""
    (found,) = check_gate(RUN, [f"task:*:pass@1{sign}{0.6 if sign == '>=' else 0.4}"]).findings
    assert found.why.partition(" tasks: ")[2].startswith(first)


def test_every_requirement_must_be_met():
    """A gate is shut by any of its requirements."""
    found = check_gate(RUN, ["pass@1>=0.5", "observed k/k>=0.9"])
    assert [finding.state for finding in found.findings] == ["met", "not met"]
    assert found.state == "not met"


@pytest.mark.parametrize("require", ["pass@1>=0.5", "pass@1>=0.99", "cost per trial<=1"])
def test_too_little_coverage_comes_first(require):
    """Below the floor nothing is called met or not met; a floor that the run reaches lets it be said."""
    found = result_of([[T] * 10 + [N] * 10, [T] * 20])
    gate = check_gate(found, [require])
    assert gate.state == gate.findings[0].state == "coverage too low"
    assert "75.0% of the planned trials" in gate.lacking
    assert state(replace(found, coverage_floor=0.75), require) == "met"


def test_too_little_coverage_of_the_baseline():
    """A baseline with too few verdicts is no baseline."""
    found = result_of([[T, F]] * 8)
    gate = check_gate(found, against=replace(found, records=found.records[:-1]))
    assert gate.state == "coverage too low"
    assert gate.lacking.startswith("the baseline: only 93.7%")
    nothing = check_gate(found, against=replace(found, records=()))
    assert (nothing.state, nothing.findings[0].why) == ("coverage too low", "0 of 8 tasks have a valid trial of both")
    few = replace(found, records=found.records[:10], coverage_floor=0.5)
    assert check_gate(few, against=found).state == "coverage too low"


def test_a_task_that_lacks_verdicts():
    """In a run with enough of them, a task's own missing trials leave it open only while they could decide it."""
    found = result_of([[T] * 20] * 9 + [[T] * 8 + [F] * 8 + [N] * 4])
    assert found.coverage.sufficient
    assert state(found, "task:t9:pass@1>=0.4") == "met"
    assert state(found, "task:t9:pass@1>0.6") == "not met"
    assert state(found, "task:t9:pass@1>=0.5") == "coverage too low"
    assert state(found, "task:t9:observed k/k>=1") == "not met"
    assert state(found, "task:t9:pass@1>=0.5", "task:t0:pass@1<1") == "not met"
    assert state(found, "task:t*:pass@1>=0.5") == "coverage too low"


def test_a_rate_of_few_tasks_does_not_speak_for_all():
    """Few missing trials can leave few tasks with all k: only what the bounds decide is said of a rate at k, then."""
    found = result_of([[T] * 20] + [[T] * 19 + [N]] * 19)
    assert found.coverage.sufficient
    assert found.figures.pass_hat_k[20].tasks == 1
    assert state(found, "pass^20>=0.9") == "coverage too low"
    assert state(found, "pass^20>=0.05", "pass@20>=1", "pass^19>=1", "pass@1>=1") == "met"
    assert state(result_of([[T] * 20] * 19 + [[T] * 19 + [N]]), "pass^20>=1") == "met"


def test_a_count_of_tasks_is_judged_by_its_bounds():
    """Few missing trials can leave many tasks undetermined: a count of tasks is not held against them, nor for them."""
    found = result_of([[T] * 20] * 10 + [[T] * 19 + [N]] * 8 + [[F] * 20] * 2)
    assert found.coverage.sufficient
    assert state(found, "observed k/k>=0.8") == state(found, "observed k/k<=0.6") == "coverage too low"
    assert state(found, "observed k/k>=0.5", "observed k/k<=0.9", "cost per success<=1") == "met"
    assert state(found, "observed k/k>=0.95") == "not met"
    assert state(found, "cost per reliable task<=1") == "coverage too low"
    lone = result_of([[T] * 20] * 19 + [[F] * 19 + [N]])
    assert state(lone, "solved at least once>=0.99") == "coverage too low"


def test_figures_that_nobody_knows_are_not_met():
    """An unknown price and a figure without a pass meet nothing; retention is open while a missing trial decides it."""
    unpriced = replace(RUN, records=tuple(replace(r, cost=None) for r in RUN.records))
    (found,) = check_gate(unpriced, ["cost per success<=100"]).findings
    assert (found.state, found.why) == ("not met", "unknown")
    assert state(result_of([[F, F]]), "cost per success<=100") == "not met"
    assert state(result_of([[F, F]]), "retention>=0") == "not met"
    assert state(result_of([[T] * 20] * 9 + [[T] * 19 + [N]]), "retention>=0.1") == "coverage too low"


def test_a_regression_is_called_by_the_paired_test():
    """The same drop is a regression where the tasks agree on it, and may be chance where they do not."""
    even = [[T] * 9 + [F]] * 20
    steady = result_of([[T] * 8 + [F] * 2] * 20)
    swung = result_of([[T] * 10] * 9 + [[T] * 5 + [F] * 5] * 6 + [[T] * 8 + [F] * 2] * 5)
    base = result_of(even)
    assert (steady.pass_at_1, swung.pass_at_1) == pytest.approx((0.8, 0.8))
    assert state(steady, against=base) == "not met"
    (chance,) = check_gate(swung, against=base).findings
    assert (chance.state, chance.why[-13:]) == ("met", "may be chance")
    assert "-10.0 points" in chance.why


@pytest.mark.parametrize(("allowed", "expected"), [(0.05, "not met"), (0.1, "met"), (0.2, "met"), (None, "not met")])
def test_a_drop_that_is_put_up_with(allowed, expected):
    """A drop that is no chance is a regression beyond what is put up with; an improvement never is."""
    worse, base = result_of([[T] * 8 + [F] * 2] * 20), result_of([[T] * 9 + [F]] * 20)
    gate = check_gate(worse, against=base, max_drop=allowed)
    assert gate.state == expected
    assert "-10.0 points (95% interval -25.2 to +8.5, p below 0.001, paired over 20 tasks)" in gate.findings[0].why
    assert gate.findings[0].why.endswith("a regression" if expected == "not met" else "a drop that is put up with")
    assert state(base, against=worse, max_drop=allowed) == "met"
    assert re.fullmatch(r"\+10\.0 points .*: no drop", check_gate(base, against=worse).findings[0].why)


def test_missing_trials_that_could_turn_a_regression_are_told():
    """A drop is judged on what has a verdict; its bounds are printed, and that missing trials could turn it."""
    base = result_of([[T] * 16 + [F] * 4] * 20)
    near = result_of([[T] * 16 + [F] * 4] * 10 + [[T] * 16 + [F] * 3 + [N]] * 10)
    (found,) = check_gate(near, against=base, max_drop=0.01).findings
    assert found.state == "met"
    assert "bounds +0.0 to +2.5, " in found.why
    assert found.why.endswith("no drop")
    worse = result_of([[T] * 15 + [F] * 4 + [N]] * 20)
    (found,) = check_gate(worse, against=base).findings
    assert found.state == "not met"
    assert "bounds -5.0 to +0.0, " in found.why
    assert found.why.endswith("a regression (but 20 trials missing could change that)")
    hidden = result_of([[T] * 15 + [F] * 3 + [N] * 2] * 6 + [[T] * 16 + [F] * 4] * 14)
    (found,) = check_gate(hidden, against=base, max_drop=0.01).findings
    assert found.why.endswith("no drop (but 12 trials missing could change that)")


@pytest.mark.parametrize(("tasks", "expected"), [(5, None), (6, "not met")])
def test_too_few_tasks_for_any_regression_are_refused(tasks, expected):
    """Over five tasks not even a fall from all to nothing could be called a regression: that gate could not shut."""
    all_passed, none_passed = result_of([[T, T]] * tasks), result_of([[F, F]] * tasks)
    if expected:
        assert state(none_passed, against=all_passed) == expected
        return
    with pytest.raises(InvalidOption, match="5 tasks in common: over fewer than 6"):
        check_gate(none_passed, against=all_passed)


def test_tasks_that_only_the_baseline_has_are_told():
    """A run of fewer tasks than its baseline says how many of them it was held against."""
    (found,) = check_gate(result_of([[T]] * 7), against=result_of([[T]] * 9)).findings
    assert "paired over 7 of the baseline's 9 tasks" in found.why


def test_a_baseline_made_in_another_way_is_told():
    """Where run and baseline had not the same user, limits or instructions, the finding says so."""
    one, other = (replace(result_of([[T]] * 6), manifest={"settings": {"user": user}}) for user in ("scripted", "a:b"))
    assert check_gate(one, against=other).findings[0].why.endswith("no drop; the two were not made alike: user")
    assert check_gate(one, against=one).findings[0].why.endswith("no drop")


def test_a_baseline_of_other_tasks_is_refused():
    """Runs of different suites, or without a common task, can't regress from each other."""
    with pytest.raises(InvalidOption, match="different suites"):
        check_gate(RUN, against=replace(RUN, suite="shop"))
    other = result_of([[T]])
    other = replace(
        other, tasks=(replace(other.tasks[0], id="bank/z"),), records=(replace(other.records[0], task="bank/z"),)
    )
    with pytest.raises(InvalidOption, match="0 tasks in common"):
        check_gate(RUN, against=other)


@given(st.floats(0, 1), st.sampled_from([">=", "<=", ">", "<"]))
def test_the_opposite_sign_says_the_opposite(limit, sign):
    """Whatever the number, a figure meets exactly one of a requirement and its opposite."""
    opposite = {">=": "<", "<": ">=", "<=": ">", ">": "<="}
    assert {state(RUN, f"pass@1{s}{limit:.6f}") for s in (sign, opposite[sign])} == {"met", "not met"}


def test_the_states_of_many_tasks_agree_with_the_figures():
    """A requirement on all tasks at the run's own figure is met, a hair above it is not."""
    found = seeded_result()
    for name, figure in found.figures.named().items():
        value = figure.rate if name in ("observed k/k", "solved at least once") else figure.value
        assert state(found, f"{name}>={value:.12f}") == "met"
        assert state(found, f"{name}>{value:.12f}") == "not met"


def test_a_requirement_as_data():
    """A requirement says what it asks for."""
    found = Requirement.parse("tag:dispute:pass^5 >= 30%")
    assert (found.scope, found.pattern, found.figure, found.k) == ("tag", "dispute", "pass^k (unbiased)", 5)
    assert (found.sign, found.limit) == (">=", 0.3)
    assert Requirement.parse("task:a:b/1:pass@1>=1").pattern == "a:b/1"


def test_the_requirements_of_the_docs_can_be_read():
    """Every requirement that docs/gates.md shows is one."""
    text = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")
    shown = re.findall(r'[`"]([^`"\n]*(?:>=|<=)[^`"\n]+)[`"]', text)
    assert len(shown) > 15
    for requirement in shown:
        assert Requirement.parse(requirement).text == requirement
