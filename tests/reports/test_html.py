"""The page is one file that needs nothing else, and no text in it can become markup or code."""

import base64
import gzip
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic_runs import MISSING, WRONG, record, result_of, seeded_result

from tbadapters.core.comparison import Comparison
from tbadapters.core.messages import ModelRequest, Usage
from tbadapters.core.records import Spent
from tbadapters.core.task_info import TaskInfo
from tbadapters.reports.html import comparison_page, run_page, write

T, F, N = True, False, None
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'&lt;${x}"


class Page(HTMLParser):
    """Elements with their attributes, the text of scripts, and whether every element is closed."""

    VOID = frozenset({"meta", "link", "img", "br", "input", "rect", "line", "polyline", "polygon", "wbr"})

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            attrs = self.elements[-1][1]
            self.scripts[attrs.get("id", "")] = data


def hostile_run():
    bad = record(HOSTILE, 0, F, effects=[replace(WRONG, key=HOSTILE, final=HOSTILE)], said=HOSTILE, asked=HOSTILE)
    bad = replace(bad, end_reason=HOSTILE)
    found = result_of([[T]], agent=HOSTILE)
    tasks = (TaskInfo(HOSTILE, (HOSTILE, "b")),)
    return replace(found, tasks=tasks, records=(bad,), stopped=HOSTILE, suite=HOSTILE, framework=HOSTILE)


PAGES = {
    "run": lambda: seeded_result(faults=0.1),
    "run without failures": lambda: result_of([[T, T]]),
    "run of nothing": lambda: replace(result_of([[T, T]]), records=()),
    "one trial": lambda: result_of([[F]]),
    "comparison": lambda: Comparison({"A": seeded_result(), "B": seeded_result(seed=1, skill=0.4)}),
    "comparison of equals": lambda: Comparison({"A": result_of([[T]]), "B": result_of([[T]])}),
    "hostile run": hostile_run,
    "hostile comparison": lambda: Comparison({HOSTILE: hostile_run(), "B": hostile_run()}),
}


@pytest.fixture(params=PAGES)
def page(request, tmp_path):
    return write(PAGES[request.param](), tmp_path / "p.html").read_text(encoding="utf-8")


def test_the_page_is_well_formed(page):
    """Every element that is opened is closed, in order."""
    assert Page(page).open == []


