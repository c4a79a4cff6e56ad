"""The page in a real Chromium: opened from disk, clicked, walked by keyboard, read on a phone, in light and dark."""

import os
from dataclasses import replace
from pathlib import Path

import large_run
import pytest
from browser import REQUIRED, chromium, chromium_path
from synthetic_runs import WRONG, record, result_of, seeded_result

from tbadapters.core.comparison import Comparison
from tbadapters.core.result import RunResult
from tbadapters.core.run_folder import load_result
from tbadapters.core.task_info import TaskInfo
from tbadapters.reports.html import write

T, F = True, False
FULL = os.environ.get("TBADAPTERS_FULL") == "1"
HOSTILE = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>"
OPEN = "document.getElementById('trial').open"
SHOWN = "document.getElementById('shown').textContent"
BODY = "document.getElementById('trial-body').textContent"
TITLE = "document.getElementById('trial-title').textContent"
FOCUSED = "document.activeElement.hash || document.activeElement.id"
VISIBLE = "[...document.querySelectorAll('.row:not([hidden])')].map((row) => row.id || row.cells[0].textContent)"


@pytest.fixture(scope="module")
def browser():
    if chromium_path() is None:
        why = "no Chromium is installed (apt-get install chromium)"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(why)
        pytest.skip(why)
    with chromium() as running:
        yield running


def hostile_run() -> RunResult:
    bad = record(HOSTILE, 0, F, effects=[replace(WRONG, final=HOSTILE)], said=HOSTILE, asked=HOSTILE, note=HOSTILE)
    found = replace(result_of([[T]], agent=HOSTILE), tasks=(TaskInfo(HOSTILE, (HOSTILE, "b")),), records=(bad,))
    return replace(found, stopped=HOSTILE, framework=HOSTILE, manifest={"notes": [HOSTILE]})


def canonical_run() -> RunResult:
    tasks, empty = large_run.tasks(), {"transcript": (), "tool_calls": (), "requests": ()}
    outcomes = {passed: replace(record("t", 0, passed), **empty) for passed in (T, F)}
    trials = [(task.id, i, i % 7 < 5 + n % 3) for n, task in enumerate(tasks) for i in range(20)]
    records = tuple(replace(outcomes[passed], task=task, index=index) for task, index, passed in trials)
    return RunResult("thinkingbox", "my-agent", "langgraph", 20, 0, tasks, records)


PAGES = {
    "run": lambda: replace(seeded_result(faults=0.1), manifest={"notes": ["The clock is not canonical."]}),
    "hostile run": hostile_run,
    "canonical run": canonical_run,
    "one trial": lambda: result_of([[F]]),
    "comparison": lambda: Comparison(
        {"A": seeded_result(), "B": seeded_result(seed=1, skill=0.4), "C": seeded_result(seed=2)}
    ),
    "hostile comparison": lambda: Comparison({HOSTILE: hostile_run(), "B": hostile_run()}),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: write(make(), folder / f"{name}.html") for name, make in PAGES.items()}


def test_a_click_on_a_cell_opens_its_trial_and_leads_back(browser, pages):
    """A cell opens its trial; the closing button, Escape and the browser's way back lead to the grid, to that cell."""
    browser.open(pages["run"])
    for leave in (
        lambda: browser.click("#close"),
        lambda: browser.press("Escape"),
        lambda: browser.run("history.back()"),
    ):
        browser.click("#t7 a.cell:nth-child(3)")
        browser.wait(OPEN)
        assert browser.run(TITLE) == "dispute/1, trial 2"
        leave()
        browser.wait(f"!{OPEN}")
        browser.wait("document.activeElement.getAttribute('href') === '#t7/2'")
        browser.wait("location.hash === ''")


