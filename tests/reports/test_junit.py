"""JUnit's file says of each task whether all its trials passed."""

from dataclasses import replace
from xml.etree.ElementTree import fromstring

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic_runs import record, result_of

from tbadapters.core.comparison import Comparison
from tbadapters.reports.junit import write

T, F, N = True, False, None


def parsed(found, folder):
    return fromstring(write(found, folder / "j.xml").read_bytes())


def test_one_case_a_task(tmp_path):
    """A task passes when all planned trials passed, fails when one failed, and is skipped while it is undetermined."""
    suite = parsed(result_of([[T, T], [T, F], [T, N]]), tmp_path).find("testsuite")
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    cases = suite.findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [[], ["failure"], ["skipped"]]
    assert cases[1].find("failure").get("message") == "1 of 2 valid trials passed, 2 planned"
    assert "trial 1: wrong_value in accounts" in cases[1].find("failure").text


def test_coverage_is_a_property(tmp_path):
    """Planned, valid and missing trials are in the file."""
    properties = parsed(result_of([[T, N]]), tmp_path).iter("property")
    named = {p.get("name"): p.get("value") for p in properties}
    assert (named["planned"], named["valid"], named["missing"]) == ("2", "1", "1")


def test_a_comparison_has_a_suite_an_agent(tmp_path):
    """A comparison's file holds one test suite for each agent."""
    comparison = Comparison({"A": result_of([[T]], agent="A"), "B": result_of([[F]], agent="B")})
    names = [suite.get("name") for suite in parsed(comparison, tmp_path).findall("testsuite")]
    assert names == ["bank (A)", "bank (B)"]


@given(text=st.text(alphabet=st.characters()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_gives_valid_xml(text, tmp_path):
    """Whatever an agent's name, an end reason or a reason holds, the file is XML."""
    failed = replace(record("bank/t0", 0, F), end_reason=text)
    found = replace(result_of([[F]], agent=text), records=(failed,), stopped=text)
    assert parsed(found, tmp_path).find("testsuite") is not None


def test_characters_that_fool_a_reader_are_shown(tmp_path):
    """Control characters and turned writing stand in the file as what they are called, not as they are."""
    found = result_of([[T]], agent="a\x9b31m\u202egnp.exe\x1b")
    assert parsed(found, tmp_path).find("testsuite").get("name") == "bank (a\ufffd31m<U+202E>gnp.exe\u241b)"
