"""Progress while a run goes on: what is under way, how fast models are asked, what blocks."""

from tbadapters.core.events import LoopBlocked, PaceChanged, RunEnded, RunPlanned, TrialEnded, TrialStarted
from tbadapters.core.records import AttemptRecord
from tbadapters.reports.progress import progress_display

PLAN = RunPlanned("mine", "desk", 3, 6, 0, None, "nothing is known")
BLOCK = LoopBlocked(7.2, "agents.py:12 in \x1b]0;slow", "desk/hold/1 trial 0")


def shown(capsys, mode, *events):
    """Return what is printed for these events, as one line."""
    with progress_display(mode) as show:
        for event in events:
            show(event)
    return " ".join(capsys.readouterr().err.split())


def test_what_is_under_way_and_how_fast_models_are_asked(capsys, monkeypatch):
    """The live line says how many trials are under way, and which endpoint is asked how often a second."""
    monkeypatch.setenv("COLUMNS", "300")
    started = [TrialStarted("mine", f"desk/hold/{n}", 0) for n in (1, 2, 3)]
    ended = TrialEnded("mine", AttemptRecord("desk/hold/1", 0, 0, "settled", None))
    text = shown(capsys, "on", PLAN, *started, ended, PaceChanged(12, {"api.example:443": 19.62, "[::1]:80": 3.0}))
    assert "2 under way" in text
    assert "slowed to [::1]:80 3/s, api.example:443 19.6/s" in text
    assert "1/6" in text


def test_a_pace_that_is_free_again_is_not_shown(capsys, monkeypatch):
    """When no endpoint refuses any more, nothing is said of it."""
    monkeypatch.setenv("COLUMNS", "300")
    text = shown(capsys, "on", PLAN, PaceChanged(12, {"api.example:443": 19.62}), PaceChanged(13, {}))
    assert "slowed" not in text


def test_what_blocked_the_loop_is_said_in_a_line_of_its_own(capsys):
    """On a terminal or not, a line names what blocked the loop, without escape sequences; switched off, nothing is said."""
    for mode in ("on", "auto"):
        text = shown(capsys, mode, PLAN, BLOCK, RunEnded("mine", None))
        assert "agents.py:12 in" in text
        assert "(desk/hold/1 trial 0) blocked the event loop" in text
        assert "7 s" in text
        assert "\x1b]0;" not in text
    assert shown(capsys, "off", PLAN, BLOCK) == ""
