"""Sessions with the benchmark's tool servers: ours against the reference proxy, in one run.

python benchmarks/sessions.py --data THINKINGBOX_DATA --reference THINKINGBOX --peer-python PYTHON

A session is what a campaign does for a trial: open it, make the task's golden calls, read the effects, end it. Ours is
the sandbox that evaluate() opens; the peer is `tb mcp-start` of a checkout of microsoft/thinkingbox, driven over HTTP with
connections kept open (its own client opens one a request). 25 tasks, 5 a domain, 20 trials each; the peer is sampled. Each
session is checked: the records that it left must hash as the golden ones do. Neither indexes policies for search here
(`sources` are left out), which would cost the peer some thirty requests a session and us none.

Before: `tbadapters thinkingbox setup --data ...` for ours. PYTHON is an interpreter of an environment in which the
reference and its servers run: `fastmcp<4`, mcp[cli], httpx, pydantic[email], pyyaml, prompt_toolkit, uvicorn, scipy,
starlette, numpy, typesense, requests, rich, azure-identity, click, python-dateutil and odata-query; both checkouts are put
on its import path here. Nothing else should run on the machine meanwhile.
"""

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import re
import socket
import sys
import tempfile
import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import anyio
import httpx

from tbadapters import load_suite
from tbadapters.core.sandbox import running

SERVERS = "servers/servers.yaml"


def main():
    args = arguments()
    suite, tasks, starters = sample(args)
    jobs = [task for _ in range(args.trials) for task in tasks]
    print(f"{len(tasks)} tasks x {args.trials} trials, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    rows = asyncio.run(measured(args, suite, jobs, starters))
    report(rows, args)
    if args.profile:
        profile(args, suite, jobs, starters)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a checkout of thinkingbox-data")
    parser.add_argument("--reference", type=Path, help="a checkout of thinkingbox; without it only ours is measured")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that runs the reference")
    parser.add_argument("--python", help="the interpreter of our servers, where `thinkingbox setup` made none")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 20])
    parser.add_argument("--tasks", type=int, default=5, help="tasks of each domain")
    parser.add_argument("--trials", type=int, default=20, help="trials of each task")
    parser.add_argument("--peer-sessions", type=int, default=50, help="sessions of the peer a level")
    parser.add_argument("--memory-sessions", type=int, default=20, help="sessions that are open while memory is read")
    parser.add_argument("--json", type=Path, help="where the figures are written, too")
    parser.add_argument("--profile", type=Path, help="where a profile of our process at concurrency 4 is written")
    return parser.parse_args()


def sample(args):
    """Return the suite, the first tasks of each domain that have golden calls, and one more of each to start servers with.

    What only search needs is left out.
    """
    suite = load_suite("thinkingbox", data=str(args.data), search="stand-in", python=args.python)
    tasks, starters = [], []
    for part in suite.parts or (suite,):
        with_calls = (task for task in part.tasks if suite.backend.grader(task).golden_calls)
        chosen = [task for task, _ in zip(with_calls, range(args.tasks + 1), strict=False)]
        tasks += map(without_sources, chosen[: args.tasks])
        starters += map(without_sources, chosen[args.tasks :])
    return suite, tasks, starters


def without_sources(task):
    return replace(task, world={name: {**task.world[name], "sources": []} for name in task.world})


async def measured(args, suite, jobs, starters):
    rows = {}
    for level in args.concurrency:
        ours = await level_of(ours_running(suite, starters), jobs, level)
        rows[level] = {"ours": ours}
        if args.reference:
            rows[level]["peer"] = await level_of(peer_running(args, suite), jobs[: args.peer_sessions], level)
        print(f"concurrency {level} done", file=sys.stderr)
    jobs = jobs[: args.memory_sessions]
    rows["memory"] = {"ours": await memory_of(ours_running(suite, starters), jobs, kept=jobs)}
    if args.reference:
        rows["memory"]["peer"] = await memory_of(peer_running(args, suite), jobs)
    return rows


async def level_of(side, jobs, level):
    """Run sessions, so many at once, until the last has ended.

    The proxy has started, and our servers are imported, before the clock starts; that is ``start_seconds``.
    """
    seconds = {"open": [], "calls": [], "effects": [], "end": []}
    todo = iter(jobs)
    began = time.perf_counter()

    async def work(open_session):
        for task in todo:
            await one(open_session, task, seconds)

    async with side as open_session:
        ready = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(level):
                group.start_soon(work, open_session)
        ended = time.perf_counter()
    return {
        "sessions": len(jobs),
        "per_second": len(jobs) / (ended - ready),
        "start_seconds": ready - began,
        **{f"{phase}_p50_ms": 1000 * median(values) for phase, values in seconds.items()},
    }


async def one(open_session, task, seconds):
    at = [time.perf_counter()]
    async with open_session(task) as session:
        at.append(time.perf_counter())
        await session.play()
        at.append(time.perf_counter())
        check(await session.effects(), task)
        at.append(time.perf_counter())
    at.append(time.perf_counter())
    for phase, values in zip(("open", "calls", "effects", "end"), seconds.values(), strict=True):
        place = list(seconds).index(phase)
        values.append(at[place + 1] - at[place])


def check(effects, task):
    for server, told in effects.items():
        assert told["result_db_hash"] == told["golden_db_hash"], (
            f"{task.id}: {server} is not as its golden calls leave it"
        )


