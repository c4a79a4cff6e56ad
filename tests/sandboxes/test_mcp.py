"""Sandboxes that are MCP servers: isolated, quick to open, gone when they are done, closed to whoever asks too much."""

import asyncio
import os
import signal
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tbadapters import Task, UserBrief
from tbadapters.core.errors import InvalidOption, SandboxFault, SuiteError, UnknownName
from tbadapters.core.grading import Evidence, Expectation, Verdict
from tbadapters.core.state import State
from tbadapters.sandboxes import mcp_forks
from tbadapters.sandboxes.mcp import RESERVED, Lifecycle, McpBackend, McpSandbox, McpServer
from tbadapters.sandboxes.mcp_connection import over_socket

DATA = Path(__file__).parents[1] / "data"
ITEMS = [{"id": "umbrella", "state": "found"}, {"id": "scarf", "state": "found"}]
QUICK = Lifecycle(init_seconds=1.0, call_seconds=1.0, effects_seconds=1.0)


class PassIfReturned:
    """Passes when the umbrella was returned."""

    async def grade(self, evidence: Evidence) -> Verdict:
        """Look at the umbrella."""
        passed = evidence.final.tables["items"]["umbrella"]["state"] == "returned"
        return Verdict(passed, float(passed))


def server(**given: object) -> McpServer:
    """Return the desk's server, as a module of this environment unless something else is said."""
    return McpServer(**{"module": "mcp_desk", "path": (str(DATA),), **given})


def backend(*, lifecycle: Lifecycle = RESERVED, **given: object) -> McpBackend:
    """Return a backend of the desk's server."""
    return McpBackend({"desk": server(**given)}, grader_of=lambda _: PassIfReturned(), lifecycle=lifecycle)


def kept(desk: McpBackend) -> mcp_forks.ForkedServer:
    """Return the desk's processes, while it is running."""
    return desk._run.forked["desk"]


def task(name: str = "umbrella", **config: object) -> Task:
    """Return a task of the desk."""
    return Task(
        f"lost/{name}",
        "My umbrella?",
        UserBrief("The umbrella back."),
        Expectation(()),
        {"desk": {"items": ITEMS, **config}},
    )


FORMS: dict[str, Callable[[], McpBackend]] = {
    "forked": backend,
    "forked, spoken to in MCP": lambda: backend(env={"MCP_DESK_LIFESPAN": "1"}),
    "spawned, as threads run": lambda: backend(env={"MCP_DESK_THREAD": "1"}),
    "spawned command": lambda: McpBackend(
        {"desk": McpServer(command=(sys.executable, str(DATA / "mcp_desk.py")))}, grader_of=lambda _: PassIfReturned()
    ),
}


@pytest.mark.parametrize("form", FORMS)
async def test_session_does_what_a_backend_must(form: str) -> None:
    """In every form tools answer, errors are answers, state follows the calls, and sessions don't see each other."""
    desk = FORMS[form]()
    async with desk.running(), desk.open(task()) as one, desk.open(task()) as other:
        assert {tool.name for tool in one.tools} == {"find_item", "set_state", "wait", "die", "start_child"}
        assert one.init_results["desk"]["laid_out"] >= len(ITEMS)
        assert (await one.state()).tables["items"]["umbrella"] == {"id": "umbrella", "state": "found"}
        answer = await one.call("set_state", {"item_id": "umbrella", "state": "returned"})
        assert (answer.value, answer.is_error, answer.changes) == ({"id": "umbrella", "state": "returned"}, False, None)
        assert (await one.state()).tables["items"]["umbrella"]["state"] == "returned"
        assert (await one.state()).raw["desk"]["initial"][0]["state"] in ("found", "entered")
        assert (await other.state()).tables["items"]["umbrella"]["state"] == "found"
        missing = await other.call("find_item", {"item_id": "glove"})
        assert missing.is_error
        assert "find_item" in missing.text or "glove" in missing.text


@pytest.fixture
async def remote_desk(unused_port: int) -> AsyncIterator[str]:
    """Serve the desk at a URL, by a process of its own."""
    program = f"import sys; sys.path.insert(0, {str(DATA)!r}); from mcp_desk import desk; "
    program += f"desk.run(transport='streamable-http', host='127.0.0.1', port={unused_port})"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=asyncio.subprocess.DEVNULL)
    try:
        with anyio.fail_after(20):
            while True:
                try:
                    (await asyncio.open_connection("127.0.0.1", unused_port))[1].close()
                    break
                except OSError:
                    await anyio.sleep(0.05)
        yield f"http://127.0.0.1:{unused_port}/mcp"
    finally:
        process.kill()
        await process.wait()


