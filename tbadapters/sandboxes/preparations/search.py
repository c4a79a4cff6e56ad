"""Points the Typesense client of a server's process to the search of the run, and lets attempts share what it holds.

Option ``search``: ``host``, ``port`` and ``prefix``, with which the names of the run's collections begin; without the
option the client is left alone.

A server indexes its documents in each session anew, under a name that it draws. Here its process only notes them. The
first search sends them, in one request, to a collection that is named by their digest, so that every attempt with the
same documents finds it there. So indexing what nobody searches costs nothing; a process that is forked after the
documents were noted shares them; and an attempt that deletes its collection forgets its own notes and harms no other.
Idle connections, which forks would share, are not kept.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

_collections: dict[str, _Noted] = {}
_prefix = ""


def before_import(options: Mapping[str, Any]) -> None:
    """Have the client's class make clients of the run's search, where the server's environment has it."""
    search = options.get("search")
    if search is None:
        return
    try:
        typesense = importlib.import_module("typesense")
    except ImportError:
        return  # a server that does not search
    global _prefix  # noqa: PLW0603  (a preparation file is executed once a process)
    _prefix = search["prefix"]
    made = typesense.Client.__init__
    node = {"host": search["host"], "port": str(search["port"]), "protocol": "http"}

    def make(client: Any, config: Mapping[str, Any]) -> None:
        # Without TLS the certificates, 36 ms of CPU a client, verify nothing.
        made(client, {**config, "nodes": [node], "nearest_node": None, "verify": False, "max_keepalive_connections": 0})
        client.collections = _Collections(client)
        client.multi_search = _MultiSearch(client.multi_search, client.collections)

    def refuse(_client: Any, *_arguments: Any, **_options: Any) -> None:
        raise NotImplementedError("Only the search client's synchronous class can be pointed to the run's search.")

    # The first client imports what every fork would import again; it connects to nothing.
    made(object.__new__(typesense.Client), {"api_key": "none", "nodes": [node], "verify": False})
    typesense.Client.__init__ = make
    if hasattr(typesense, "AsyncClient"):
        typesense.AsyncClient.__init__ = refuse


class _Shared:
    """What has no more methods than attempts can share."""

    _what = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(
            f"{self._what}.{name} of the search client can't be kept apart for each attempt: what can is collections "
            "created, retrieved and deleted, documents created, imported, upserted and searched, and multi_search."
        )


class _Noted:
    """A collection that this process created: its schema and documents, in the order in which they came."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)
        self.documents: dict[str, dict[str, Any]] = {}
        self._sent: tuple[int, str] | None = None
        self._changes = 0

    def summary(self) -> dict[str, Any]:
        return {"created_at": 0, "default_sorting_field": "", **self.schema, "num_documents": len(self.documents)}

    def note(self, document: Mapping[str, Any], *, replace: bool = False) -> dict[str, Any]:
        """Note a document; one that comes again is the server's mistake, unless it replaces."""
        noted = {**document, "id": document.get("id", str(len(self.documents)))}
        if noted["id"] in self.documents and not replace:
            raise _error("ObjectAlreadyExists", 409, f"A document with id {noted['id']} already exists.")
        self.documents[noted["id"]] = noted
        self._changes += 1
        return noted

    def sent(self, real: Any) -> str:
        """Have the search hold these documents; return the name under which it does."""
        if self._sent is None or self._sent[0] != self._changes:
            # Ids are drawn anew in each session: places stand in for them, so that the same texts are the same.
            rows = [{**document, "id": str(place)} for place, document in enumerate(self.documents.values())]
            content = json.dumps([self.schema | {"name": ""}, rows], sort_keys=True)
            name = _prefix + hashlib.sha256(content.encode()).hexdigest()[:24]
            _reached(lambda: _send(real, {**self.schema, "name": name}, rows))
            self._sent = (self._changes, name)
        return self._sent[1]


def _send(real: Any, schema: Mapping[str, Any], rows: list[dict[str, Any]]) -> None:
    """Create the collection and its documents as far as no other attempt did: who comes second waits for nobody."""
    errors = importlib.import_module("typesense.exceptions")
    try:
        held = real[schema["name"]].retrieve()["num_documents"]
    except errors.ObjectNotFound:
        held = 0
        with suppress(errors.ObjectAlreadyExists):
            real.create(schema)
    if held < len(rows):
        for answer in real[schema["name"]].documents.import_(rows, {"action": "create"}):
            if not answer["success"] and answer.get("code") != 409:  # noqa: PLR2004  (another attempt's)
                raise _error("RequestMalformed", 400, answer["error"])