def test_a_trial_shows_effects_and_the_call_that_caused_them(browser, pages):
    """Initial, final and expected values stand side by side; effect and causing call lead to each other."""
    browser.open(pages["run"], hash_="#t0/1")
    browser.wait(OPEN)
    cells = "[...document.querySelectorAll('.effect')[0].querySelectorAll('td')].map((cell) => cell.textContent)"
    assert browser.run(cells) == ["balance", "100.00", "130.00", "125.00"]
    assert browser.run("document.querySelector('.call.caused').dataset.call") == "1"
    browser.click(".effect .jump")
    assert browser.run("document.activeElement.dataset.call") == "1"
    browser.click(".call .jump")
    assert browser.run("document.activeElement.dataset.effect") == "1"
    assert "I was charged a fee twice" in browser.run(BODY)


def test_search_and_filters_work_by_keyboard(browser, pages):
    """Without a mouse: search, choose tasks, tags, trials and the order."""
    browser.open(pages["run"])
    browser.press("/", "dispute")
    assert browser.run(SHOWN) == "5 of 30 tasks"
    assert browser.run(VISIBLE) == ["t1", "t7", "t13", "t19", "t25"]
    browser.press("x")
    assert browser.run(SHOWN) == "0 of 30 tasks"
    browser.press("Escape")
    assert browser.run(SHOWN) == "30 of 30 tasks"
    browser.press("Tab", "ArrowDown")  # with a failed trial
    failed = browser.run(VISIBLE)
    assert 0 < len(failed) < 30
    browser.press("ArrowUp", "Tab", "ArrowDown")  # the first tag
    assert browser.run(SHOWN) == "5 of 30 tasks"
    browser.press("ArrowUp", "Tab", "ArrowDown")  # failed, but looked clean
    assert browser.run(SHOWN).endswith("tasks, 35 trials")
    assert browser.run("document.querySelectorAll('.cell.hit').length") == 35
    browser.press("ArrowUp", "Tab", "ArrowDown")  # fewest passes first
    shares = "[...document.querySelectorAll('.row:not([hidden])')].map((row) => Number(row.dataset.rate))"
    found = browser.run(shares)
    assert found == sorted(found)


def test_the_grid_is_walked_by_keyboard(browser, pages):
    """The grid is one stop of Tab; arrows go from cell to cell, Enter opens, arrows go on, Escape ends where one is."""
    browser.open(pages["run"])
    browser.run("document.getElementById('order').focus()")
    browser.press("Tab")
    assert browser.run(FOCUSED) == "#t0/0"
    browser.press("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft")
    assert browser.run(FOCUSED) == "#t0/1"
    browser.press("End")
    assert browser.run(FOCUSED) == "#t0/4"
    browser.press("Home", "Enter")
    browser.wait(OPEN)
    browser.press("ArrowRight")
    browser.wait(f"{TITLE} === 'card_block/0, trial 1'")
    browser.press("Escape")
    browser.wait(f"!{OPEN} && document.activeElement.hash === '#t0/1'")
    browser.press("Tab")
    assert browser.run("document.activeElement.closest('#grid')") is None


def test_hostile_text_is_shown_as_text(browser, pages):
    """A script tag in a reply, an argument, a task's id and a user's message is read, and never run."""
    browser.open(pages["hostile run"])
    browser.click("a.cell")
    browser.wait(OPEN)
    said = browser.run("[...document.querySelectorAll('.said')].map((node) => node.textContent)")
    assert said == [f"user{HOSTILE}", f"agent{HOSTILE}"]
    assert HOSTILE in browser.run("document.querySelectorAll('.call')[1].textContent")
    assert browser.run("document.querySelector('td.differs').textContent") == HOSTILE
    assert browser.run(TITLE) == f"{HOSTILE}, trial 0"
    assert browser.run("document.querySelector('h1').textContent") == HOSTILE
    assert browser.run("window.owned") is None
    assert browser.run("document.images.length + document.querySelectorAll('script:not([type])').length") == 1
    browser.open(pages["hostile comparison"])
    assert HOSTILE in browser.run("document.querySelector('h1').textContent")
    assert browser.run("window.owned") is None