@pytest.fixture
def unused_port() -> int:
    """Return a port that nobody listens on."""
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


async def test_server_with_a_url(remote_desk: str) -> None:
    """A server with a URL is set up, called and asked for its records over HTTP."""
    desk = McpBackend({"desk": McpServer(url=remote_desk)}, grader_of=lambda _: PassIfReturned())
    async with desk.open(task()) as sandbox:
        await sandbox.call("set_state", {"item_id": "scarf", "state": "returned"})
        assert (await sandbox.state()).tables["items"]["scarf"]["state"] == "returned"


ALIASES = [
    "__reserved__init", "desk.__reserved__geteffects", "desk__reserved__teardown", "desk:__reserved__init", "desk/__RESERVED__INIT",
    " __reserved__init", "__reserved__init\n", "__Reserved__GetEffects", "__reserved__ init", "\uff3f\uff3freserved\uff3f\uff3finit",
]  # fmt: skip


async def test_reserved_tools_are_not_the_agents() -> None:
    """No reserved tool is listed, and none can be called under any name."""
    desk = backend()
    async with desk.open(task()) as sandbox:
        assert not any("reserved" in tool.name.lower() for tool in sandbox.tools)
        for alias in ALIASES:
            answer = await sandbox.call(alias, {"config": {"items": [{"id": "umbrella", "state": "returned"}]}})
            assert answer.is_error, alias
        assert (await sandbox.state()).tables["items"]["umbrella"]["state"] == "found"


async def test_lifecycle_tools_of_other_names_are_reserved() -> None:
    """A tool that is configured as a lifecycle tool is hidden and can't be called, whatever its name."""
    desk = backend(lifecycle=Lifecycle(teardown="set_state"))
    for name in ("set_state", "desk.set_state", "desk__set_state", "desk:SET_STATE"):
        assert desk.lifecycle.is_reserved(name), name
    assert not desk.lifecycle.is_reserved("get_set_state_log")
    assert "set_state" not in {tool.name for tool in await desk.list_tools("desk")}


async def test_mcp_client_reaches_no_forked_server_without_the_token() -> None:
    """Whoever connects to a forked server's socket with a client of its own is not served."""
    desk = backend()
    async with desk.running(), desk.open(task()):
        forked = kept(desk)
        for path in forked._folder.iterdir():
            if not path.is_socket():
                continue
            streams = await asyncio.open_unix_connection(path)
            with pytest.raises(BaseExceptionGroup), anyio.fail_after(10):
                async with over_socket(*streams) as session:
                    await session.list_tools()


async def test_token_is_not_in_the_list_of_processes() -> None:
    """The token of a forked server stands on no command line, where every process of the user could read it."""
    desk = backend()
    async with desk.running(), desk.open(task()):
        token = kept(desk)._token
        assert any("fork_server.py" in command for command in commands().values())
        assert not any(token in command for command in commands().values())


async def test_init_runs_once_a_task(tmp_path: Path) -> None:
    """Attempts at a task are forks of the process that ran its init; each task is torn down once."""
    trace = tmp_path / "trace"
    desk = backend(env={"MCP_DESK_TRACE": str(trace)})
    async with desk.running():
        for name in ("one", "two"):
            for _ in range(3):
                async with desk.open(task(name, shelf=name)) as sandbox:
                    await sandbox.call("set_state", {"item_id": "umbrella", "state": name})
    assert trace.read_text().split() == ["init", "init", "teardown", "teardown"]


async def test_session_opened_once_keeps_no_process_of_its_task(tmp_path: Path) -> None:
    """Where a task is opened once, it does what any session does, is torn down as it ends, and its init runs again."""
    trace = tmp_path / "trace"
    desk = backend(env={"MCP_DESK_TRACE": str(trace)})
    async with desk.running():
        for _ in range(2):
            async with desk.open(task(), once=True) as session:
                assert (await session.state()).tables["items"]["umbrella"]["state"] == "found"
                await session.call("set_state", {"item_id": "umbrella", "state": "returned"})
                assert (await session.state()).tables["items"]["umbrella"]["state"] == "returned"
            assert kept(desk).tasks == []
    assert trace.read_text().split() == ["init", "teardown"] * 2