def test_the_page_fetches_nothing(page):
    """No element names anything to load, and the policy forbids it."""
    elements = Page(page).elements
    assert not [tag for tag, attrs in elements if {"src", "srcset", "data", "action"} & set(attrs)]
    assert not [tag for tag, _ in elements if tag in ("link", "img", "iframe", "object", "embed")]
    assert "url(" not in page.split("</style>")[0]
    (policy,) = [a["content"] for t, a in elements if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")


def test_the_only_script_is_ours(page):
    """One script can run: the one whose digest the policy names; there are no event attributes."""
    parsed = Page(page)
    runnable = [attrs for tag, attrs in parsed.elements if tag == "script" and "type" not in attrs]
    assert runnable == [{}]
    digest = base64.b64encode(hashlib.sha256(parsed.scripts[""].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert not [name for _, attrs in parsed.elements for name in attrs if name.startswith("on")]


def test_hostile_text_is_shown_as_text():
    """A script tag in a task id, tag, agent's name or end reason is escaped, everywhere that it stands."""
    text = run_page(hostile_run())
    assert HOSTILE not in text
    assert "<img" not in text
    assert "&lt;/script&gt;&lt;script&gt;" in text


def test_long_names_break_where_their_parts_are_joined():
    """A task's id may be broken into lines after a slash, an underscore or a colon, and reads as it is."""
    found = result_of([[T]])
    found = replace(found, tasks=(TaskInfo("bank/a_b:<i>"),), records=(replace(found.records[0], task="bank/a_b:<i>"),))
    assert '<span class="name">a_<wbr>b:<wbr>&lt;i&gt;</span>' in run_page(found)


def test_the_trials_are_in_the_page():
    """Each task's trials are there, compressed, and read back as they were; a trial that was not run is null."""
    found = result_of([[T, F], [N]], k=2)
    parsed = Page(run_page(found))
    first, second = (json.loads(gzip.decompress(base64.b64decode(parsed.scripts[i]))) for i in ("d0", "d1"))
    assert [view["verdict"] for view in first] == ["passed", "failed"]
    assert first[1]["effects"][0]["caused_by"].startswith("refund_fee(")
    assert first[1]["steps"][-1]["text"] == "Done: I refunded the fee of 25.00 to your account."
    assert second[0]["verdict"] == "no verdict"
    assert second[1] is None


def test_every_trial_has_its_cell():
    """The grid has one cell a planned trial, which says in words what came of it and opens the trial."""
    cells = [
        a
        for t, a in Page(run_page(result_of([[T, F], [N]], k=2))).elements
        if t == "a" and "cell" in a.get("class", "")
    ]
    assert [cell["href"] for cell in cells] == ["#t0/0", "#t0/1", "#t1/0", "#t1/1"]
    words = ["trial 0: passed", "trial 1: failed", "trial 0: no verdict", "trial 1: not run"]
    assert [cell["aria-label"] for cell in cells] == words


def test_drawings_have_words():
    """Every drawing has a text alternative."""
    drawings = [a for t, a in Page(run_page(seeded_result())).elements if t == "svg" and "aria-hidden" not in a]
    assert drawings
    assert all(a["role"] == "img" and a["aria-label"] for a in drawings)


def test_headline_figures_stand_at_the_top():
    """Agent, suite, pass@1 with its interval, and coverage are on the page before the tasks."""
    top = run_page(seeded_result(faults=0.1)).split('id="tasks"')[0]
    for part in ("my-agent", "neobank", "pass@1 is", "95% interval", "150 planned", "observed 5/5"):
        assert part in top


def test_too_little_coverage_is_said_first():
    """A run with too few verdicts has no headline but a warning."""
    text = run_page(result_of([[T, N], [T, T]]))
    assert re.search(r'<p class="lead warn">No headline: only 75\.0%', text)


def test_a_refused_headline_stands_on_no_card():
    """Below the floor of coverage the card of pass@1 shows its bounds in large, not the rate."""
    found = result_of([[T, N], [T, T]])
    assert '<p class="big">75.0 to 100.0%</p>' in run_page(found)
    assert '<p class="big">100.0%</p>' not in run_page(found)
    assert '<p class="big">100.0%</p>' in run_page(result_of([[T, T], [T, T]]))


def test_a_run_without_a_verdict_is_no_result():
    """No trial with a verdict is neither one task, nor agreement with another run."""
    nothing = result_of([[None, None]] * 4)
    assert "no task has a verdict" in run_page(nothing)
    assert "single task" not in run_page(nothing)
    page = comparison_page(Comparison({"A": nothing, "B": result_of([[True, True]] * 4)}), Path("c.html"))
    assert "No task has a valid trial of both." in page
    assert "They agree on every task" not in page


def test_notes_stand_under_the_headline():
    """What a suite says of its figures is read before any figure but the headline, on both kinds of pages."""
    note = {"notes": ["The clock is not canonical."]}
    found = replace(result_of([[T, F]]), manifest=note)
    for text in (run_page(found), comparison_page(Comparison({"A": found, "B": result_of([[T, F]])}), Path("x.html"))):
        head = text.split("<section")[0]
        assert head.index('class="lead') < head.index("The clock is not canonical.")


def test_what_was_spent_and_disturbed_apart_is_told():
    """Tokens of the simulated user and the judge, and what disturbed the run, stand below the figures."""
    asked = Spent((ModelRequest("gpt-4o-mini", Usage(900, 0, 100)),), 0.25)
    found = result_of([[T]])
    (trial,) = found.records
    found = replace(found, records=(replace(trial, user=asked, judge=asked, abandoned=True),))
    text = run_page(found)
    assert re.search(r"The simulated user took 1,000 tokens, \$0\.2500, apart from the agent\.", text)
    assert re.search(r"The judge took 1,000 tokens", text)
    assert all(html.escape(sentence) in text for sentence in found.disturbances.sentences)
    assert "did not end when it was cancelled" in text


def test_a_comparison_links_to_the_runs(tmp_path):
    """The page of a comparison links to each run's page, and to each task on it, relative to its own folder."""
    a = replace(result_of([[T]]), folder=tmp_path / "run a")
    comparison = Comparison({"A": a, "B": result_of([[F]])})
    (tmp_path / "both").mkdir()
    text = write(comparison, tmp_path / "both" / "report.html").read_text()
    links = [attrs["href"] for tag, attrs in Page(text).elements if tag == "a"]
    assert links == ["../run%20a/report.html", "../run%20a/report.html#t0"]


def test_equal_results_give_equal_pages(tmp_path):
    """The page holds no time and no chance: a resumed run's page can be compared byte by byte."""
    one, two = (write(seeded_result(seed=4), tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert one == two
    stamp = base64.b64decode(Page(one.decode()).scripts["d0"])[4:8]
    assert stamp == bytes(4)


def test_lone_surrogates_do_not_break_the_page(tmp_path):
    """Text that is no Unicode, as a model may send, still gives a page."""
    found = replace(
        result_of([[T]], agent="a\ud800"), records=(record("bank/t0", 0, F, effects=[MISSING], said="\udfff"),)
    )
    assert "a\ufffd" in write(found, tmp_path / "p.html").read_text(encoding="utf-8")


FOOLING = "a\x00\x1b]0;title\x07\x9b31m \u202egnp.exe \ud83d"


def test_characters_that_fool_a_reader_are_shown(tmp_path):
    """Control characters and turned writing reach neither the page nor the data of its trials as they are."""
    bad = record("bank/t0", 0, F, effects=[replace(WRONG, key=FOOLING, final=FOOLING)], said=FOOLING, asked=FOOLING)
    found = replace(result_of([[T]], agent=FOOLING), records=(replace(bad, end_reason=FOOLING),), stopped=FOOLING)
    for name, what in (("run", found), ("comparison", Comparison({FOOLING: found, "B": found}))):
        page = write(what, tmp_path / f"{name}.html").read_bytes().decode()
        scripts = Page(page).scripts
        data = [gzip.decompress(base64.b64decode(raw)).decode() for key, raw in scripts.items() if key]
        assert len(data) == (1 if name == "run" else 0)
        for shown in (page, *map(repr, map(json.loads, data))):
            assert "<U+202E>gnp.exe" in html.unescape(shown)
            assert not {"\x00", "\x1b", "\x07", "\x9b", "\u202e", "\ud83d"} & set(shown)
            assert not re.search(r"\\x[019]|\\u202e|\\ud83d", shown)


def test_curves_of_fewer_tasks_say_so():
    """Where missing trials leave few tasks with all k of them, the page says of how many its curves are at k."""
    lacking, whole = (run_page(result_of([[True, True], [False, last]])) for last in (None, True))
    assert "at k = 2 they are of 1 of 2 tasks" in lacking
    assert "at k = 2 they are of" not in whole
