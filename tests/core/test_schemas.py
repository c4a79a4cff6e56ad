"""``results.json`` and ``comparison.json`` are what their published schemas say, field by field."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError
from synthetic_runs import result_of, seeded_result

from tbadapters.core import comparison, results_file
from tbadapters.core.comparison import Comparison
from tbadapters.core.records import FaultRecord
from tbadapters.core.tool_fault_figures import tool_fault_figures
from tbadapters.core.tools import ToolCall, ToolResult

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
T, F, N = True, False, None


def closed(schema):
    """Return a schema that allows no field but those that it names: nothing may be written that is not documented."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        inner["additionalProperties"] = False
    return inner


def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(closed(schema))


def stopped_run():
    found = seeded_result(faults=0.3, trials=3)
    records = tuple(
        replace(r, fault=FaultRecord("agent", "exception", "x")) if r.passed is F else r for r in found.records
    )
    return replace(found, records=records[:-20], stopped="quota", manifest={"notes": ["read this"]})


def run_with_tool_faults():
    call = ToolCall(0, "pay", {}, ToolResult("late", None, is_error=True, fault="late_timeout"))
    found = result_of([[T, F, F], [T, T, F]])
    records = tuple(replace(r, tool_calls=(call,)) if r.index else r for r in found.records)
    assert tool_fault_figures(records)
    return replace(found, records=records)


RUNS = {
    "many trials": seeded_result,
    "faults": lambda: seeded_result(faults=0.2),
    "stopped": stopped_run,
    "tool faults": run_with_tool_faults,
    "nothing run": lambda: replace(result_of([[T, T]]), records=()),
    "one trial": lambda: result_of([[F]]),
    "no verdict": lambda: result_of([[N, N], [N, N]]),
    "unknown cost": lambda: replace(result_of([[T]]), records=(replace(result_of([[T]]).records[0], cost=None),)),
}


@pytest.mark.parametrize("name", RUNS)
def test_results_are_as_documented(name):
    """Whatever a run came to, its results have every documented field, of the documented type, and no other."""
    data = json.loads(json.dumps(RUNS[name]().to_dict(), allow_nan=False))
    validator("results-1").validate(data)


@pytest.mark.parametrize(
    "others",
    [
        {"A": lambda: result_of([[T, T]] * 3), "B": lambda: result_of([[T, N]] * 3)},
        {"A": lambda: result_of([[T]]), "B": lambda: result_of([[T, F]])},
        {"A": lambda: result_of([[N]]), "B": lambda: result_of([[N]])},
        {name: lambda skill=skill: seeded_result(skill=skill) for name, skill in (("A", 0.9), ("B", 0.5), ("C", 0.1))},
    ],
)
def test_comparisons_are_as_documented(others):
    """Whatever agents are compared, the comparison has every documented field, and no other."""
    found = Comparison({name: make() for name, make in others.items()})
    validator("comparison-1").validate(json.loads(json.dumps(found.to_dict(), allow_nan=False)))


def test_the_versions_are_those_of_the_schemas():
    """The name that a file carries is the one whose schema is published."""
    for name, version in (("results-1", results_file.SCHEMA), ("comparison-1", comparison.SCHEMA)):
        schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
        assert schema["$id"] == schema["properties"]["schema"]["const"] == version


@pytest.mark.parametrize(
    "change", [{"seed": "0"}, {"coverage": None}, {"trials": [{}]}, {"schema": "tbadapters.results/2"}, {"new": 1}]
)
def test_the_schema_refuses_what_is_otherwise(change):
    """A missing field, one of another type, and an undocumented one are noticed."""
    with pytest.raises(ValidationError):
        validator("results-1").validate(json.loads(json.dumps(result_of([[T]]).to_dict() | change)))