async def test_servers_start_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that are first needed at the same time are started at the same time, each once."""
    starting: list[str] = []
    both = anyio.Event()
    start = mcp_forks.ForkedServer.start

    async def together(name: str, *arguments: object, **options: object) -> object:
        starting.append(name)
        if len(starting) == 2:
            both.set()
        with anyio.fail_after(20):
            await both.wait()
        return await start(name, *arguments, **options)

    monkeypatch.setattr(mcp_forks.ForkedServer, "start", together)
    desk = McpBackend({"left": server(), "right": server()}, grader_of=lambda _: PassIfReturned())
    async with desk.running(), anyio.create_task_group() as group:
        for name in ("left", "right", "left", "right"):
            group.start_soon(desk.list_tools, name)
    assert sorted(starting) == ["left", "right"]


async def test_only_so_many_tasks_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of the task that was not run for longest is torn down, and made again when it is needed."""
    monkeypatch.setattr(mcp_forks, "KEPT_TASKS", 2)
    trace = tmp_path / "trace"
    desk = backend(env={"MCP_DESK_TRACE": str(trace)})
    async with desk.running():
        for name in ("one", "two", "three", "one"):
            async with desk.open(task(name, shelf=name)) as sandbox:
                assert not (await sandbox.call("find_item", {"item_id": "scarf"})).is_error
        assert len(kept(desk).tasks) == 2
        assert trace.read_text().split() == ["init", "init", "init", "teardown", "init", "teardown"]


async def test_tasks_are_let_go_of_while_others_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tasks at once, more than are kept, are each served: none is let go of while it is about to be used."""
    monkeypatch.setattr(mcp_forks, "KEPT_TASKS", 2)
    desk = backend()
    served = []

    async def use(name: str) -> None:
        for _ in range(2):
            async with desk.open(task(name, shelf=name)) as sandbox:
                served.append((await sandbox.call("find_item", {"item_id": "scarf"})).is_error)

    async with desk.running(), anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(use, f"task {number}")
    assert served == [False] * 24


async def test_preparation_files_and_probes() -> None:
    """Preparation files run around the import and after each fork, and their probes answer from the server's process."""
    desk = backend(prepare=(DATA / "mcp_desk_prepared.py",), options={"word": "hello"})
    async with desk.open(task()) as sandbox:
        seen = await sandbox.probe("desk", "seen", "asked")
        assert seen == ["asked", "before hello", "after hello", "attempt", "task", "attempt"]
        assert (await sandbox.call("find_item", {"item_id": "prepared"})).value["state"] == "attempt"
        with pytest.raises(SandboxFault, match="no preparation file has a probe 'nothing'"):
            await sandbox.probe("desk", "nothing")


async def test_spawned_server_says_why_and_has_no_probes(caplog: pytest.LogCaptureFixture) -> None:
    """A server whose import starts threads is spawned, the log says so, and a probe is refused."""
    desk = backend(env={"MCP_DESK_THREAD": "1"}, prepare=(DATA / "mcp_desk_prepared.py",), options={"word": "x"})
    async with desk.open(task()) as sandbox:
        with pytest.raises(SandboxFault, match="only a forked server"):
            await sandbox.probe("desk", "seen")
    assert "its import starts threads (idler)" in caplog.text


# -- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
async def test_server_that_dies_in_a_call(form: str) -> None:
    """A server's death in a call is the sandbox's fault, not the agent's."""
    async with FORMS[form]().open(task()) as sandbox:
        with pytest.raises(SandboxFault):
            await sandbox.call("die", {})


async def test_task_process_that_died_is_made_again() -> None:
    """Attempts go on after the process that ran a task's init was killed."""
    desk = backend()
    async with desk.running():
        async with desk.open(task()):
            forked = kept(desk)
        os.kill(forked.tasks[0].connection.pid, signal.SIGKILL)
        await anyio.sleep(0.2)
        with pytest.raises(SandboxFault):
            async with desk.open(task()):
                pass
        async with desk.open(task()) as sandbox:
            assert not (await sandbox.call("find_item", {"item_id": "scarf"})).is_error


@pytest.mark.parametrize("form", ["forked", "spawned command"])
@pytest.mark.parametrize("how", ["async", "busy"])
async def test_hanging_call_meets_its_deadline(form: str, how: str) -> None:
    """A call that hangs is the sandbox's fault when its deadline is met."""
    desk = FORMS[form]()
    desk.lifecycle = QUICK
    async with desk.open(task()) as sandbox:
        with pytest.raises(SandboxFault, match="did not answer wait in 1 s"), anyio.fail_after(10):
            await sandbox.call("wait", {"seconds": 8, "how": how})


