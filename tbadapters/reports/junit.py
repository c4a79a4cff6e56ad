"""JUnit XML for continuous integration: one test case a task."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from tbadapters.core.comparison import Comparison
from tbadapters.core.result import RunResult, TaskResult
from tbadapters.core.statistics import all_passed
from tbadapters.reports.text import visible

# What XML 1.0 can't hold even as a reference (section 2.2 of the recommendation).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SHOWN = 20


def write(result: RunResult | Comparison, path: str | Path) -> Path:
    """Write a run's (or several runs') test cases and return the path.

    A task passes where all its planned trials passed, fails where one failed, and is skipped where the trials that
    have a verdict passed but others are missing.

    Raises:
        OSError: the file can't be written.
    """
    results = list(result.results.values()) if isinstance(result, Comparison) else [result]
    root = Element("testsuites")
    for found in results:
        root.append(_suite(found))
    indent(root)
    target = Path(path)
    ElementTree(root).write(target, encoding="utf-8", xml_declaration=True)
    return target


def _suite(result: RunResult) -> Element:
    suite = Element("testsuite", name=_text(f"{result.suite} ({result.agent})"))
    states = [all_passed(task.tally) for task in result.by_task.values()]
    counts = {"tests": len(states), "failures": states.count(False), "errors": 0, "skipped": states.count(None)}
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    suite.set("time", f"{sum(record.seconds.get('total', 0.0) for record in result.records):.3f}")
    properties = SubElement(suite, "properties")
    named = {"framework": result.framework, "seed": result.seed, "headline": result.headline}
    for name, value in (named | result.coverage.to_dict()).items():
        SubElement(properties, "property", name=name, value=_text(str(value)))
    for task in result.by_task.values():
        suite.append(_case(result, task))
    return suite


def _case(result: RunResult, task: TaskResult) -> Element:
    seconds = sum(record.seconds.get("total", 0.0) for record in task.trials)
    case = Element("testcase", classname=_text(result.suite), name=_text(task.task.id), time=f"{seconds:.3f}")
    tally = task.tally
    counts = f"{tally.passed} of {tally.valid} valid trials passed, {tally.planned} planned"
    state = all_passed(tally)
    if state is False:
        SubElement(case, "failure", type="failed", message=counts).text = _text("\n".join(_reasons(task)))
    elif state is None:
        SubElement(case, "skipped", message=f"undetermined: {counts}")
    return case


def _reasons(task: TaskResult) -> list[str]:
    lines = []
    for record in task.trials:
        if record.verdict is not None and record.passed is False:
            why = "; ".join(record.verdict.reasons) or "no reason was given"
            lines.append(f"trial {record.index}: {why} (ended by {record.end_reason})")
    return lines[:_SHOWN]


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", visible(text))
