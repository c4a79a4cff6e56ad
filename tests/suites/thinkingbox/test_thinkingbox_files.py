"""What is read of a folder in the benchmark's layout, and by which rules."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbadapters.core.errors import SuiteError, UnknownName, UsageError
from tbadapters.core.messages import Message
from tbadapters.suites.thinkingbox.files import DataFolder
from tbadapters.suites.thinkingbox.history import history_of
from tbadapters.suites.thinkingbox.test_files import read_test_file
from tbadapters.suites.thinkingbox.world import World, merged

SMALL = Path(__file__).parents[2] / "data" / "thinkingbox_small"
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def data(tmp_path):
    """A copy of the small data folder that a test may change."""
    return DataFolder(Path(shutil.copytree(SMALL, tmp_path / "data")))


def written(data, text, name="own.py"):
    path = data.root / "dataset" / "test_case" / name
    path.write_text(text)
    return path


# -- worlds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("below", "above", "result"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": [1, 2]}, {"a": [2, 3]}, {"a": [1, 2, 2, 3]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_a_test_is_laid_over_its_scenario(below, above, result):
    """Mappings recurse, lists add up, everything else is replaced, null included."""
    assert merged(below, above) == result


@given(JSON, JSON)
def test_merging_changes_neither_side(below, above):
    """What two tasks share is never changed by one of them."""
    before = repr(below), repr(above)
    found = merged(below, above)
    assert (repr(below), repr(above)) == before
    if not (isinstance(below, dict) and isinstance(above, dict)) and not (
        isinstance(below, list) and isinstance(above, list)
    ):
        assert found == above


def test_servers_are_given_a_list_of_sources_never_null():
    """Null sources become an empty list; a server that only the test names is given what the test says."""
    world = World({"a": {"sources": None, "x": 1}, "b": None}, {"a": {"x": 2}, "c": {"y": 3}})
    assert dict(world) == {"a": {"sources": [], "x": 2}, "b": {}, "c": {"y": 3}}


def test_a_world_stands_by_its_digest():
    """Two worlds read alike have one digest, another record makes another, and a copy is the world itself."""
    import copy

    one, same, other = (World({"a": {"n": n}}, {}) for n in (1, 1, 2))
    assert one.digest == same.digest != other.digest
    assert copy.deepcopy(one) is one
    assert one.digest in repr(one)


# -- test files -------------------------------------------------------------------------------------------------------


def test_a_functions_yaml_is_laid_over_its_files(data):
    """Keys of a function replace the file's, tags add up, what follows a function in the file does not reach it."""
    path = written(
        data,
        '"""!\nscenario: workshop\nquery: common\ntags: [a]\n"""\n\n\ndef test_one(x):\n    """!\n    query: own\n'
        '    tags: [b]\n    """\n\n\n"""!\nquery: later\n"""\n\n\ndef test_two(x):\n    """! {}"""\n\n\ndef helper(x):\n    """Help."""\n',
    )
    found = read_test_file(path)
    assert list(found) == ["test_one", "test_two"]
    assert (found["test_one"].config.query, found["test_one"].config.tags) == ("own", ["a", "b"])
    assert (found["test_two"].config.query, found["test_two"].config.tags) == ("later", ["a"])
    assert found["test_one"].uid == "own.py:test_one"


@pytest.mark.parametrize(
    ("body", "helper", "world", "needed"),
    [
        ("pass", "", {"rubrics_yesno": ["Is it?"]}, False),
        ("assert judge.text_yesno(x.response, 'Is it?')", "", {}, True),
        (
            "ask(x, judge)",
            "def ask(x, j):\n    for r in x.effects['s']['rubrics_yesno']: j.text_yesno(x, r)\n",
            {},
            False,
        ),
        (
            "ask(x, judge)",
            "def ask(x, j):\n    for r in x.effects['s']['rubrics_yesno']: j.text_yesno(x, r)\n",
            {"rubrics_yesno": ["Is it?"]},
            True,
        ),
        ("ask(x, judge)", "def ask(x, judge):\n    assert judge.text_yesno(x.response, 'Is it?')\n", {}, True),
    ],
)
def test_who_asks_a_judge_is_found_without_executing(data, body, helper, world, needed):
    """A task needs a judge where its function reaches who asks one and its world holds what would be asked."""
    head = '"""!\nscenario: workshop\nquery: hello\n"""\n'
    path = written(data, f'{head}{helper}\n\ndef test_it(x, judge):\n    """! {{}}"""\n    {body}\n')
    assert read_test_file(path)["test_it"].needs_judge({"s": world}) is needed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def test_it(x:\n", r"own\.py can't be read"),
        ('def test_it(x):\n    """! query: [1"""\n', r"own\.py:test_it holds no YAML"),
        ('def test_it(x):\n    """! - 1"""\n', r"own\.py:test_it holds list where a YAML mapping is needed"),
        (
            'def test_it(x):\n    """! query: hello"""\n',
            r"own\.py:test_it is not as it should be \(scenario: Field req",
        ),
        ('def test_it(x):\n    """! {query: a, scenario: b, qery: c}"""\n', r"\(qery: Extra inputs"),
    ],
)
def test_what_is_wrong_in_a_test_file_is_named(data, text, said):
    """One sentence names the file, the function and what is wrong with it."""
    with pytest.raises(SuiteError, match=said):
        read_test_file(written(data, text))