async def test_hanging_init_and_effects_meet_their_deadlines() -> None:
    """Init and effects that hang are the sandbox's fault when their deadlines are met."""
    desk = backend(lifecycle=QUICK)
    async with desk.running():
        with pytest.raises(SandboxFault, match="__reserved__init in 1 s"):
            async with desk.open(task(hang=True)):
                pass
        async with desk.open(task()) as sandbox:
            await sandbox.call("set_state", {"item_id": "scarf", "state": "stuck"})
            with pytest.raises(SandboxFault, match="__reserved__geteffects in 1 s"):
                await sandbox.state()


async def test_failed_init_says_why() -> None:
    """An init that reports an error is the sandbox's fault, with the server's own words."""
    with pytest.raises(SandboxFault, match="The init of the server 'desk' failed: no such shelf"):
        async with backend().open(task(fail=True)):
            pass


async def test_server_that_dies_in_init_is_named() -> None:
    """A server that dies in its init is named, and the last that it said is told."""
    with pytest.raises(
        SandboxFault, match=r"init of the server 'desk' failed.*died.*The last that it said: no shelf left"
    ):
        async with backend().open(task(die=True)):
            pass


async def test_records_that_nobody_can_read_are_refused() -> None:
    """Where only records are graded, a run begins with records that can be read, or with none."""
    with pytest.raises(InvalidOption, match="nothing to grade by; name one by Lifecycle"):
        McpBackend({"desk": server()}, lifecycle=Lifecycle(effects=None))
    desk = McpBackend({"desk": server(env={"MCP_DESK_BY_NAME": "1"})})
    with pytest.raises(SuiteError, match="'desk' hold no list of objects with an id: say by state_of="):
        async with desk.open(task()) as sandbox:
            await sandbox.state()
    read = McpBackend(
        {"desk": server(env={"MCP_DESK_BY_NAME": "1"})},
        state_of=lambda told: State({"items": told["desk"]["items"]}, told),
    )
    async with read.open(task()) as sandbox:
        assert (await sandbox.state()).tables["items"]["scarf"]["state"] == "found"


@pytest.mark.parametrize("form", ["forked", "spawned command"])
async def test_lifecycle_tools_that_a_server_lacks(form: str) -> None:
    """A server without the tools that its lifecycle names is the suite's mistake, told before anything is set up."""
    desk = FORMS[form]()
    desk.lifecycle = Lifecycle(effects="records")
    with pytest.raises(SuiteError, match=r"'desk' has no tool 'records': say by Lifecycle\(effects=\)"):
        async with desk.open(task()):
            pass


async def test_state_after_a_cancelled_call() -> None:
    """A call that was cancelled leaves the connection in order: the state that is read next is the state."""
    async with backend().open(task()) as sandbox:
        with anyio.move_on_after(0.1):
            await sandbox.call("wait", {"seconds": 0.4})
        assert (await sandbox.state()).tables["items"]["scarf"]["state"] == "found"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"module": "no_such_module"}, "There is|there is no module no_such_module"),
        ({"python": "/no/such/python"}, "'desk' can't be started by /no/such/python: No such file"),
    ],
)
async def test_server_that_does_not_start(given: dict[str, object], sentence: str) -> None:
    """A server that can't be started says why."""
    with pytest.raises(SandboxFault, match=sentence):
        async with backend(**given).open(task()):
            pass


async def test_wrong_descriptions_are_refused() -> None:
    """A server reached in two ways, one that is not there, and a tool that two servers have are each refused in a sentence."""
    with pytest.raises(InvalidOption, match="one of module, command and url"):
        McpServer(module="a", url="http://localhost")
    with pytest.raises(UnknownName, match=r"There is no MCP server 'desc'\. Did you mean 'desk'"):
        async with backend().open(Task("lost/x", "?", UserBrief("?"), Expectation(()), {"desc": {}})):
            pass
    two = McpBackend({"desk": server(), "shop": server()}, grader_of=lambda _: PassIfReturned())
    with pytest.raises(SuiteError, match="Two servers have a tool"):
        async with two.open(
            Task("lost/x", "?", UserBrief("?"), Expectation(()), {"desk": {"items": []}, "shop": {"items": []}})
        ):
            pass


@pytest.fixture
def short() -> Iterator[Path]:
    """An empty folder with a short path, as sockets need it, for what is to be removed."""
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        yield Path(folder)


async def test_temporary_folder_with_a_long_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers start although the temporary folder's path is too long for a socket."""
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr(mcp_forks.tempfile, "tempdir", str(long))
    async with backend().open(task()) as sandbox:
        assert not (await sandbox.call("find_item", {"item_id": "scarf"})).is_error