@pytest.mark.parametrize("name", PAGES)
def test_no_complaint_and_no_request(browser, pages, name):
    """The console stays empty, and nothing is requested but the page itself, also when a trial is opened."""
    browser.open(pages[name])
    if "comparison" not in name:
        browser.click("a.cell")
        browser.wait(OPEN)
    assert browser.complaints == []
    assert browser.requests == [pages[name].resolve().as_uri()]


# Wide tables have a bar of their own to scroll them by; whatever else ends beyond the edge is cut off.
JUTTING = """[...document.querySelectorAll('main *')].filter((node) => !node.closest('.scroll, svg, .sr, dialog')
  && node.getBoundingClientRect().right > innerWidth + 1).map((node) => node.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_juts_out_on_a_phone(browser, pages, name):
    """At a phone's width the page and an open trial scroll up and down only, and nothing is cut off."""
    browser.open(pages[name], width=360, height=740)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.run("document.styleSheets[0].insertRule('.row { content-visibility: visible !important }')")
    assert browser.run(JUTTING) == []
    if "comparison" not in name:
        browser.click("a.cell")
        browser.wait(OPEN)
        assert browser.run("document.getElementById('trial').scrollWidth") <= 360


CONTRASTS = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["run", "canonical run", "comparison"])
def test_text_is_readable_in_light_and_dark(browser, pages, name, dark):
    """All text has a contrast of at least 4.5 to what it stands on (WCAG 2.2, AA), in an open trial, too."""
    browser.open(pages[name], dark=dark)
    assert browser.run(CONTRASTS) == []
    if name == "run":
        browser.click("#t0 a.cell:nth-child(2)")
        browser.wait(OPEN)
        assert browser.run(CONTRASTS) == []


def test_a_comparison_leads_to_a_task_of_a_run(browser, tmp_path):
    """A task's cell on a comparison's page opens that task on the page of the agent's own run."""
    results = {}
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        results[name] = replace(seeded_result(tasks=8, agent=name), folder=tmp_path / name)
        write(results[name], tmp_path / name / "report.html")
    browser.open(write(Comparison(results), tmp_path / "report.html"))
    browser.click(".matrix .row:nth-child(3) td:nth-child(3) a")
    browser.wait("location.hash === '#t2' && document.readyState === 'complete'")
    assert browser.run("document.querySelector('h1').textContent") == "B"
    assert browser.run("document.querySelector('.row:target .name').textContent") == "transfer/0"


def test_a_comparison_is_searched_by_keyboard(browser, pages):
    """On a comparison's page, too, the search and the filter work without a mouse."""
    browser.open(pages["comparison"])
    browser.press("/", "dispute")
    assert browser.run(SHOWN) == "5 of 30 tasks"
    browser.press("Tab", "ArrowDown", "ArrowDown")  # where they agree
    alike = browser.run(
        "[...document.querySelectorAll('.row:not([hidden])')].every((row) => row.dataset.alike === '1.0')"
    )
    assert alike


@pytest.mark.skipif(not FULL, reason="10,140 trials take a minute to make: TBADAPTERS_FULL=1")
@pytest.mark.timeout(600)
def test_ten_thousand_trials_open_in_three_seconds(browser, tmp_path):
    """The page of 507 tasks x 20 trials of realistic length is loaded and drawn in less than 3 s, a trial in 1 s."""
    large_run.keep(tmp_path / "run")
    page = load_result(tmp_path / "run").report(tmp_path / "report.html")
    seconds = browser.open(page)
    print(f"{page.stat().st_size / 1e6:.1f} MB, {seconds:.2f} s")  # noqa: T201 - the figure that is measured
    assert seconds < 3
    browser.run("location.hash = '#t300/3'")
    browser.wait(OPEN, seconds=1)
