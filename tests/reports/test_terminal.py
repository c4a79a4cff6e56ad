"""What a terminal shows is what happened, and nothing in it can drive the terminal."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import END_STATES, MISSING, UNEXPECTED, WRONG, record, result_of, seeded_result

from tbadapters.core.comparison import Comparison
from tbadapters.core.task_info import TaskInfo
from tbadapters.reports.terminal import render, show_trial
from tbadapters.reports.text import money, visible
from tbadapters.reports.trial_view import trial_view

T, F, N = True, False, None
HOSTILE = "\x1b[2J\x1b]0;owned\x07 [bold red]x[/] :smile: \x9b31m \u202egnp.exe \r over \ud800"


def test_a_result_shows_its_figures():
    """Headline, coverage, every figure by name, tags, worst tasks and failures are shown."""
    text = render(seeded_result(faults=0.05), width=120)
    for part in ("pass@1", "pass^k (plug-in), k = 5", "observed 5/5", "retention", "95% interval", "card_block"):
        assert part in text
    for part in ("150 planned", "missing", "Worst tasks", "looked clean", "accounts", "for example", "Spent:"):
        assert part in text


def test_bounds_are_shown_only_where_trials_are_missing():
    """The column of bounds appears when trials are missing, and not otherwise."""
    assert "if all missing" in render(result_of([[T, N]]))
    assert "if all missing" not in render(result_of([[T, F]]))


def test_a_mean_of_fewer_tasks_says_so():
    """A figure that only some tasks have enough trials for names their number."""
    assert "(1 of 2 tasks)" in render(result_of([[T, T], [T, N]]))


def test_a_stopped_run_and_an_unknown_price_are_named():
    """Why a run ended early is shown; a cost without a price reads as unknown, not as 0."""
    found = result_of([[T, F]])
    found = replace(found, stopped="quota", records=tuple(replace(r, cost=None) for r in found.records))
    text = render(found)
    assert "Stopped early: quota" in text
    assert "cost unknown" in text
    assert re.search(r"cost per success +unknown", text)
    assert re.search(r"cost per success +—", render(result_of([[F, F]])))


def test_a_comparison_shows_pairs_and_sentences():
    """Agents, pairs, the plain sentences and the tasks that differ most are shown."""
    text = render(Comparison({"A": result_of([[T, T]] * 6), "B": result_of([[F, T]] * 6)}), width=200)
    assert "+50.0 points" in text
    assert "A passes 50.0 points more often than B" in text
    assert "Where A and B differ most" in text


def test_a_trial_shows_its_effects_side_by_side():
    """Conversation, calls, the causing call, the golden action and initial, final, expected values are shown."""
    text = show_trial(record("t", 3, F, effects=[WRONG, MISSING]), TaskInfo("t", (), END_STATES))
    for part in ("t trial 3: failed", "user: I was charged", "agent: Done", '#0 get_account(account="ACC-7")'):
        assert part in text
    assert "[triage] refund_fee" in text
    assert "<- caused effect 1" in text
    assert 'golden action: open_ticket(account="ACC-7", topic="fee")' in text
    assert "100.00    130.00   125.00" in text
    assert "nearest allowed end state: refunded" in text


def test_a_faulted_trial_shows_its_fault():
    """A trial without verdict says so and names the owner of the fault."""
    text = show_trial(record("t", 0, N, attempt=2))
    assert "no verdict" in text
    assert "Fault of the provider (rate_limit): 429" in text
    assert "attempt 3" in text


@pytest.mark.parametrize("color", [False, True])
def test_hostile_text_cannot_drive_the_terminal(color):
    """Escape sequences, markup, direction marks and lone surrogates in any text are shown as harmless signs."""
    row = replace(WRONG, key=HOSTILE, final=HOSTILE)
    bad = record("t\x1b[31m", 0, F, effects=[row], said=HOSTILE, asked=HOSTILE, note=HOSTILE, end_reason=HOSTILE)
    found = result_of([[T]], agent=HOSTILE)
    found = replace(found, tasks=(TaskInfo(bad.task, (HOSTILE, "b")),), records=(bad,), stopped=HOSTILE)
    other = Comparison({HOSTILE: found, "B": found})
    for text in (show_trial(bad, color=color), render(found, color=color), render(other, color=color)):
        ours = text.replace("\x1b[", "") if color else text
        assert "\x1b]" not in text
        assert "\x1b[2J" not in text
        assert not set(ours) & set("\x07\x9b\r\u202e\ud800")
        assert color or "\x1b" not in text
        text.encode()
    for text in (show_trial(bad, width=400), render(found, width=400), render(other, width=400)):
        assert text.count("[bold red]x[/] :smile:") == text.count("smile")
        assert "smile" in text


@given(st.text())
def test_visible_text_is_printable(text):
    """Whatever is made visible can be encoded and holds no control character but line breaks and tabs."""
    shown = visible(text)
    shown.encode()
    assert all(c in "\n\t" or (ord(c) >= 32 and not 0x7F <= ord(c) <= 0x9F) for c in shown)
    assert visible(shown) == shown


def test_plain_text_is_left_alone():
    """Letters of any language, and emoji, pass as they are."""
    assert visible("Grüße, 你好, שלום 👩\u200d💻\n\tok") == "Grüße, 你好, שלום 👩\u200d💻\n\tok"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (0.0, "$0.00"), (12.3456, "$12.35"), (0.0123, "$0.0123"), (0.00001, "$1e-05")],
)
def test_money(value, text):
    """Small sums keep their digits, unknown ones a word."""
    assert money(value) == text


def test_every_executed_call_is_in_the_view():
    """A call that the transcript does not mention is shown all the same."""
    view = trial_view(replace(record("t", 0, T), transcript=()))
    assert [step.call.index for step in view.steps] == [0, 1]


def test_whole_rows_are_shown_by_column():
    """An effect on a whole row shows each of its columns; a row that is not there has no values."""
    row = replace(UNEXPECTED, column=None, initial=None, final={"a": 1, "b": None}, expected=None)
    (effect,) = trial_view(record("t", 0, F, effects=[row])).effects
    assert [(c.column, c.initial, c.final, c.expected) for c in effect.cells] == [
        ("a", None, "1", None),
        ("b", None, None, None),
    ]
    assert effect.call == 1


def test_a_notebook_gets_the_same_text(monkeypatch):
    """Where rich finds itself in Jupyter the text is not shown part by part and left empty, but the same as anywhere."""
    found = result_of([[T, F]])
    before = str(found)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(found) == before != ""
