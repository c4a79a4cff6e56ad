"""The command line's words as the options of ``Campaign``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tbadapters.core.approvals import NAMES
from tbadapters.core.cost import Price
from tbadapters.core.errors import InvalidOption
from tbadapters.core.limits import Limits
from tbadapters.core.run_folder import load_manifest, undamaged
from tbadapters.core.store import refuse_imported
from tbadapters.core.suite import Suite
from tbadapters.core.tool_faults import ToolFaults
from tbadapters.core.user_choice import SCRIPTED
from tbadapters.suites import load_suite, suite_names

Options = dict[str, Any]

SuiteOption = Annotated[
    str | None,
    typer.Option(
        help="A suite's name (or part, such as thinkingbox/retail), the path of its file, or several with commas."
    ),
]
SuiteArgument = Annotated[str, typer.Argument(help="A suite's name or part, or the path of its file.")]
SuiteOptions = Annotated[
    list[str] | None, typer.Option("--suite-option", help="An option of the suite, such as data=PATH; may be repeated.")
]
SeedOfSuite = Annotated[
    int | None, typer.Option(help="Build the suite's tasks from this seed; 0 is the published set.")
]
TasksOption = Annotated[
    list[str] | None, typer.Option("--tasks", help="Task id, pattern or tag:NAME; may be repeated or comma-separated.")
]
TrialsOption = Annotated[int | None, typer.Option(help="Trials of each task (default 20).")]
ConcurrencyOption = Annotated[
    int | None, typer.Option(help="Trials under way at once (default: adapts, 16 at first, 64 at most).")
]
SeedOption = Annotated[int | None, typer.Option(help="Seed of whatever draws at random.")]
OutOption = Annotated[Path | None, typer.Option(help="Where the run folder is made (default: runs).")]
MaxCostOption = Annotated[float | None, typer.Option(help="US dollars at which no further trial is begun.")]
PriceOption = Annotated[
    list[str] | None, typer.Option("--price", help="model=input,cached,output in US dollars per million tokens.")
]
FloorOption = Annotated[
    float | None,
    typer.Option("--coverage-floor", help="Share of planned trials with a verdict that allows a headline (0.95)."),
]
LimitOption = Annotated[
    list[str] | None, typer.Option("--limit", help="A limit of one trial, such as seconds=120 or tool_calls=40.")
]
UserOption = Annotated[
    str | None, typer.Option(help="The simulated user: scripted (default), or a model such as openai:gpt-5-mini.")
]
JudgeOption = Annotated[
    str | None,
    typer.Option(help="A model that judges what was said, for tasks that ask; without one they are left out."),
]
InstructionsOption = Annotated[
    str | None, typer.Option(help="append (default) gives the agent the suite's policy; none leaves it as it is.")
]
ApprovalsOption = Annotated[
    str | None,
    typer.Option(help="Who agrees to calls that need it: user (default, the simulated one), approve (all), deny."),
]
IsolationOption = Annotated[
    str | None, typer.Option(help="process runs the agent in processes of its own; none (default) in this one.")
]
FaultsOption = Annotated[
    str | None,
    typer.Option(help="Faults that tool calls meet, such as late_timeout=0.1,slow=0.05,slow_seconds=1,tools=pay_*."),
]
ProgressOption = Annotated[str, typer.Option(help="auto, on or off.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]


def suite_of(name: str | None, suite_seed: int | None, options: Mapping[str, Any] | None = None) -> Suite:
    """Return the suite that was named, loaded with these options of its own.

    Raises:
        InvalidOption: none was, or it has no such option.
        UnknownName: there is none of that name.
    """
    if name is None:
        raise InvalidOption(f"--suite is needed: one of {', '.join(suite_names())}, or the path of a suite's file.")
    given = dict(options or {})
    return load_suite(name, **(given if suite_seed is None else given | {"suite_seed": suite_seed}))


def suite_options_of(texts: Sequence[str] | None) -> dict[str, str | int]:
    """Return the options of a suite, each given as ``name=value``; a whole number is one.

    Raises:
        InvalidOption: one has another form.
    """
    pairs = [text.partition("=") for text in texts or ()]
    for name, equals, _ in pairs:
        if not equals or not name.isidentifier():
            raise InvalidOption(f"--suite-option {name!r}: name=value is needed, such as data=PATH.")
    return {name: int(value) if value.isdecimal() else value for name, _, value in pairs}


def patterns_of(tasks: Sequence[str] | None) -> list[str] | int | None:
    """Return the patterns of tasks, or a number where one number is all that was given."""
    if not tasks:
        return None
    patterns = [part.strip() for text in tasks for part in text.split(",") if part.strip()]
    if len(patterns) == 1 and patterns[0].lstrip("-").isdigit():
        return int(patterns[0])
    return patterns


def limits_of(texts: Sequence[str] | None, before: Limits) -> Limits:
    """Return limits in which each ``name=value`` replaces what stood before; ``none`` takes the limit away.

    Raises:
        InvalidOption: no limit of that name, or no number.
    """
    known = {item.name: item for item in fields(Limits)}
    changes: dict[str, float | int | None] = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        if name not in known:
            raise InvalidOption(f"--limit {text!r}: the limits are {', '.join(known)}.")
        changes[name] = _number(text, value)
    return replace(before, **changes)  # type: ignore[arg-type]  # the names were looked up, Limits checks the values


def _number(text: str, value: str) -> float | int | None:
    if value.lower() == "none":
        return None
    try:
        return int(value) if value.isdigit() else float(value)
    except ValueError:
        raise InvalidOption(f"--limit {text!r}: name=number is needed, such as seconds=120.") from None


def prices_of(texts: Sequence[str] | None) -> dict[str, Price]:
    """Return the user's prices by model."""
    return dict(Price.parse(text) for text in texts or ())


