"""The file of attempts: whatever page of it is damaged, no committed record is lost."""

import random
import shutil
import sqlite3
from contextlib import closing

import anyio
import pytest
from anyio import to_thread

from tbadapters.core.errors import UnusableFolder
from tbadapters.core.grading import Verdict
from tbadapters.core.messages import Entry
from tbadapters.core.records import AttemptRecord
from tbadapters.core.run_db import mend
from tbadapters.core.store import Store, read_records

PAGE = 4096


def record(index):
    """Return a record whose transcript takes several pages, of text that packs badly."""
    text = random.Random(index).randbytes(3000 + 400 * (index % 7)).hex()
    return AttemptRecord("s/w/0", index, 0, "settled", Verdict(index % 2 == 0, 1.0), transcript=(Entry("user", text),))


RECORDS = [record(index) for index in range(25)]


@pytest.fixture
async def folder(tmp_path):
    """A folder with 25 attempts, all in run.db itself."""
    async with Store.open(tmp_path) as store:
        for one in RECORDS:
            await store.add(one)
    return tmp_path


def damaged(folder, page, *, with_what=None):
    """Overwrite a page of run.db, counted from 0; negative from the end."""
    path = folder / "run.db"
    data = bytearray(path.read_bytes())
    start = (page % (len(data) // PAGE)) * PAGE
    data[start : start + PAGE] = with_what or random.Random(page).randbytes(PAGE)
    path.write_bytes(data)


async def reopened(folder):
    """Open the folder as a resume does; return its records."""
    async with Store.open(folder) as store:
        return await store.records()


@pytest.mark.parametrize("start", [0, 100])
async def test_a_damaged_first_page_is_told_with_what_can_be_done(folder, start):
    """From the first page on everything is found: without it, or without its tables, one sentence says what is left to do."""
    path = folder / "run.db"
    data = bytearray(path.read_bytes())
    data[start:PAGE] = random.Random(0).randbytes(PAGE - start)
    path.write_bytes(data)
    for read in (reopened(folder), to_thread.run_sync(read_records, folder)):
        with pytest.raises(UnusableFolder, match=r"(copy of the file back, or start a new run)|(resume the run)"):
            await read
    with pytest.raises(UnusableFolder, match=r"first page is damaged.*copy of the file back, or start a new run"):
        await reopened(folder)
    assert path.read_bytes() == bytes(data)


async def test_attempts_are_kept_twice_however_many_are_added_at_once(tmp_path):
    """Of attempts that are committed at the same time, each has its own copy."""
    async with Store.open(tmp_path) as store, anyio.create_task_group() as group:
        for one in RECORDS:
            group.start_soon(store.add, one)
    with closing(sqlite3.connect(tmp_path / "run.db")) as database, database:
        database.execute("UPDATE attempts SET record = '{'")
    assert await reopened(tmp_path) == RECORDS


async def test_a_damaged_last_page_loses_nothing(folder):
    """After the last page was overwritten, all records are there, a further one can be added, the damage is kept."""
    damaged(folder, -1)
    async with Store.open(folder) as store:
        assert await store.records() == RECORDS
        await store.add(record(25))
        assert len(await store.records()) == 26
    assert (folder / "run.db.damaged").is_file()


@pytest.mark.parametrize("garbage", ["random", "zeros", "old"])
def test_no_page_but_the_first_takes_a_record_with_it(folder, garbage):
    """Whichever single page is damaged, by whatever, every record is read back from one of its copies."""
    whole = folder / "run.db"
    pages = whole.stat().st_size // PAGE
    chosen = {*range(1, 6), *range(6, pages, 9), pages - 1}
    for page in chosen:
        other = folder / f"page{page}"
        other.mkdir()
        shutil.copyfile(whole, other / "run.db")
        content = {"random": None, "zeros": bytes(PAGE), "old": whole.read_bytes()[PAGE * 3 : PAGE * 4]}[garbage]
        damaged(other, page, with_what=content)
        mend(other / "run.db")
        assert read_records(other) == RECORDS, page
        shutil.rmtree(other)


async def test_a_damaged_folder_is_not_read_as_if_nothing_were_wrong(folder):
    """Whoever reads a damaged file without resuming is told that a resume mends it."""
    path = folder / "run.db"
    data = path.read_bytes()
    place = data.index(record(3).transcript[0].text[200:300].encode())
    path.write_bytes(data[:place] + b"x" + data[place + 1 :])
    with pytest.raises(UnusableFolder, match="resume"):
        await to_thread.run_sync(read_records, folder)
    assert await reopened(folder) == RECORDS
    assert await to_thread.run_sync(read_records, folder) == RECORDS


async def test_a_torn_end_of_the_log_is_no_damage(tmp_path):
    """A commit that was being written when the power went is not there; those before it are."""
    live, dead = tmp_path / "live", tmp_path / "dead"
    live.mkdir(), dead.mkdir()
    async with Store.open(live) as store:
        for one in RECORDS[:5]:
            await store.add(one)
        for part in ("run.db", "run.db-wal"):
            shutil.copyfile(live / part, dead / part)
        before = (dead / "run.db-wal").stat().st_size
        await store.add(RECORDS[5])
        log = (live / "run.db-wal").read_bytes()
    assert len(log) > before
    (dead / "run.db-wal").write_bytes(log[: before + (len(log) - before) // 2] + b"\xff" * 1000)
    assert await reopened(dead) == RECORDS[:5]
    assert not (dead / "run.db.damaged").exists()


async def test_a_page_that_was_torn_on_its_way_from_the_log_is_no_damage(tmp_path):
    """When the power goes while the log is written into the file, the log has it still."""
    live, dead = tmp_path / "live", tmp_path / "dead"
    live.mkdir(), dead.mkdir()
    async with Store.open(live) as store:
        for one in RECORDS[:5]:
            await store.add(one)
        for part in ("run.db", "run.db-wal"):
            shutil.copyfile(live / part, dead / part)
    shutil.copyfile(live / "run.db", dead / "run.db")
    damaged(dead, -1)
    assert await reopened(dead) == RECORDS[:5]
    assert not (dead / "run.db.damaged").exists()


@pytest.mark.parametrize("step", ["the new file is half written", "the old file is away"])
async def test_mending_may_be_killed(folder, step):
    """A process that dies while it mends leaves what the next one needs."""
    damaged(folder, -1)
    path = folder / "run.db"
    if step == "the new file is half written":
        (folder / "run.db.new").write_bytes(b"half")
    else:
        await to_thread.run_sync(mend, path)
        path.rename(folder / "run.db.mended")
    assert await reopened(folder) == RECORDS


async def test_a_record_that_neither_copy_has_is_run_again(folder):
    """What can't be read at all is left out: the others are kept, and its trial has no verdict any more."""
    with closing(sqlite3.connect(folder / "run.db")) as database, database:
        database.execute("UPDATE attempts SET record = '{' WHERE trial = 7")
        database.execute("UPDATE copies SET packed = x'00' WHERE attempt = 8")
    assert [one.index for one in await reopened(folder)] == [n for n in range(25) if n != 7]


async def test_a_folder_of_before_there_were_copies(tmp_path):
    """Attempts that were kept once only are read, and further ones kept twice."""
    async with Store.open(tmp_path) as store:
        await store.add(RECORDS[0])
    with closing(sqlite3.connect(tmp_path / "run.db")) as database, database:
        database.execute("DROP TABLE copies")
    assert await to_thread.run_sync(read_records, tmp_path) == RECORDS[:1]
    async with Store.open(tmp_path) as store:
        await store.add(RECORDS[1])
    damaged(tmp_path, -1)
    assert RECORDS[1] in await reopened(tmp_path)


async def test_a_file_that_was_just_begun(tmp_path):
    """A process that dies before its first table leaves a folder that can be used."""
    for content in (b"", None):
        (tmp_path / "run.db").unlink(missing_ok=True)
        if content is None:
            with closing(sqlite3.connect(tmp_path / "run.db")) as database:
                database.execute("PRAGMA journal_mode = WAL")
        else:
            (tmp_path / "run.db").write_bytes(content)
        assert await reopened(tmp_path) == []
