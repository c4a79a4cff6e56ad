"""The run folder: what is committed stays, what it is can't change, and one process has it."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters.core.errors import ResumeMismatch, UnusableFolder
from tbadapters.core.grading import Verdict
from tbadapters.core.records import AttemptRecord
from tbadapters.core.store import Store, check_resume, new_folder, read_manifest, read_records, write_manifest


def record(index, *, attempt=0, passed=True):
    """Return a record of one attempt."""
    verdict = None if passed is None else Verdict(passed, float(passed))
    return AttemptRecord("s/w/0", index, attempt, "settled" if verdict else "fault", verdict)


async def test_records_come_back(tmp_path):
    """What was added is read back by another connection, in order, while the store is open."""
    added = [record(1), record(0, passed=None), record(0, attempt=1, passed=False)]
    async with Store.open(tmp_path) as store:
        for one in added:
            await store.add(one)
        assert [(r.index, r.attempt, r.passed) for r in await to_thread.run_sync(read_records, tmp_path)] == [
            (0, 0, None),
            (0, 1, False),
            (1, 0, True),
        ]
        assert await store.records() == await to_thread.run_sync(read_records, tmp_path)


async def test_no_attempt_is_written_twice(tmp_path):
    """The same attempt can't be committed a second time."""
    async with Store.open(tmp_path) as store:
        await store.add(record(0))
        with pytest.raises(UnusableFolder, match="UNIQUE"):
            await store.add(record(0))


async def test_one_process_has_the_folder(tmp_path):
    """A second opening is refused with a sentence while the first goes on."""
    async with Store.open(tmp_path):
        with pytest.raises(UnusableFolder, match="in use"):
            async with Store.open(tmp_path):
                pass
    async with Store.open(tmp_path):
        pass


def test_names_can_not_lead_out(tmp_path):
    """Whatever an agent or suite is named, its folder is inside the one that was asked for."""
    folder = new_folder(tmp_path, "../../etc", "a/b\x00c", "..", "x" * 500)
    assert folder.parent == tmp_path
    assert folder.is_dir()


def test_unwritable_folder(tmp_path):
    """A folder that can't be made is one sentence with the mend."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableFolder, match="choose another"):
        new_folder(tmp_path / "file", "s")


async def test_store_in_a_folder_that_is_not_there(tmp_path):
    """A folder that is gone is one sentence."""
    with pytest.raises(UnusableFolder, match="can't be written"):
        async with Store.open(tmp_path / "gone"):
            pass


def test_no_run_folder(tmp_path):
    """A folder without a manifest or without a record is named as what it is."""
    with pytest.raises(UnusableFolder, match="no run folder"):
        read_manifest(tmp_path)
    with pytest.raises(UnusableFolder, match="nothing was recorded"):
        read_records(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(UnusableFolder, match="damaged"):
        read_manifest(tmp_path)
    (tmp_path / "run.db").write_text("no database at all, but text of some length" * 20)
    with pytest.raises(UnusableFolder, match="can't be used"):
        read_records(tmp_path)


async def test_damaged_database(tmp_path):
    """A database that is none is one sentence."""
    (tmp_path / "run.db").write_text("no database at all, but text of some length" * 20)
    with pytest.raises(UnusableFolder, match="can't be used"):
        async with Store.open(tmp_path):
            pass


@pytest.fixture
def unwritable():
    """A folder, and a context in which nothing can be written there, by root neither."""
    folder = Path(tempfile.mkdtemp())
    user = os.geteuid()

    @contextmanager
    def as_a_reader():
        folder.chmod(0o555)
        if user == 0:
            os.seteuid(65534)  # root may write whatever the mode is
        try:
            yield
        finally:
            os.seteuid(user)
            folder.chmod(0o755)

    yield folder, as_a_reader
    shutil.rmtree(folder)


@pytest.mark.parametrize("killed", [False, True])
async def test_a_folder_that_can_not_be_written_can_be_read(tmp_path, unwritable, killed):
    """Records are read where SQLite can't make its files, those that a killed run left in the write-ahead log too."""
    folder, as_a_reader = unwritable
    async with Store.open(tmp_path) as store:
        await store.add(record(0))
        await store.add(record(1))
        if killed:
            shutil.copyfile(tmp_path / "run.db", folder / "run.db")
            shutil.copyfile(tmp_path / "run.db-wal", folder / "run.db-wal")
    if not killed:
        shutil.copyfile(tmp_path / "run.db", folder / "run.db")
    with as_a_reader():
        found = await to_thread.run_sync(read_records, folder)
    assert [one.index for one in found] == [0, 1]


def test_resume_names_each_difference(tmp_path):
    """Other settings are refused, and the sentence says which, then and now."""
    write_manifest(tmp_path, {"settings": {"trials": 5, "seed": 0, "limits": {"seconds": 1.0}}})
    check_resume(tmp_path, {"trials": 5, "seed": 0, "limits": {"seconds": 1.0}})
    with pytest.raises(ResumeMismatch, match="trials: 5 then, 6 now"):
        check_resume(tmp_path, {"trials": 6, "seed": 0, "limits": {"seconds": 1.0}})
    assert json.loads((tmp_path / "manifest.json").read_text())["settings"]["trials"] == 5


def test_resume_names_a_suites_options(tmp_path):
    """Where the tasks differ because the suite was loaded otherwise, its options are named; alone they make no difference."""
    write_manifest(tmp_path, {"settings": {"suite_digest": "a"}, "suite_options": {"size": 3}})
    with pytest.raises(ResumeMismatch, match=r"suite_options: \{'size': 3\} then, \{'size': 4\} now"):
        check_resume(tmp_path, {"suite_digest": "b"}, suite_options={"size": 4})
    check_resume(tmp_path, {"suite_digest": "a"}, suite_options={})


def test_an_imported_run_is_not_resumed(tmp_path):
    """A run whose trials were imported is refused by what it is, not by settings that it never had."""
    write_manifest(tmp_path, {"settings": {"suite_digest": "imported 0123", "limits": {}}})
    with pytest.raises(ResumeMismatch, match=r"its trials were imported.*new run"):
        check_resume(tmp_path, {"suite_digest": "b", "trials": 4})