def agents_of(texts: Sequence[str]) -> dict[str, str]:
    """Return agents by name of ``name=module:attr``; without a name, the attribute is the name.

    Raises:
        InvalidOption: two have the same name, or one has none.
    """
    agents: dict[str, str] = {}
    for text in texts:
        name, equals, spec = text.partition("=")
        name, spec = (name, spec) if equals else (text.rpartition(":")[2], text)
        if not name or name in agents:
            raise InvalidOption(f"{text!r}: each agent needs a name of its own, such as mine={spec}.")
        agents[name] = spec
    return agents


def resumed(folder: Path, given: Options) -> Options:
    """Return the options of a run that goes on: those it was started with, but for what is given now.

    A setting that must not change and is given differently is refused later, by ``check_resume``.

    Raises:
        UnusableFolder: it is no run folder.
        ResumeMismatch: its trials were imported.
    """
    manifest = load_manifest(folder)
    refuse_imported(folder, manifest)
    before = manifest["settings"]
    seed, options = given.pop("suite_seed"), suite_options_of(given.pop("suite_option"))
    suite = suite_of(
        given.pop("suite") or manifest.get("suite_source") or before["suite"],
        before.get("suite_seed") or None if seed is None else seed,
        {**manifest.get("suite_options", {}), **options},
    )
    with undamaged(folder):
        limits = Limits(**before["limits"])
        faults = ToolFaults.from_dict(before["tool_faults"]) if before.get("tool_faults") else None
    then: Options = {
        "suite": suite,
        "tasks": [task["id"] for task in manifest["tasks"]],
        "trials": before.get("trials"),
        "seed": before.get("seed"),
        "instructions": before.get("instructions"),
        "user": _named(before.get("user")) or SCRIPTED,
        "judge": _named(before.get("judge")),
        "approvals": before["approvals"] if before.get("approvals") in NAMES else "user",
        "isolation": manifest.get("isolation", "none"),
        "faults": faults,
        "limits": limits_of(given.pop("limit"), limits),
        "prices": {model: Price(**price) for model, price in (manifest.get("prices") or {}).items()},
        "resume": folder,
    }
    return then | {name: value for name, value in given.items() if value is not None}


def _named(model: str | None) -> str | None:
    """Return what can be passed as a user or a judge again; another one than a model by name can't be."""
    return model if model and ":" in model else None


def started(given: Options) -> Options:
    """Return the options of a new run: what is given, the defaults of ``evaluate`` else."""
    options = suite_options_of(given.pop("suite_option"))
    suite = suite_of(given.pop("suite"), given.pop("suite_seed"), options)
    limits = limits_of(given.pop("limit"), Limits())
    return {"suite": suite, "limits": limits} | {name: value for name, value in given.items() if value is not None}
