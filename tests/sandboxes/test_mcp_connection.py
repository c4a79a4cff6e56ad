"""Sessions with servers that an MCP client's session holds: what is said of those that can't be spoken to, and when."""

import re
import sys
from pathlib import Path

import anyio
import pytest

from tbadapters import Task, UserBrief
from tbadapters.core.errors import SandboxFault
from tbadapters.core.grading import Expectation
from tbadapters.sandboxes.mcp import McpBackend, McpServer
from tbadapters.sandboxes.mcp_connection import held, last_line, remote, spawned

DATA = Path(__file__).parents[1] / "data"
TASK = Task("lost/x", "?", UserBrief("?"), Expectation(()), {"desk": {"items": []}})


def program(code: str) -> tuple[str, ...]:
    """Return a command that runs some Python."""
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("/no/such/server", "--fast"), "`/no/such/server --fast` opened no session: No such file or directory. It said nothing."),
        (program("raise RuntimeError('no disk')"), "opened no session: .*closed. The last that it said: RuntimeError: no disk"),
        (program("import sys; sys.exit(3)"), "opened no session: .*closed. It said nothing."),
    ],
)  # fmt: skip
async def test_command_that_does_not_start_a_server(command: tuple[str, ...], sentence: str) -> None:
    """A command that opens no session is named, with why and with the last line that it said."""
    with pytest.raises(SandboxFault, match=sentence) as refused:
        await McpBackend({"desk": McpServer(command=command)}).list_tools("desk")
    assert refused.value.code == "not_started"


async def test_server_that_never_answers() -> None:
    """A program that reads and never answers meets the deadline of a start, and is named."""
    with anyio.fail_after(30), pytest.raises(SandboxFault, match=re.escape("it did not answer in time")):
        async with held(spawned(program("import sys; sys.stdin.read()"), {}, seconds=0.5)):
            pass


async def test_url_where_nobody_answers(unused_tcp_port: int) -> None:
    """A URL at which there is no server is named, with why."""
    url = f"http://127.0.0.1:{unused_tcp_port}/mcp"
    with pytest.raises(SandboxFault, match=f"The server at {url} opened no session: .*failed"):
        async with held(remote(url)):
            pass


async def test_server_that_dies_says_its_last_line() -> None:
    """A spawned server that ends in the middle of its work is quoted."""
    code = f"import sys; sys.path.insert(0, {str(DATA)!r}); import mcp_desk, os\n"
    code += "@mcp_desk.desk.tool()\ndef quit() -> str:\n"
    code += "    print('the disk is full', file=sys.stderr, flush=True); os._exit(3)\nmcp_desk.desk.run()"
    async with McpBackend({"desk": McpServer(command=program(code))}).open(TASK) as sandbox:
        with pytest.raises(SandboxFault, match=r"The server is gone: .*The last that it said: the disk is full"):
            await sandbox.call("quit", {})


def test_last_line_is_one_that_says_something() -> None:
    """Rulers below an error are passed over, and a line without an end is cut."""
    assert last_line("Traceback\nValueError: no disk\n  +------\n\n") == "ValueError: no disk"
    assert last_line("") == ""
    assert len(last_line("x" * 10_000)) < 400
