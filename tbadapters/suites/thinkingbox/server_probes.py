"""Looks at a server's records from inside its process: a preparation file (see ``sandboxes/preparations``).

The servers of the benchmark keep their records as Pydantic models and mark in these what their hash leaves out. Two
probes read that where it is, so that no list of such fields has to be kept here:

    thinkingbox_rules      table -> the fields that the hash leaves out, the fields that the model has where further
                           ones don't count, and the fields that make a row's key
    thinkingbox_changes    the rows that changed since it was asked last, each as [table, before, after]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TABLES = "_model_cls_to_stem"
"""The attribute by which a server's database is known: model -> table."""

_seen: dict[str, dict[str, dict[str, Any]]] = {}


def rules(module: Any, argument: Any = None) -> dict[str, Any]:
    """Return what counts in each table."""
    del argument
    found = {}
    for model, table in _tables(module):
        fields = list(model.model_fields)
        found[table] = {
            "left_out": [name for name in fields if _is_unstable(model.model_fields[name])],
            "fields": fields if getattr(model, "unstable_extra_fields", False) is True else None,
            "key": _key_fields(model) or (["id"] if "id" in fields else fields[:1]),
        }
    return found


def changes(module: Any, argument: Any = None) -> list[list[Any]]:
    """Return the rows that changed since the last time, and remember those that are now.

    Args:
        module: The server's module.
        argument: ``start`` to remember them only.
    """
    now = _rows(module)
    changed = []
    for table in {} if argument == "start" else {**_seen, **now}:
        before, after = _seen.get(table, {}), now.get(table, {})
        if before != after:
            keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
            changed += [[table, before.get(key), after.get(key)] for key in keys]
    _seen.clear()
    _seen.update(now)
    return changed


PROBES = {"thinkingbox_rules": rules, "thinkingbox_changes": changes}


def _database(module: Any) -> Any:
    """Return the server's database: what one of the module's objects, or the object itself, keeps models and rows in."""
    for value in list(vars(module).values()):
        for candidate in (value, getattr(value, "db", None)):
            if hasattr(candidate, _TABLES) and not isinstance(candidate, type):
                return candidate
    raise LookupError("the server has no database of models in its module")


def _tables(module: Any) -> Iterator[tuple[Any, str]]:
    yield from getattr(_database(module), _TABLES).items()


def _rows(module: Any) -> dict[str, dict[str, dict[str, Any]]]:
    database = _database(module)
    found = {}
    for model, table in _tables(module):
        rows = {}
        for place, item in enumerate(database.get_all(model)):
            rows[str(item.get_id() if hasattr(item, "get_id") else place)] = item.model_dump(mode="json")
        found[table] = rows
    return found


def _is_unstable(field: Any) -> bool:
    return any(type(mark).__name__ == "UnstableField" for mark in field.metadata)


class _Watched:
    """Stands where a row would: notes which of its fields are read."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        self._names.append(name)
        return _Part()


class _Part:
    """Stands where a field's value would."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __str__(self) -> str:
        return ""


def _key_fields(model: Any) -> list[str]:
    """Return the fields that a model's ``get_id`` reads."""
    names: list[str] = []
    try:
        model.get_id(_Watched(names))
    except Exception:  # noqa: BLE001  (a method that does more with its fields than to put them together)
        return []
    return [name for name in dict.fromkeys(names) if name in model.model_fields]
