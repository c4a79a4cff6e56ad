"""References of golden actions to the results of earlier ones: where they stand, and what they point at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tbadapters.core.grading import Ref


def refs(value: Any) -> Iterator[Ref]:
    """Yield every ``Ref`` inside JSON-like data."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from refs(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from refs(item)


def with_refs(value: Any, replaced: Callable[[Ref], Any]) -> Any:
    """Return JSON-like data in which ``replaced(ref)`` stands in the place of each ``Ref``."""
    if isinstance(value, Ref):
        return replaced(value)
    if isinstance(value, Mapping):
        return {name: with_refs(item, replaced) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_refs(item, replaced) for item in value]
    return value


def followed(value: Any, path: str) -> Any:
    """Return what a dotted path leads to inside JSON-like data; the empty path leads to the whole.

    Raises:
        LookupError: it leads nowhere.
    """
    for part in filter(None, path.split(".")):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise LookupError(path) from None
    return value
