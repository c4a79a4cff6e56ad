"""Promises of ``@reads`` and ``@writes``: how a function's signature becomes a tool."""

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from tbadapters.core.errors import SuiteError, ToolError
from tbadapters.sandboxes.records import singular
from tbadapters.sandboxes.sqlite import Records, reads, writes


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    title: str
    count: int = Field(ge=1, description="How many.")


@writes(needs_approval=True)
async def order(
    db: Records,
    *,
    customer_id: Annotated[str, Field(description="The customer's id.")],
    lines: list[Line],
    colour: Colour,
    speed: Literal["slow", "fast"] = "slow",
    note: str | None = None,
) -> dict[str, Any]:
    """Order something.

    It is sent at once.
    """
    return {"customer_id": customer_id, "lines": [line.count for line in lines], "colour": colour.value, "note": note}


def test_a_tool_is_made_of_its_function():
    """Name, docstring, approval and kind come from the function and its mark."""
    tool = order.tool
    assert (tool.name, tool.needs_approval, tool.writes) == ("order", True, True)
    assert tool.description == "Order something.\n\nIt is sent at once."


def test_the_schema_is_plain_and_complete():
    """The schema is inline, closed, without titles, with descriptions and defaults; a field named title stays."""
    assert order.tool.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["customer_id", "lines", "colour"],
        "properties": {
            "customer_id": {"type": "string", "description": "The customer's id."},
            "lines": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["title", "count"],
                    "properties": {
                        "title": {"type": "string"},
                        "count": {"type": "integer", "minimum": 1, "description": "How many."},
                    },
                },
            },
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "speed": {"type": "string", "enum": ["slow", "fast"], "default": "slow"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
    }
    Draft202012Validator.check_schema(order.tool.parameters)


def test_a_tool_without_arguments_has_an_empty_schema():
    """A tool that takes nothing says so."""

    @reads
    async def nothing(db: Records) -> str:
        """Do nothing."""
        return ""

    assert nothing.tool.parameters == {"type": "object", "additionalProperties": False, "properties": {}}
    assert (nothing.tool.writes, nothing.tool.needs_approval) == (False, False)


def test_arguments_arrive_as_their_types():
    """Models and enums are made of the JSON that the agent sent; what was not given is left to the defaults."""
    given = order.validated({"customer_id": "C", "lines": [{"title": "x", "count": 2}], "colour": "red"})
    assert given == {"customer_id": "C", "lines": [Line(title="x", count=2)], "colour": Colour.RED}
    assert order.run(None, given) == {"customer_id": "C", "lines": [2], "colour": "red", "note": None}


async def test_a_tool_can_call_another():
    """The marked function is still a function."""
    assert (await order(None, customer_id="C", lines=[], colour=Colour.BLUE))["colour"] == "blue"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "green"}, "colour: Input should be 'red' or 'blue'"),
        ({"lines": [{"title": "x", "count": 0}]}, "lines.0.count: Input should be greater than or equal to 1"),
        ({"customer_id": 5}, "customer_id: Input should be a valid string"),
        ({"speed": None}, "speed: Input should be 'slow' or 'fast'"),
        ({"extra": 1}, "extra: Extra inputs are not permitted"),
        ({"customer_id": {1, 2}}, "not JSON serializable"),
    ],
)
def test_wrong_arguments_are_explained(change, said):
    """Arguments that do not fit are answered with the place and the reason."""
    good = {"customer_id": "C", "lines": [], "colour": "red"}
    with pytest.raises(ToolError, match=said.replace(".", r"\.")):
        order.validated({**good, **change})


class Loop(BaseModel):
    inner: "list[Loop]"


def _undocumented():
    async def tool(db: Records) -> str:
        return ""

    return tool


def _sync():
    def tool(db: Records) -> str:
        """Wait."""
        return ""

    return tool


def _without_records():
    async def tool(box: str) -> str:
        """Wait."""
        return ""

    return tool


def _untyped():
    async def tool(db: Records, box) -> str:
        """Wait."""
        return ""

    return tool


def _many():
    async def tool(db: Records, *boxes: str) -> str:
        """Wait."""
        return ""

    return tool


def _reserved():
    async def tool(db: Records, copy: str) -> str:
        """Wait."""
        return ""

    return tool


def _endless():
    async def tool(db: Records, loop: Loop) -> str:
        """Wait."""
        return ""

    return tool


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_undocumented, "needs a docstring"),
        (_sync, "must be an async function"),
        (_without_records, "must be the records"),
        (_untyped, "needs a type"),
        (_many, "needs a type and a plain name"),
        (_reserved, "'copy' of the tool 'tool' is reserved"),
        (_endless, "'Loop' refers to itself"),
    ],
)
def test_a_function_that_can_be_no_tool_is_refused(make, said):
    """What can't become a tool is refused where it is marked, in one sentence."""
    with pytest.raises(SuiteError, match=said):
        writes(make())


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ("cards", "card"),
        ("identity_checks", "identity check"),
        ("policies", "policy"),
        ("addresses", "address"),
        ("boxes", "box"),
        ("branches", "branch"),
        ("cases", "case"),
        ("staff", "staff"),
        ("access", "access"),
    ],
)
def test_a_row_is_named_by_its_table(table, word):
    """The word for a row is the singular of its table's name."""
    assert singular(table) == word