class _Collections(_Shared):
    """``client.collections``: those that this process created, and no others."""

    _what = "collections"

    def __init__(self, client: Any) -> None:
        self.real = client.collections

    def create(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if schema["name"] in _collections:
            raise _error("ObjectAlreadyExists", 409, f"A collection with name `{schema['name']}` already exists.")
        _collections[schema["name"]] = _Noted(schema)
        return _collections[schema["name"]].summary()

    def retrieve(self) -> list[dict[str, Any]]:
        return [noted.summary() for noted in _collections.values()]

    def __contains__(self, name: object) -> bool:
        return name in _collections

    def __getitem__(self, name: str) -> _Collection:
        return _Collection(name, self.real)


class _Collection(_Shared):
    """``client.collections[name]``."""

    _what = "collection"

    def __init__(self, name: str, real: Any) -> None:
        self.name = name
        self.documents = _Documents(name, real)

    def retrieve(self) -> dict[str, Any]:
        return _noted(self.name).summary()

    def delete(self, _params: Any = None) -> dict[str, Any]:
        summary = _noted(self.name).summary()
        del _collections[self.name]
        return summary


class _Documents(_Shared):
    """``client.collections[name].documents``."""

    _what = "documents"

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real = name, real

    def create(self, document: Mapping[str, Any], _params: Any = None) -> dict[str, Any]:
        return _noted(self._name).note(document)

    def upsert(self, document: Mapping[str, Any], _params: Any = None) -> dict[str, Any]:
        return _noted(self._name).note(document, replace=True)

    def import_(self, documents: Iterable[Any], import_parameters: Any = None, **_options: Any) -> Any:
        action = (import_parameters or {}).get("action", "create")
        if action not in ("create", "upsert"):
            raise NotImplementedError(f"Documents are imported by create or upsert here, not by {action}.")
        if isinstance(documents, str | bytes):
            rows = [json.loads(line) for line in documents.splitlines() if line.strip()]
            return "\n".join(json.dumps(self._imported(row, replace=action == "upsert")) for row in rows)
        return [self._imported(row, replace=action == "upsert") for row in documents]

    def _imported(self, row: Mapping[str, Any], *, replace: bool) -> dict[str, Any]:
        try:
            _noted(self._name).note(row, replace=replace)
        except importlib.import_module("typesense.exceptions").ObjectAlreadyExists as error:
            return {"success": False, "code": 409, "error": str(error), "document": json.dumps(row)}
        return {"success": True}

    def search(self, search_parameters: Mapping[str, Any]) -> dict[str, Any]:
        noted = _noted(self._name)
        name = noted.sent(self._real)
        _check_filter(search_parameters)
        return _own(_reached(lambda: self._real[name].documents.search(search_parameters)), self._name)


class _MultiSearch(_Shared):
    """``client.multi_search``."""

    _what = "multi_search"

    def __init__(self, real: Any, collections: _Collections) -> None:
        self._real, self._collections = real, collections

    def perform(self, search_queries: Mapping[str, Any], common_params: Any = None) -> dict[str, Any]:
        common = dict(common_params or {})
        names, searches = [], []
        for search in search_queries["searches"]:
            name = search.get("collection", common.get("collection"))
            _check_filter({**common, **search})
            names.append(name)
            held = _collections[name].sent(self._collections.real) if name in _collections else f"{_prefix}none"
            searches.append({**search, "collection": held})
        common.pop("collection", None)
        answer = _reached(lambda: self._real.perform({**search_queries, "searches": searches}, common))
        return {**answer, "results": [_own(each, name) for each, name in zip(answer["results"], names, strict=True)]}


def _noted(name: str) -> _Noted:
    if name not in _collections:
        raise _error("ObjectNotFound", 404, "Not Found")
    return _collections[name]


def _own(result: dict[str, Any], name: str) -> dict[str, Any]:
    """Give a result the name and the ids that the server knows."""
    groups = [result, *result.get("grouped_hits", ())]
    ids = list(_collections[name].documents) if name in _collections else []
    for hit in (hit for group in groups for hit in group.get("hits", ())):
        if "id" in hit["document"]:
            hit["document"]["id"] = ids[int(hit["document"]["id"])]
    if "request_params" in result:
        result["request_params"]["collection_name"] = name
    return result


def _check_filter(parameters: Mapping[str, Any]) -> None:
    if re.search(r"(^|[\s(&|])id\s*:", str(parameters.get("filter_by") or "")):
        raise NotImplementedError("Searches can't be filtered by id here: the search knows the documents by others.")


def _error(name: str, status: int, message: str) -> Exception:
    error: Exception = getattr(importlib.import_module("typesense.exceptions"), name)(f"[Errno {status}] {message}")
    return error


def _reached(call: Callable[[], Any]) -> Any:
    """Make a call; where the search does not answer, end the process: that is no fault of the agent's to meet."""
    errors = importlib.import_module("typesense.exceptions")
    try:
        return call()
    except Exception as error:
        refused = isinstance(error, errors.TypesenseClientError)
        if refused and not isinstance(error, errors.HTTPStatus0Error | errors.ServerError | errors.ServiceUnavailable):
            raise
        print(f"The search does not answer ({type(error).__name__}: {error}).", file=sys.stderr, flush=True)  # noqa: T201  (the server's own standard error)
        os._exit(70)
