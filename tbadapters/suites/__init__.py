"""The built-in suites, and how any suite is found by its name, its file or its module."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from tbadapters.core.errors import InvalidOption, SuiteError, TbAdaptersError, UnknownName, UsageError, describe
from tbadapters.core.event_loop import run_apart
from tbadapters.core.plugins import load_plugin, plugin_names
from tbadapters.core.suite import Suite, joined

GROUP = "tbadapters.suites"
OneSuite = str | PathLike[str] | Suite
Suites = OneSuite | Sequence[OneSuite]

__all__ = ["Suites", "load_suite", "suite_names"]


def suite_names() -> list[str]:
    """Return the names of the installed suites."""
    return plugin_names(GROUP)


def load_suite(suite: Suites, **options: Any) -> Suite:
    """Return a suite.

    Args:
        suite: The name of an installed suite (``neobank``) or of a part of one (``thinkingbox/retail``), the path of a
            ``.py`` file that defines ``suite`` (a ``Suite``) or ``load(**options)``, sync or async, or ``module:attr`` (either of
            these); several of them, in a list or with commas between, are joined into one suite.
        **options: The suite's own options, such as ``suite_seed=7`` for a fresh set of tasks of equal difficulty.

    Raises:
        UnknownName: no such suite, or no such part of it.
        InvalidOption: the suite has no such option.
        SuiteError: the suite can't be loaded.
    """
    if isinstance(suite, str) and "," in suite:
        suite = [name.strip() for name in suite.split(",") if name.strip()]
    if isinstance(suite, Suite):
        if options:
            raise InvalidOption(f"The suite {suite.name!r} is made already: its options go where it is loaded.")
        return suite
    if isinstance(suite, str | PathLike):
        return _loaded(str(suite), options)
    several = joined([load_suite(one, **options) for one in suite])
    sources = [part.source for part in several.parts]
    return several if None in sources else replace(several, source=",".join(map(str, sources)), options=_kept(options))


def _loaded(name: str, options: dict[str, Any]) -> Suite:
    suite = _made(name, _found(name), options)
    return replace(suite, source=name, options=suite.options or _kept(options))


def _kept(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a manifest can hold; the seed of the tasks is kept apart."""
    kept = {name: str(value) if isinstance(value, PathLike) else value for name, value in options.items()}
    return {name: v for name, v in kept.items() if name != "suite_seed" and isinstance(v, str | int | float)}


def _found(name: str) -> Any:
    suite, _, part = name.partition("/")
    if part and suite in suite_names() and not Path(name).exists():
        return _part(suite, part)
    if name.endswith(".py"):
        return _from_file(Path(name))
    return _from_module(name) if ":" in name else load_plugin(GROUP, name, kind="suite")


def _part(suite: str, part: str) -> Callable[..., Any]:
    """Return the function that loads a part of an installed suite: the suite's own, if it takes a ``part``."""
    load = load_plugin(GROUP, suite, kind="suite")
    parameter = inspect.signature(load).parameters.get("part") if callable(load) else None
    if parameter is None:
        raise InvalidOption(f"The suite {suite!r} has no parts: say suite={suite!r}, and which tasks= of it.")
    return partial(load, part=part)


def _made(name: str, found: Any, options: dict[str, Any]) -> Suite:
    if isinstance(found, Suite):
        return _reseeded(name, found, options)
    if not callable(found):
        raise SuiteError(f"The suite {name!r} is neither a Suite nor a function that returns one: {found!r}.")
    _check_options(name, found, options)
    try:
        suite = found(**options)
        if inspect.iscoroutine(suite):  # it asks a server for its tools, say
            suite = run_apart(partial(_awaited, suite))
    except TbAdaptersError:
        raise
    except Exception as error:
        if options:  # what was asked for is more likely wrong than the suite
            given = ", ".join(f"{option}={value!r}" for option, value in options.items())
            raise InvalidOption(f"The suite {name!r} can't be loaded with {given}: {describe(error)}") from error
        raise SuiteError(f"The suite {name!r} can't be loaded: {describe(error)}") from error
    if not isinstance(suite, Suite):
        raise SuiteError(f"The function of the suite {name!r} returned {type(suite).__name__}, not a Suite.")
    return suite


async def _awaited(made: Coroutine[Any, Any, Any]) -> Any:
    return await made


def _reseeded(name: str, suite: Suite, options: dict[str, Any]) -> Suite:
    known = ["suite_seed"] if suite.reseed else []
    for option in options:
        if option not in known:
            raise _no_such_option(name, option, known)
    if not options or suite.reseed is None or options["suite_seed"] == suite.seed:
        return suite
    return suite.reseed(options["suite_seed"])


def _check_options(name: str, load: Callable[..., Any], options: dict[str, Any]) -> None:
    parameters = inspect.signature(load).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY]
    if isinstance(load, partial):  # which part it is stands in the name
        known = [option for option in known if option not in load.keywords]
    for option in options:
        if option not in known:
            raise _no_such_option(name, option, known)


def _no_such_option(name: str, option: str, known: list[str]) -> InvalidOption:
    mend = f"It has {', '.join(known)}." if known else "It has none."
    return InvalidOption(f"The suite {name!r} has no option {option!r}. {mend}")


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"There is no suite file {str(path)!r}.")
    digest = sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"_tbadapters_suite_{digest}", path)
    if spec is None or spec.loader is None:
        raise SuiteError(f"The suite file {str(path)!r} can't be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses and type hints look their module up by name
    try:
        spec.loader.exec_module(module)
    except TbAdaptersError:
        raise
    except Exception as error:
        raise SuiteError(f"The suite file {str(path)!r} can't be imported: {describe(error)}") from error
    return _entry(module, str(path))


def _entry(module: ModuleType, name: str) -> Any:
    for attribute in ("suite", "load"):
        if hasattr(module, attribute):
            return getattr(module, attribute)
    raise SuiteError(f"The suite file {name!r} defines neither suite (a Suite) nor load(**options).")


def _from_module(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except TbAdaptersError:
        raise
    except Exception as error:
        raise UsageError(f"The suite {name!r} can't be imported: {describe(error)}") from error
    if not hasattr(module, attribute):
        raise UnknownName("suite", name, [f"{module_name}:{known}" for known in vars(module) if known[0] != "_"])
    return getattr(module, attribute)
