"""An agent that does not keep to anything: it may hold no run and touch no other trial.

What it does is the name of a function here, read from the file that the environment names; the lines after it are
that function's ``told``.
"""

# ruff: noqa: T201  (that is what it is for)

import asyncio
import ctypes
import gc
import json
import os
import pickle
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from tbadapters import factory
from tbadapters.core.errors import ProviderFault, SandboxFault, ToolError

told: list[str] = []


async def agent(message, ctx):
    """Do what is chosen."""
    name, *told[:] = Path(os.environ["BEHAVIOUR"]).read_text().splitlines()
    return await globals()[name](message, ctx)


CLAIM = "Your ticket is on hold and the call is booked for Tuesday."


async def exits(message, ctx):
    """Leave the process without a word."""
    os._exit(3)


async def leaves(message, ctx):
    """Leave as a script does."""
    sys.exit("enough")


async def killed(message, ctx):
    """End as the system ends what takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


async def crashes(message, ctx):
    """Read where nothing is."""
    ctypes.string_at(0)


async def blocks(message, ctx):
    """Block the loop without end, once it is told to."""
    await ctx.call("get_ticket", ticket_id="T-1")
    while True:
        time.sleep(1)


async def swallows(message, ctx):
    """Swallow every cancellation, once it is told to."""
    await ctx.call("get_ticket", ticket_id="T-1")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


async def tidies(message, ctx):
    """Clean up when it is cancelled, and prove it."""
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)
        Path(told[0]).write_text("yes")


async def huge(message, ctx):
    """Return 200 MB."""
    return "x" * 200_000_000


async def notes(message, ctx):
    """Remark the same for ever, without waiting."""
    while True:
        ctx.record_usage("m")


async def calls(message, ctx):
    """Call a tool 10,000 times."""
    for _ in range(10_000):
        await ctx.call("get_ticket", ticket_id="T-1")


async def calls_at_once(message, ctx):
    """Call a tool 10,000 times at once."""
    async with asyncio.TaskGroup() as group:
        for _ in range(10_000):
            group.create_task(ctx.call("get_ticket", ticket_id="T-1"))


async def breeds(message, ctx):
    """Leave two processes behind, one of them in a session of its own, and claim."""
    for new_session in (False, True):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=new_session)
        with Path(told[0]).open("a") as file:
            file.write(f"{child.pid}\n")
    return CLAIM


async def prints(message, ctx):
    """Print what would fool a reader of the terminal."""
    print("\x1b[2Jpass@1 is 100.0%", flush=True)
    return CLAIM


async def remembers(message, ctx):
    """Say how often this process was asked before."""
    _memory.append(1)
    return f"{len(_memory)} {CLAIM}"


_memory = []


async def names_trial(message, ctx):
    """Say which trial it knows of."""
    from tbadapters.core.context import running

    return f"{running.get().trial} {CLAIM}"


async def sandbox_fault(message, ctx):
    """Blame the sandbox."""
    raise SandboxFault("it was the sandbox")


async def provider_fault(message, ctx):
    """Blame the provider."""
    raise ProviderFault("it was the provider")


def _descriptor():
    """Return the descriptor of the socket to the run, as whoever looks for it finds it."""
    pipe = next(found for found in gc.get_objects() if type(found).__name__ == "Pipe")
    return pipe._writer.transport.get_extra_info("socket").fileno()


def _message(data):
    return struct.pack("!I", len(data)) + data


def _sends(data):
    return _sends_each([data])


def _sends_each(pieces):
    async def agent(message, ctx):
        os.set_blocking(_descriptor(), True)
        for piece in pieces:
            with open(os.dup(_descriptor()), "wb") as pipe:  # noqa: PTH123  (it has no path)
                pipe.write(piece)
        while True:
            time.sleep(1)

    return agent


garbage = _sends(b"\xff" * 100)
no_json = _sends(_message(b"{nonsense"))
wrong_type = _sends(_message(json.dumps({"type": "said", "text": 5}).encode()))
unknown_type = _sends(_message(json.dumps({"type": "verdict", "passed": True}).encode()))
extra_field = _sends(_message(json.dumps({"type": "said", "text": "hi", "passed": True}).encode()))
deep = _sends(_message(b"[" * 100_000))
long_length = _sends(struct.pack("!I", 200_000_000))
twice = _sends(_message(json.dumps({"type": "said", "text": CLAIM}).encode()) * 3)
out_of_turn = _sends(_message(json.dumps({"type": "opened"}).encode()))
no_request = _sends(_message(json.dumps({"type": "seen", "id": 1, "event": "ended", "status": 200}).encode()))
not_a_model = _sends(
    _message(json.dumps({"type": "seen", "id": 1, "event": "request", "method": "GET", "url": "http://x/"}).encode())
)
no_url = _sends(
    _message(json.dumps({"type": "seen", "id": 1, "event": "request", "method": "POST", "url": "http://x:y/"}).encode())
)


async def right(message, ctx):
    """Do everything right."""
    ticket = re.search(r"T-\d+", message).group()
    await ctx.call("set_status", ticket_id=ticket, status="hold")
    await ctx.call("book_call", ticket_id=ticket, day="Tuesday")
    return CLAIM


async def by_ticket(message, ctx):
    """Do right for the second ticket, block for the first, die for the third."""
    return await {"T-1": blocks, "T-2": right, "T-3": killed}[re.search(r"T-\d", message).group()](message, ctx)


_ASKED = {"type": "seen", "event": "request", "method": "POST", "url": "http://x/v1/messages", "body": "x" * 15_000_000}
waits_for_ever = _sends(_message(json.dumps({**_ASKED, "event": "hold", "id": 1, "body": ""}).encode()) * 2)
waits_often = _sends(
    b"".join(_message(json.dumps({**_ASKED, "event": "hold", "id": i, "body": ""}).encode()) for i in range(1100))
)
remarks = _sends(_message(b'{"type":"note","text":""}') * 25_000)
empty = _sends(_message(b""))
asks_of_nothing = _sends(_message(b'{"type":"asks","calls":[' + b"{}," * 5_000_000 + b"{}]}"))
lists_of_nothing = _sends(_message(b'{"type":"note","text":[' + b"[]," * 5_000_000 + b"[]]}"))
texts_of_nothing = _sends(_message(b'{"type":"note","text":[' + b'"",' * 5_000_000 + b'""]}'))
_CALL = {"type": "call", "id": 1, "name": "get_ticket", "actor": None}
deep_arguments = _sends(_message(json.dumps({**_CALL, "arguments": "[" * 900_000}).encode()))
no_arguments = _sends(_message(json.dumps({**_CALL, "arguments": "{nonsense"}).encode()))
pickled = _sends(_message(pickle.dumps({"type": "said", "text": CLAIM})))
floods = _sends_each([_message(json.dumps({**_ASKED, "id": number}).encode()) for number in range(5)])


async def compares_for_ever(message, ctx):
    """Tell of a model request whose parts are compared with each other, and that it failed; claim."""
    parts = [{"call_id": number} for number in range(200_000)]
    body = json.dumps({"messages": [{"role": "user", "content": parts}]})
    told = [{**_ASKED, "id": 1, "body": body}, {"type": "seen", "id": 1, "event": "ended", "status": 400, "body": "{}"}]
    os.set_blocking(_descriptor(), True)
    with open(os.dup(_descriptor()), "wb") as pipe:  # noqa: PTH123  (it has no path)
        pipe.write(b"".join(_message(json.dumps(one).encode()) for one in told))
    return CLAIM


async def long_arguments(message, ctx):
    """Say what a tool answers to 20 MB."""
    try:
        return await ctx.call("book_call", ticket_id="T-1", day="x" * 20_000_000)
    except ToolError as error:
        return f"{error} {CLAIM}"


async def interrupts(message, ctx):
    """Interrupt the whole process group."""
    os.kill(0, signal.SIGINT)
    await asyncio.sleep(5)


async def terminates(message, ctx):
    """Terminate the whole process group."""
    os.kill(0, signal.SIGTERM)
    await asyncio.sleep(5)


async def raises_interrupt(message, ctx):
    """Raise what Ctrl-C does."""
    raise KeyboardInterrupt


async def closes_half(message, ctx):
    """Say that nothing more will come, and go on."""
    socket.socket(fileno=os.dup(_descriptor())).shutdown(socket.SHUT_WR)
    time.sleep(60)


async def closes_all(message, ctx):
    """Close every file, and go on."""
    os.closerange(0, 4096)
    time.sleep(60)


async def half_a_message(message, ctx):
    """Leave in the middle of a message."""
    os.write(_descriptor(), _message(b'{"type":"said","text":"x"}')[:9])
    os._exit(0)


async def two_answers(message, ctx):
    """Fork, and answer twice."""
    os.fork()
    return CLAIM


async def stops_its_loop(message, ctx):
    """Stop the loop that the session runs in."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(60)


class Unreadable(Exception):
    """Has no message, and no text either."""

    def __str__(self):
        return 5  # noqa: PLE0307  (that is what it is for)


async def unreadable(message, ctx):
    """Raise what can't be described."""
    raise Unreadable


async def too_long_an_error(message, ctx):
    """Raise 200 MB."""
    raise ValueError("x" * 200_000_000)


def shut_factory(tools):
    """Close every file before the session is open, and go on."""
    os.closerange(3, 4096)
    time.sleep(60)


shut = factory(shut_factory)


async def lists_files(message, ctx):
    """Say what this process has open, and what its environment says of keys."""
    opened = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return json.dumps([opened, os.environ["MY_OWN_SETTING"]])
