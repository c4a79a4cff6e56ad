"""What the documentation of the scripted model server shows works as it stands."""

import inspect
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def shown():
    """Return the test functions in the page's code blocks, by name."""
    found = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)):
        names = {"__name__": f"docs_testing_{number}"}
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
        found.update({name: value for name, value in names.items() if name.startswith("test_")})
    return found


SHOWN = shown()


def test_the_page_shows_tests():
    """The page is found, with a test in each of its code blocks."""
    assert len(SHOWN) == 4


@pytest.mark.parametrize("name", SHOWN)
async def test_shown_code_works(name, tmp_path):
    """Each test that the page shows passes."""
    given = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(SHOWN[name]).parameters else {}
    outcome = SHOWN[name](**given)
    if inspect.isawaitable(outcome):
        await outcome