# -- ours ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def ours_running(suite, starters):
    """Import the servers as the proxy has started: before the clock does. Each task's init counts."""

    @asynccontextmanager
    async def open_session(task):
        async with suite.backend.open(task) as sandbox:
            yield Ours(sandbox, suite.backend.grader(task).golden_calls)

    async with running(suite.backend):
        for task in starters:
            async with open_session(task):
                pass
        yield open_session


class Ours:
    def __init__(self, sandbox, calls):
        self.sandbox, self.calls = sandbox, calls
        self.effects = sandbox.effects

    async def play(self):
        for call in self.calls:
            await self.sandbox.call(call.tool, call.arguments)


# -- the reference proxy ------------------------------------------------------------------------------------------


@asynccontextmanager
async def peer_running(args, suite):
    """Start the proxy as a user would, and wait until it answers."""
    port = free_port()
    paths = [args.reference, *sorted(path.parent for path in (args.data / "servers").glob("*/pyproject.toml"))]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(path.resolve()) for path in paths),
        "THINKINGBOX_DATA": str(args.data.resolve()),
        "FASTMCP_LOG_LEVEL": "WARNING",
    }
    command = [args.peer_python, "-m", "thinkingbox.cli.main", "mcp-start", "--port", str(port)]
    with tempfile.TemporaryFile() as said:
        process = await asyncio.create_subprocess_exec(
            *command, "--servers", str((args.data / SERVERS).resolve()), env=environment, stdout=said, stderr=said
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
                await answering(client, process, said)

                @asynccontextmanager
                async def open_session(task):
                    session = Peer(client, suite, task)
                    await session.create()
                    try:
                        yield session
                    finally:
                        await session.ask("session_destroy")

                yield open_session
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def answering(client, process, said):
    for _ in range(600):
        if process.returncode is not None:
            said.seek(0)
            raise SystemExit(f"The reference proxy ended: {said.read().decode(errors='replace')[-2000:]}")
        try:
            await client.get("/health")
        except httpx.TransportError:
            await asyncio.sleep(0.1)
        else:
            return
    raise SystemExit("The reference proxy did not answer in 60 s.")


class Peer:
    def __init__(self, client, suite, task):
        self.client, self.task = client, task
        self.id = uuid.uuid4().hex
        self.calls = suite.backend.grader(task).golden_calls
        self.tools = [tool.name for tool in suite.part_of(task).tool_list if not tool.ends_turn]

    async def create(self):
        await self.ask("session_create", server_config=dict(self.task.world), available_tools=self.tools, timeout=270)

    async def play(self):
        for call in self.calls:
            await self.ask("call_tool", refusable=True, tool_name=call.tool, arguments=dict(call.arguments))

    async def effects(self):
        return await self.ask("get_effects")

    async def ask(self, path, *, refusable=False, **given):
        answer = await self.client.post(f"/{path}", json={"session_id": self.id, **given})
        if refusable and not answer.is_server_error:
            return None  # a golden call that only reads may be answered by an error
        answer.raise_for_status()
        return answer.json()["content"]["value"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# -- memory -------------------------------------------------------------------------------------------------------


async def memory_of(side, jobs, kept=()):
    """Return the unique memory (USS, MB) of a session: of the processes that are there for it once its work is done.

    What a side keeps for its tasks (``kept``) is there before, and not a session's.
    """
    seconds = {"open": [], "calls": [], "effects": [], "end": []}
    async with side as open_session:
        for task in kept:
            await one(open_session, task, seconds)
        before = set(descendants())
        done, megabytes, held = anyio.Event(), [], []

        async def hold(task):
            async with open_session(task) as session:
                await session.play()
                await session.effects()
                held.append(task)
                if len(held) == len(jobs):
                    megabytes.extend(unique_megabytes(pid) for pid in set(descendants()) - before)
                    done.set()
                await done.wait()

        async with anyio.create_task_group() as group:
            for task in jobs:
                group.start_soon(hold, task)
    return {"sessions": len(jobs), "processes": len(megabytes), "unique_mb": sum(megabytes) / len(jobs)}


def descendants():
    """Return the processes that this one started, and those that they started."""
    children = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    todo, found = [os.getpid()], []
    while todo:
        for child in children.get(todo.pop(), ()):
            found.append(child)
            todo.append(child)
    return found


def unique_megabytes(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(kilobytes) for kilobytes in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE)) / 1024


# -- what comes of it ---------------------------------------------------------------------------------------------


def report(rows, args):
    for level in args.concurrency:
        for name, row in rows[level].items():
            times = ", ".join(f"{k.removesuffix('_p50_ms')} {v:.1f}" for k, v in row.items() if k.endswith("_ms"))
            print(
                f"{name:4} at {level:2}: {row['per_second']:8.2f} sessions/s of {row['sessions']:4} "
                f"(p50 ms: {times}; start {row['start_seconds']:.2f} s)"
            )
        if "peer" in rows[level]:
            ratio = rows[level]["ours"]["per_second"] / rows[level]["peer"]["per_second"]
            rows[level]["ratio"] = ratio
            print(f"     at {level:2}: {ratio:8.1f} x")
    for name, row in rows["memory"].items():
        print(
            f"{name:4} memory: {row['unique_mb']:.1f} MB unique a session ({row['processes']} processes, {row['sessions']} sessions)"
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


def profile(args, suite, jobs, starters):
    """Profile our own process at concurrency 4; the servers' processes are not in it."""
    profiler = cProfile.Profile()
    profiler.enable()
    asyncio.run(level_of(ours_running(suite, starters), jobs, 4))
    profiler.disable()
    profiler.dump_stats(args.profile)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(15)


if __name__ == "__main__":
    main()
