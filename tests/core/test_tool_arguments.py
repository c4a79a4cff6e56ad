"""Arguments are validated the same for every framework, and the sentence names the mistake."""

import pytest

from tbadapters.core.tool_arguments import invalid_arguments
from tbadapters.core.tools import Tool

TOOL = Tool(
    "pay",
    "",
    {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "to": {"enum": ["A", "B"]}},
        "required": ["amount"],
        "additionalProperties": False,
    },
)


def test_fitting_arguments_are_accepted():
    """Arguments that fit the schema give no sentence."""
    assert invalid_arguments(TOOL, {"amount": 5, "to": "A"}) is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "amount"),
        ({"amount": "5"}, "amount"),
        ({"amount": 5, "to": "C"}, "to"),
        ({"amount": 5, "extra": 1}, "extra"),
        ([1], "list"),
        (None, "NoneType"),
    ],
)
def test_a_mistake_is_named(arguments, named):
    """What does not fit is answered with one sentence that names tool and argument."""
    sentence = invalid_arguments(TOOL, arguments)
    assert sentence is not None
    assert "pay" in sentence
    assert named in sentence