def test_no_test_file_is_executed(data):
    """Reading a test file runs nothing of it."""
    path = written(data, 'raise SystemExit\n\n\ndef test_it(x):\n    """! {scenario: workshop, query: hello}"""\n')
    assert list(read_test_file(path)) == ["test_it"]


# -- the folder -------------------------------------------------------------------------------------------------------


def test_test_files_are_found_by_their_names_beginning(data):
    """A file lies in test_case, or in a folder there by which its name begins: the longest one counts."""
    assert data.find("workshop_answers.py").parent.name == "workshop"
    for folder in ("a", "a_b"):
        (data.root / "dataset" / "test_case" / folder).mkdir()
        written(data, "", f"{folder}/a_b_c.py")
    assert data.find("a_b_c.py").parent.name == "a_b"
    with pytest.raises(UnknownName, match=r"There is no test file 'workshop_answer\.py'\. Did you mean"):
        data.find("workshop_answer.py")


def test_tests_are_listed_in_the_published_order(data):
    """The published list decides what the suite is; without one it is every test file, and any list may be given."""
    assert [Path(uid).name for uid in data.listed(None)] == ["front_desk.py", "workshop.py", "workshop_answers.py"]
    folder = data.root / "releases" / "thinkingbox_bench_v1"
    folder.mkdir(parents=True)
    (folder / "testlist_thinkingbox_bench_v1.yaml").write_text(
        "- workshop.py:test_cancel\n- front_desk.py:test_fields\n"
    )
    assert data.listed(None) == ["workshop.py:test_cancel", "front_desk.py:test_fields"]
    assert data.listed("workshop.py") == ["workshop.py"]
    (folder / "bad.yaml").write_text("a: 1\n")
    with pytest.raises(SuiteError, match="is no test list"):
        data.listed(folder / "bad.yaml")


def test_without_data_the_mend_is_said(monkeypatch, tmp_path):
    """Who gives no data, or a folder of another kind, is told what to give and how."""
    monkeypatch.delenv("THINKINGBOX_DATA", raising=False)
    with pytest.raises(UsageError, match="data=PATH or in THINKINGBOX_DATA"):
        DataFolder.of(None)
    with pytest.raises(UsageError, match="holds no dataset/scenario"):
        DataFolder.of(tmp_path)
    monkeypatch.setenv("THINKINGBOX_DATA", str(SMALL))
    assert DataFolder.of(None).root == SMALL


# -- history ----------------------------------------------------------------------------------------------------------


def test_a_history_is_a_slice_of_messages(data):
    """Places and ids name the slice; a history with a tool call is not one that can be told."""
    function = read_test_file(data.find("front_desk.py"))["test_remark"]
    assert history_of(function) == (
        Message("Is my cargo bike ready?"),
        Message("J-70 is ready. Is there anything else?", "agent"),
    )

    def with_history(text):
        changed = function.config.model_copy(update={"history": text})
        return type(function)(function.file, function.name, changed)

    assert len(history_of(with_history("bell:1:"))) == 2
    for wrong, said in (("bell", "key:start:end"), ("horn:0:", "no history 'horn'"), ("bell:0:never", "no message")):
        with pytest.raises(SuiteError, match=said):
            history_of(with_history(wrong))


def test_a_history_with_a_tool_call_can_not_be_told(data):
    """Messages are told, calls would have to be made again: None says that it can't be done."""
    meta = data.root / "dataset" / "test_case" / "own.meta.yaml"
    meta.write_text(
        "$history:\n  a:\n    - {role: user, content: Hello}\n    - {T: ToolCall, name: get_job, arguments: {}}\n"
    )
    text = 'def test_it(x):\n    """! {scenario: workshop, query: hello, history: "a:0:"}"""\n'
    assert history_of(read_test_file(written(data, text))["test_it"]) is None
