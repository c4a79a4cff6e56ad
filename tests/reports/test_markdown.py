"""Markdown shows what the other reports show, and no text of an agent or user can become markup in it."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from synthetic_runs import WRONG, record, result_of, seeded_result

from tbadapters.core.comparison import Comparison
from tbadapters.core.records import FaultRecord
from tbadapters.core.task_info import TaskInfo
from tbadapters.reports.html import run_page
from tbadapters.reports.markdown import _table, code, markdown
from tbadapters.reports.text import visible

T, F, N = True, False, None
HOSTILE = (
    "a|b\n\n| @everyone ![x](http://evil/x.png) <script>alert(1)</script> `tick``ticks` [l](http://evil) #1 \x1b[31m"
)


def parsed(text):
    """Parse as GitHub does, tables included, and return every token, those within lines, too."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [inner for token in tokens for inner in (token, *(token.children or ()))]


def of_kind(text, kind):
    return [token for token in parsed(text) if token.type == kind]


def hostile_run(text=HOSTILE):
    fault = FaultRecord("agent", "exception", text)
    bad = record(text, 0, F, effects=[replace(WRONG, table=text, column=text)], end_reason=text)
    found = result_of([[T]], agent=text)
    tasks = (TaskInfo(text, (text, "b")), TaskInfo("u", (text, "b")))
    return replace(found, tasks=tasks, records=(replace(bad, fault=fault),), stopped=text, suite=text, framework=text)


def test_a_run_has_headline_coverage_and_every_figure():
    """Headline, coverage, every figure with its interval and bounds, failures and costs are there."""
    found = seeded_result(faults=0.03)
    text = markdown(found)
    assert f"**{found.headline}**" in text
    for part in (
        f"150 planned, {found.coverage.valid} valid",
        "pass^k (plug-in), k = 5",
        "observed 5/5",
        "cost per trial",
    ):
        assert part in text
    for part in ("if all missing failed / passed", "looked clean", "By tag", "Spent by the agent", "list price of"):
        assert part in text
    assert f"{100 * found.figures.pass_at_1.interval.low:.1f} to" in text
    assert "if all missing" not in markdown(result_of([[T, F]]))


def test_too_little_coverage_has_no_headline():
    """A run below its coverage floor says so in the place of its headline."""
    text = markdown(result_of([[T, N], [T, T]]))
    assert "⚠️ **No headline: only 75.0% of the planned trials have a verdict" in text


def test_a_comparison_has_sentences_and_differences():
    """The plain sentences, the agents, the pairs with Holm's correction and the tasks that differ most are there."""
    runs = {name: seeded_result(skill=skill, agent=name) for name, skill in (("a", 0.9), ("b", 0.6), ("c", 0.3))}
    text = markdown(Comparison(runs))
    assert "- `a` passes " in text
    assert "p (Holm)" in text
    assert text.count("Where they differ most") == 3
    assert len(of_kind(text, "table_open")) == 5


def test_user_and_judge_are_named_apart():
    """What the simulated user and the judge took stands beside what the agent took, not in it."""
    assert "By the user" not in markdown(result_of([[T]]))


@pytest.mark.parametrize("what", ["run", "comparison"])
def test_hostile_text_is_only_ever_code(what):
    """Links, images, markup, mentions and table rows in any text are shown as the text that they are."""
    bad = hostile_run()
    text = markdown(bad if what == "run" else Comparison({HOSTILE: bad, "B": hostile_run()}))
    kinds = {token.type for token in parsed(text)}
    assert not kinds & {"link_open", "image", "html_inline"}
    assert {token.content.split()[0] for token in of_kind(text, "html_block")} <= {"<details><summary>By", "</details>",
        "<details><summary>How", "<details><summary>What", "<details><summary>Where"}  # fmt: skip
    shown = "".join(token.content for token in of_kind(text, "text"))
    for part in ("evil", "script", "everyone", "tick", "#1"):
        assert part not in shown
        assert any(part in token.content for token in of_kind(text, "code_inline"))
    assert "\x1b" not in text


@given(st.text(min_size=1))
@settings(deadline=None)
def test_any_text_is_one_code_span(text):
    """Whatever a text holds, it is one code span, in a line and in a cell of a table, with nothing lost but white space."""
    expected = " ".join(visible(text).split())
    (in_cell,) = of_kind(_table(("a", "b"), [(code(text), "c")]), "code_inline")
    assert in_cell.content.strip() == expected.strip()
    (in_line,) = of_kind(f"on {code(text)} it", "code_inline")
    assert in_line.content.strip() == expected.strip()


@given(st.text(max_size=40))
@settings(max_examples=30, deadline=None)
def test_any_text_leaves_the_tables_whole(text):
    """Whatever the ids hold, each table keeps its rows and columns."""
    plain, odd = markdown(hostile_run("x")), markdown(hostile_run(text))
    for kind in ("table_open", "tr_open", "td_open", "html_block"):
        assert len(of_kind(odd, kind)) == len(of_kind(plain, kind))


def test_one_is_not_many():
    """A run of one task, one trial and one attempt without a verdict is told in the singular, in every report."""
    found = replace(result_of([[True]]), faulted=(record("bank/t0", 0, None, attempt=1),))
    for told in (str(found), markdown(found), run_page(found)):
        assert re.search(r"(^|[^0-9/])1 (task|trial|attempt)s\b", told) is None
        assert "1 task" in told
        assert "1 attempt" in told
    assert found.headline == "pass@1 is 100.0%; 1 of 1 task passed the only trial."
