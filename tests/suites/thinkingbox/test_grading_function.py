"""Promises of a task's own test function as text."""

from pathlib import Path

import pytest

from tbadapters.core.errors import GraderFault
from tbadapters.suites.thinkingbox.grading_function import GradingFunction

SOURCE = '''"""!
scenario: shop
"""
PRICE = 3


def helper(x):
    return x


def test_one(x):
    """!
    query: one
    """
    assert helper(x)


def test_two(x):
    """! query: two"""
    assert False
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "tests_of_shop.py").write_text(SOURCE)
    return tmp_path / "tests_of_shop.py"


def test_other_tests_are_blank_and_every_line_keeps_its_number(file: Path) -> None:
    """Of a file with several tests only the one that is meant is left, where it was."""
    code = GradingFunction(file, "test_two").code
    assert "test_one" not in code
    assert code.split("\n").index("def test_two(x):") == SOURCE.split("\n").index("def test_two(x):")
    assert len(code.split("\n")) == len(SOURCE.split("\n"))
    assert "def helper(x):" in code
    assert "PRICE = 3" in code


def test_of_two_tests_with_the_same_name_the_last_one_counts(tmp_path: Path) -> None:
    """A name that is defined twice means its last definition, as it does in Python."""
    path = tmp_path / "twice.py"
    path.write_text('def test_a(x):\n    """! query: a"""\n    one\n\ndef test_a(x):\n    """! query: a"""\n    two\n')
    code = GradingFunction(path, "test_a").code
    assert "two" in code
    assert "one" not in code


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        (SOURCE, "test_three", "holds no test named test_three"),
        (SOURCE, "helper", "holds no test named helper"),
        ("def test_(", "test_", "can't be read"),
    ],
)
def test_a_test_that_is_not_there_is_named(tmp_path: Path, source: str, name: str, said: str) -> None:
    """A function that is no test, or stands in no Python file, is a fault of the grader that names file and function."""
    path = tmp_path / "some.py"
    path.write_text(source)
    with pytest.raises(GraderFault, match=said) as raised:
        _ = GradingFunction(path, name).code
    assert raised.value.code == "no_test"