# -- what is left ---------------------------------------------------------------------------------------------------


def commands() -> dict[str, str]:
    """Return the command line of every process, by its id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            found[path.parent.name] = path.read_bytes().replace(b"\0", b" ").decode()
    return found


def processes(mark: Path) -> set[str]:
    """Return the processes of forking helpers whose import path names a folder, so that other tests' are not counted."""
    return {pid for pid, command in commands().items() if "fork_server.py" in command and str(mark) in command}


def open_files() -> int:
    """Return how many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def settled(mark: Path) -> set[str]:
    """Return which of these processes are there once those that end have ended."""
    for _ in range(200):
        if not processes(mark):
            break
        await anyio.sleep(0.05)
    return processes(mark)


async def test_200_sessions_at_once_leave_nothing_behind(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 sessions that are open at once end without a process, an open file or a folder left."""
    monkeypatch.setattr(mcp_forks.tempfile, "tempdir", str(short))
    files = open_files()
    desk = backend(path=(str(DATA), str(short)))

    async def use(sandboxes: set[McpSandbox], ready: anyio.Event) -> None:
        async with desk.open(task()) as sandbox:
            await sandbox.call("set_state", {"item_id": "umbrella", "state": f"{len(sandboxes)}"})
            sandboxes.add(sandbox)
            await ready.wait()
            assert (await sandbox.state()).tables["items"]["umbrella"]["state"] != "found"

    async with desk.running():
        opened: set[McpSandbox] = set()
        ready = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(use, opened, ready)
            with anyio.fail_after(60):
                while len(opened) < 200:
                    await anyio.sleep(0.01)
            ready.set()
    assert await settled(short) == set()
    assert open_files() <= files + 1
    assert list(short.iterdir()) == []


async def test_what_a_tool_starts_ends_with_the_attempt() -> None:
    """A process that a tool started is ended with the attempt."""
    async with backend().open(task()) as sandbox:
        pid = (await sandbox.call("start_child", {})).value["pid"]
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            return
        await anyio.sleep(0.05)
    pytest.fail("the process goes on")


@pytest.mark.parametrize("how", ["async", "busy"])
async def test_nothing_outlives_a_killed_run(short: Path, how: str) -> None:
    """Servers end, whatever they are doing, and remove their folder, when the process that uses them is killed."""
    program = textwrap.dedent(f"""
        import asyncio, sys, tempfile
        tempfile.tempdir = {str(short)!r}
        from tbadapters import Task, UserBrief
        from tbadapters.core.grading import Expectation
        from tbadapters.sandboxes.mcp import McpBackend, McpServer
        async def main():
            desk = McpBackend({{"desk": McpServer(module="mcp_desk", path=({str(DATA)!r}, {str(short)!r}))}}, grader_of=lambda _: None)
            async with desk.open(Task("lost/x", "?", UserBrief("?"), Expectation(()), {{"desk": {{"items": []}}}})) as sandbox:
                print("open", flush=True)
                await sandbox.call("wait", {{"seconds": 30, "how": {how!r}}})
        asyncio.run(main())
    """)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"open\n"
    process.kill()
    await process.wait()
    assert await settled(short) == set()
    assert list(short.iterdir()) == []


async def test_nothing_outlives_a_run_that_is_killed_while_a_server_starts(tmp_path: Path, short: Path) -> None:
    """A server whose import is not done when the process that uses it is killed ends, and removes its folder."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import pathlib, time\n"
        "def before_import(options):\n"
        "    pathlib.Path(options['begun']).touch()\n"
        "    time.sleep(0.5)\n"
    )
    begun = tmp_path / "begun"
    program = textwrap.dedent(f"""
        import asyncio, pathlib, tempfile
        tempfile.tempdir = {str(short)!r}
        from tbadapters.sandboxes.mcp_forks import ForkedServer
        from tbadapters.sandboxes.mcp_server import McpServer
        slow = McpServer(
            module="mcp_desk", path=({str(DATA)!r}, {str(tmp_path)!r}), prepare=(pathlib.Path({str(slow)!r}),),
            options={{"begun": {str(begun)!r}}},
        )
        asyncio.run(ForkedServer.start("desk", slow, seconds=30))
    """)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    while not begun.exists():
        await anyio.sleep(0.02)
    process.kill()
    await process.wait()
    assert await settled(tmp_path) == set()
    assert list(short.iterdir()) == []
