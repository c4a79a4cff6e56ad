"""A stand-in for Typesense: the HTTP calls that its clients make, on SQLite's full-text search, on loopback.

    async with SearchStandIn() as search:
        client = typesense.Client({"nodes": [{"host": search.host, "port": search.port, "protocol": "http"}], ...})

It knows words, not meanings: a search by an embedding field ranks by BM25 over the fields that the embedding is made
from. So what an agent finds with it is not what it would find with the real one, and figures say that it was used.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tbadapters.core.loopback import HOST, LoopbackServer
from tbadapters.sandboxes.search_collection import Collection
from tbadapters.sandboxes.search_query import SearchError, filter_of, search_request

VERSION = "tbadapters stand-in"
_ACTIONS = ("create", "upsert", "update", "emplace")
_NO_KEY = "Forbidden - a valid `x-typesense-api-key` header must be sent."
_MAX_SEARCHES = 50

_Endpoint = Callable[[Request], Awaitable[Response]]


class SearchStandIn(LoopbackServer):
    """Serves searches while its ``with`` (or ``async with``) block runs; each collection is apart from all others.

    Args:
        port: The port; 0 for one that is free.
        api_key: The key that is asked for; None: any key will do.
    """

    host = HOST

    def __init__(self, *, port: int = 0, api_key: str | None = None) -> None:
        self._key = api_key
        self._collections: dict[str, Collection] = {}
        super().__init__(_any_slash(self._served()), name="search-stand-in", port=port)

    def _served(self) -> Starlette:
        one = "/collections/{name}"
        routes = {
            ("GET", "/debug"): self._debug,
            ("GET", "/collections"): self._list,
            ("POST", "/collections"): self._create,
            ("GET", one): self._retrieve,
            ("DELETE", one): self._drop,
            ("GET", f"{one}/documents/search"): self._search,
            ("GET", f"{one}/documents/export"): self._export,
            ("POST", f"{one}/documents/import"): self._import,
            ("POST", f"{one}/documents"): self._put,
            ("DELETE", f"{one}/documents"): self._remove_some,
            ("GET", f"{one}/documents/{{key}}"): self._get,
            ("PATCH", f"{one}/documents/{{key}}"): self._update,
            ("DELETE", f"{one}/documents/{{key}}"): self._remove,
            ("POST", "/multi_search"): self._multi_search,
        }
        health = Route("/health", _health, methods=["GET"])
        served = [Route(path, self._guarded(serve), methods=[method]) for (method, path), serve in routes.items()]
        return Starlette(routes=[health, *served], exception_handlers={404: _unknown, 405: _unknown})

    def _guarded(self, serve: _Endpoint) -> _Endpoint:
        """Ask for the key first, and answer errors as Typesense does."""

        async def answer(request: Request) -> Response:
            key = request.headers.get("x-typesense-api-key") or request.query_params.get("x-typesense-api-key")
            if not key or (self._key is not None and key != self._key):
                return _message(401, _NO_KEY)
            try:
                return await serve(request)
            except SearchError as error:
                return _message(error.status, error.message)

        return answer

    async def _debug(self, _request: Request) -> Response:
        return JSONResponse({"state": 1, "version": VERSION})

    # -- collections ----------------------------------------------------------------------------------------------

    async def _list(self, _request: Request) -> Response:
        return JSONResponse([collection.summary() for collection in self._collections.values()])

    async def _create(self, request: Request) -> Response:
        collection = Collection(await _json(request))
        if collection.name in self._collections:
            collection.close()
            raise SearchError(409, f"A collection with name `{collection.name}` already exists.")
        self._collections[collection.name] = collection
        return JSONResponse(collection.summary(), 201)

    async def _retrieve(self, request: Request) -> Response:
        return JSONResponse(self._named(request).summary())

    async def _drop(self, request: Request) -> Response:
        collection = self._collections.pop(request.path_params["name"], None)
        if collection is None:
            raise SearchError(404, f"No collection with name `{request.path_params['name']}` found.")
        summary = collection.summary()
        collection.close()
        return JSONResponse(summary)

    def _named(self, request: Request) -> Collection:
        try:
            return self._collections[request.path_params["name"]]
        except KeyError:
            raise SearchError(404, "Not Found") from None

    # -- documents ------------------------------------------------------------------------------------------------

    async def _put(self, request: Request) -> Response:
        collection, action = self._named(request), _action(request)
        return JSONResponse(collection.put(await _json(request), action), 201)

    async def _update(self, request: Request) -> Response:
        collection, given = self._named(request), await _json(request)
        if not isinstance(given, dict):
            raise SearchError(400, "Bad JSON: not a properly formed document.")
        return JSONResponse(collection.put({**given, "id": request.path_params["key"]}, "update"))

    async def _get(self, request: Request) -> Response:
        return JSONResponse(self._named(request).get(request.path_params["key"]))

    async def _remove(self, request: Request) -> Response:
        return JSONResponse(self._named(request).remove(request.path_params["key"]))

    async def _remove_some(self, request: Request) -> Response:
        collection, text = self._named(request), request.query_params.get("filter_by", "")
        if not text:
            raise SearchError(400, "Parameter `filter_by` must be provided.")
        chosen = [document["id"] for document in collection.all() if filter_of(text)(document)]
        for key in chosen:
            collection.remove(key)
        return JSONResponse({"num_deleted": len(chosen)})

    async def _import(self, request: Request) -> Response:
        collection, action = self._named(request), _action(request)
        lines = (await request.body()).decode(errors="replace").splitlines()
        return PlainTextResponse("\n".join(_imported(collection, line, action) for line in lines if line.strip()))

    async def _export(self, request: Request) -> Response:
        return PlainTextResponse("\n".join(_line(document) for document in self._named(request).all()))

    # -- searches -------------------------------------------------------------------------------------------------

    async def _search(self, request: Request) -> Response:
        return JSONResponse(self._named(request).search(search_request(request.query_params)))

    async def _multi_search(self, request: Request) -> Response:
        given = await _json(request)
        searches = given.get("searches") if isinstance(given, dict) else None
        if not isinstance(searches, list):
            raise SearchError(400, "Missing `searches` array.")
        if len(searches) > _MAX_SEARCHES:
            raise SearchError(400, "Number of multi searches exceeds `limit_multi_searches` parameter.")
        # A search's own parameters give way to the common ones only where it has none of the name.
        return JSONResponse({"results": [self._searched({**request.query_params, **each}) for each in searches]})

    def _searched(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        collection = self._collections.get(str(parameters.get("collection")))
        if collection is None:
            return {"code": 404, "error": "Not found."}
        try:
            return collection.search(search_request(parameters))
        except SearchError as error:
            return {"code": error.status, "error": error.message}


def _any_slash(app: ASGIApp) -> ASGIApp:
    """Serve a path that ends with a slash like the same without: clients write either."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        await app({**scope, "path": path.rstrip("/") or "/"}, receive, send)

    return served


async def _health(_request: Request) -> Response:
    return JSONResponse({"ok": True})


async def _unknown(_request: Request, _error: Exception) -> Response:
    return _message(404, "Not Found")


async def _json(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except ValueError:
        raise SearchError(400, "Bad JSON.") from None


def _action(request: Request) -> str:
    action = request.query_params.get("action", "create")
    if action not in _ACTIONS:
        raise SearchError(400, "Parameter `action` must be a create|update|upsert|emplace.")
    return action


def _imported(collection: Collection, line: str, action: str) -> str:
    """Keep one line of an import; return the line that answers it."""
    try:
        collection.put(json.loads(line), action)
    except SearchError as error:
        return _line({"code": error.status, "document": line, "error": error.message, "success": False})
    except ValueError as error:
        return _line({"code": 400, "document": line, "error": f"Bad JSON: {error}", "success": False})
    return _line({"success": True})


def _line(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)


def _message(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status)
