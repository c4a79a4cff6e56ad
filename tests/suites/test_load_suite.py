"""Promises of the registry of suites."""

from pathlib import Path

import pytest

from tbadapters.core.errors import InvalidOption, SuiteError, UnknownName, UsageError
from tbadapters.suites import load_suite, suite_names

DATA = Path(__file__).parents[1] / "data"


def written(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_installed_suites_are_named():
    """The built-in suites are known by name."""
    assert "neobank" in suite_names()


def test_a_misspelt_name_is_answered_with_the_nearest():
    """An unknown suite is refused, the nearest name given."""
    with pytest.raises(UnknownName, match=r"There is no suite 'neobnk'. Did you mean 'neobank'\?"):
        load_suite("neobnk")


def test_a_suite_is_loaded_from_a_file_with_options():
    """A file's load function is called with the options, as text path or as Path."""
    assert len(load_suite(DATA / "desk.py", size=2).tasks) == 2
    assert load_suite(str(DATA / "library.py"), suite_seed=3).seed == 3


def test_a_file_may_define_the_suite_itself(tmp_path):
    """A file that defines ``suite`` needs no function; ``suite_seed`` builds it anew where it can be."""
    path = written(tmp_path, f"import sys\nsys.path.insert(0, {str(DATA)!r})\nimport library\nsuite = library.load()\n")
    assert load_suite(path).seed == 0
    assert load_suite(path, suite_seed=0) is not None
    assert load_suite(path, suite_seed=4).seed == 4
    with pytest.raises(InvalidOption, match=r"has no option 'size'\. It has suite_seed"):
        load_suite(path, size=4)


LATER = """
import sys
sys.path.insert(0, {data!r})
import anyio, library
async def load():
    await anyio.sleep(0)
    return library.load()
"""


async def test_a_load_function_may_be_async(tmp_path, unblocked_loop):
    """A load function that awaits, as one does that asks a server for its tools, is waited for, inside of a loop, too."""
    unblocked_loop.deactivate()  # loading a suite reads files
    path = written(tmp_path, LATER.format(data=str(DATA)))
    assert load_suite(path).name == load_suite(DATA / "library.py").name
    path.write_text("async def load():\n    raise OSError('no server')\n")
    with pytest.raises(SuiteError, match="can't be loaded: OSError: no server"):
        load_suite(path)


def test_a_suite_that_can_not_be_reseeded_has_no_options(tmp_path):
    """A finished suite without reseed has no option at all."""
    path = written(tmp_path, f"import sys\nsys.path.insert(0, {str(DATA)!r})\nimport desk\nsuite = desk.load()\n")
    with pytest.raises(InvalidOption, match=r"has no option 'suite_seed'\. It has none"):
        load_suite(path, suite_seed=4)


def test_a_suite_is_loaded_from_a_module(monkeypatch):
    """``module:attr`` is a Suite or a function that returns one."""
    monkeypatch.syspath_prepend(str(DATA))
    assert load_suite("library:load", suite_seed=2).seed == 2
    with pytest.raises(UnknownName, match="Did you mean 'library:load'"):
        load_suite("library:laod")
    with pytest.raises(UsageError, match=r"can't be imported: ModuleNotFoundError"):
        load_suite("no_such_module:load")


def test_an_unknown_option_is_refused():
    """An option that the suite does not have is refused before anything is built."""
    with pytest.raises(InvalidOption, match=r"has no option 'sizes'\. It has size"):
        load_suite(DATA / "desk.py", sizes=2)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("x = 1", SuiteError, "defines neither suite"),
        ("import nothing_of_this_name", SuiteError, "can't be imported: ModuleNotFoundError"),
        ("suite = 5", SuiteError, "neither a Suite nor a function"),
        ("def load(): return 5", SuiteError, "returned int, not a Suite"),
        ("def load(): return 1 / 0", SuiteError, "can't be loaded: ZeroDivisionError"),
        ("from tbadapters.core.errors import UsageError\ndef load(): raise UsageError('no')", UsageError, "^no$"),
    ],
)
def test_a_wrong_suite_file_is_explained(tmp_path, text, error, said):
    """A file that gives no suite is refused in one sentence; errors of ours pass as they are."""
    with pytest.raises(error, match=said):
        load_suite(written(tmp_path, text))


def test_a_suite_file_that_is_not_there_is_named():
    """A path that leads nowhere is said to lead nowhere."""
    with pytest.raises(UsageError, match=r"There is no suite file 'nowhere.py'"):
        load_suite("nowhere.py")


def test_any_option_may_be_taken(tmp_path):
    """A function with ``**options`` decides about its options itself."""
    path = written(
        tmp_path,
        f"import sys\nsys.path.insert(0, {str(DATA)!r})\nimport desk\ndef load(**options): return desk.load(size=options['n'])\n",
    )
    assert len(load_suite(path, n=1).tasks) == 1


def test_an_option_that_a_suite_can_not_take_is_a_mistake_of_whoever_gave_it():
    """Where a suite can't be loaded with what was asked for, the options are named, and the suite is not said to be wrong."""
    with pytest.raises(UsageError, match=r"can't be loaded with size='abc': TypeError"):
        load_suite(DATA / "desk.py", size="abc")
