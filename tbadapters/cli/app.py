"""The command line: parse, call, print. What it does is in ``campaign.py``, what it shows in ``reports``.

Exit codes: 0 done; 1 a check does not hold; 2 what was asked for can't be done; 3 the suite is wrong; 4 the run was
stopped early, what is finished is kept; 70 a bug in tbadapters; 130 interrupted, what is finished is kept. ``gate`` has
1 and 3 for its own answers (``gate.py``).
With ``TBADAPTERS_DEBUG`` in the environment, an error's traceback is printed before its sentence.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from tbadapters.core.abandoned import abandoned_tasks
from tbadapters.core.errors import RunStopped, SandboxFault, SuiteError, TbAdaptersError, UsageError, describe
from tbadapters.core.redaction import redacted
from tbadapters.reports.text import visible

DONE, CHECK_FAILED, USAGE, SUITE_WRONG, STOPPED, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
DEBUG = "TBADAPTERS_DEBUG"

_ORDER = ("demo", "tasks", "run", "compare", "show", "report", "gate", "check", "thinkingbox", "import-thinkingbox")


class _InOrder(typer.core.TyperGroup):
    """Lists the commands in the order in which they are needed, not that of their modules."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    name="tbadapters",
    cls=_InOrder,
    help="Score whole agents by the backend records they leave behind, over concurrent repeated trials.",
    epilog="Exit codes: 0 done, 1 a check does not hold, 2 usage, 3 the suite is wrong, 4 the run was stopped early, "
    "70 a bug in tbadapters, 130 interrupted (gate --help has its own). After 4, 70 and 130 what is finished is kept: go on with --resume. "
    f"With {DEBUG}=1 in the environment an error's traceback is printed, too.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tbadapters {version('tbadapters')}")
        raise typer.Exit(DONE)


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; every error is one sentence and a documented exit code."""
    try:
        app(arguments)
    except SystemExit as left:
        _leave(left.code)
    except Exception as error:  # noqa: BLE001  (the last place where one can be said in a sentence)
        if os.environ.get(DEBUG):
            typer.echo(redacted("".join(traceback.format_exception(error))), err=True, nl=False)
        typer.echo(f"tbadapters: {redacted(visible(_sentence(error)))}", err=True)
        _leave(_code(error))
    _leave(DONE)


def _leave(code: str | int | None) -> NoReturn:
    """Exit; an abandoned agent that still runs is ended with the process, whatever it holds."""
    if abandoned_tasks() and (code is None or isinstance(code, int)):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or DONE)
    sys.exit(code)


def _sentence(error: Exception) -> str:
    if isinstance(error, TbAdaptersError):
        return str(error)
    kept = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    return f"this is a bug in tbadapters, please report it ({describe(error)}; {DEBUG}=1 shows where).{kept}"


def _code(error: Exception) -> int:
    codes: tuple[tuple[type[TbAdaptersError], int], ...] = (
        (UsageError, USAGE),
        (SandboxFault, USAGE),  # before the first trial: its server does not start, say
        (SuiteError, SUITE_WRONG),
        (RunStopped, STOPPED),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), BUG)
