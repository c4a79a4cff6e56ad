"""The table of trials has a row for each planned trial and says what results.json says."""

import csv
import sys
from dataclasses import replace

import pytest
from synthetic_runs import MISSING, WRONG, record, result_of, seeded_result

from tbadapters.core import trial_table
from tbadapters.core.comparison import Comparison
from tbadapters.core.errors import UsageError
from tbadapters.core.messages import ModelRequest, Usage
from tbadapters.core.records import Spent
from tbadapters.core.trial_table import COLUMNS, trial_rows

T, F, N = True, False, None


def small():
    """One passed, one failed, one faulted and one trial that was not run."""
    failed = record("bank/t0", 1, F, effects=[WRONG, WRONG, MISSING])
    found = result_of([[T, F], [N]], k=2)
    return replace(found, records=(found.records[0], failed, found.records[2]))


def test_a_row_for_each_planned_trial():
    """Passed, failed, faulted and never run trials have a row each, with what is known of them."""
    rows = trial_rows(small())
    assert [(r["task"], r["index"], r["verdict"], r["attempts"]) for r in rows] == [
        ("bank/t0", 0, "passed", 1), ("bank/t0", 1, "failed", 1), ("bank/t1", 0, None, 1), ("bank/t1", 1, None, 0),
    ]  # fmt: skip
    assert [r["looked_clean"] for r in rows] == [True, True, False, None]
    assert (rows[1]["wrong_value"], rows[1]["missing"], rows[1]["unexpected"]) == (2, 1, 0)
    assert (rows[2]["fault_owner"], rows[2]["fault_code"], rows[2]["end_reason"]) == ("provider", "rate_limit", "fault")
    assert (rows[0]["input_tokens"], rows[0]["model_requests"], rows[0]["cost"], rows[3]["cost"]) == (
        1010,
        2,
        0.002,
        None,
    )
    assert rows[0]["tags"] == "even"
    assert all(list(row) == list(COLUMNS) for row in rows)


def test_user_and_judge_have_columns_of_their_own():
    """Tokens and money of the simulated user and the judge are in no column of the agent's."""
    found = result_of([[T]])
    spent = Spent((ModelRequest("gpt-4o-mini", Usage(70, 0, 7)),), 0.5)
    found = replace(found, records=(replace(found.records[0], user=spent, judge=Spent((), None)),))
    (row,) = trial_rows(found)
    assert (row["user_tokens"], row["user_cost"], row["judge_tokens"], row["judge_cost"]) == (77, 0.5, 0, None)
    assert (row["input_tokens"], row["cost"]) == (1010, 0.002)


def test_csv_reads_back(tmp_path):
    """The file holds every row; what is unknown is empty, and a comparison's rows name their agents."""
    found = small()
    with found.report(tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["passed", "failed", "", ""]
    assert (rows[0]["cost"], rows[3]["cost"], rows[0]["abandoned"]) == ("0.002", "", "false")
    both = Comparison({"A": found, "B": found}).report(tmp_path / "c.csv")
    with both.open(newline="", encoding="utf-8") as file:
        assert [row["agent"] for row in csv.DictReader(file)] == ["A"] * 4 + ["B"] * 4


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("http://evil")', "+1", "-1", "@SUM(A1)", 'a,"b\nc', "\x1b[2J", "\n=1", "\uff1d1"]
)
def test_no_cell_is_computed(tmp_path, text):
    """What a spreadsheet would compute, or a terminal obey, is written as text; the file stays a table."""
    found = result_of([[T]], agent=text)
    with found.report(tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        content = file.read()
    (row,) = csv.DictReader(content.splitlines(keepends=True))
    assert row["agent"][0] not in "=+-@\x1b\n\uff1d"
    assert text.replace("\x1b", "\u241b") in row["agent"]
    assert row["seconds"] == "1.65"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    """The real library's data frame has the rows, and typed columns even where nothing is known in any row."""
    pytest.importorskip(library)
    found = seeded_result(tasks=6, faults=0.3)
    frame = found.to_dataframe(library)
    assert frame.shape == (30, len(COLUMNS))
    assert list(frame.columns) == list(COLUMNS)
    passed = frame[frame["verdict"] == "passed"] if library == "pandas" else frame.filter(frame["verdict"] == "passed")
    assert len(passed) == sum(r.passed is True for r in found.records)
    assert float(frame["cost"].sum()) == pytest.approx(sum(r.cost for r in found.records))
    nothing = replace(found, records=(), faulted=()).to_dataframe(library)
    assert [str(kind) for kind in nothing.dtypes] == [str(kind) for kind in frame.dtypes]


def test_pandas_is_taken_first():
    """Without a word about the library, pandas makes the data frame."""
    assert type(small().to_dataframe()).__module__.partition(".")[0] == "pandas"


def test_polars_where_there_is_no_pandas(monkeypatch):
    """Where pandas is not installed polars is asked, with each column's type."""
    asked = {}

    class Polars:
        @staticmethod
        def DataFrame(rows, schema):  # noqa: N802  (polars names it)
            asked.update(rows=rows, schema=schema)
            return "a frame"

    monkeypatch.setattr(trial_table, "find_spec", lambda name: None if name == "pandas" else name)
    monkeypatch.setitem(sys.modules, "polars", Polars)
    assert small().to_dataframe() == "a frame"
    assert asked["schema"] == dict(COLUMNS)
    assert len(asked["rows"]) == 4


def test_no_library(monkeypatch):
    """Where there is no library, or an unknown one is named, one sentence says what to do."""
    monkeypatch.setattr(trial_table, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs pandas or polars, not installed here: pip install pandas"):
        small().to_dataframe()
    with pytest.raises(UsageError, match="needs polars, not installed"):
        small().to_dataframe("polars")
    with pytest.raises(UsageError, match="'pandas', 'polars' or None"):
        small().to_dataframe("spark")
