import socket
import urllib.request
from contextlib import contextmanager

import pytest
from anyio import connect_tcp, to_thread
from starlette.responses import JSONResponse

from tbadapters.core.errors import UsageError
from tbadapters.core.loopback import LoopbackServer
from tbadapters.sandboxes import search
from tbadapters.sandboxes.search import SearchStandIn
from tbadapters.sandboxes.search_choice import STAND_IN_NOTE, find_search


@pytest.fixture
def typesense_like(monkeypatch):
    """A server that says that it is Typesense 30.1, and takes the key of the benchmark's servers."""
    monkeypatch.setattr(search, "VERSION", "30.1")
    with SearchStandIn(api_key="Fake") as server:
        yield server


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def create(server_options, name, key="Fake"):
    address = f"http://{server_options['host']}:{server_options['port']}/collections"
    body = b'{"name": "%s", "fields": []}' % name.encode()
    request = urllib.request.Request(address, body, {"X-TYPESENSE-API-KEY": key})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 201


async def test_the_stand_in_runs_where_nobody_answers():
    """Where no Typesense answers the stand-in runs for the block, and the note says that it is not canonical."""
    choice = await to_thread.run_sync(lambda: find_search(port=free_port()))
    assert (choice.canonical, choice.note) == (False, STAND_IN_NOTE)
    async with choice.running() as first, choice.running() as second:
        assert first["search"]["port"] != second["search"]["port"]
        port = first["search"]["port"]
        assert not (await to_thread.run_sync(lambda: find_search(port=port))).canonical
    with pytest.raises(OSError, match="connect"):
        await connect_tcp(first["search"]["host"], port)


async def test_a_real_one_is_used_and_left_as_it_was(typesense_like):
    """A Typesense that answers is used, named with its version, and the run's collections are gone afterwards."""
    choice = await to_thread.run_sync(lambda: find_search(port=typesense_like.port))
    assert (choice.canonical, choice.note) == (True, None)
    assert choice.name == f"Typesense 30.1 at 127.0.0.1:{typesense_like.port}"
    async with choice.running() as options:
        assert options["search"]["port"] == typesense_like.port
        for name in (f"{options['search']['prefix']}abc", "somebody's"):
            await to_thread.run_sync(create, options["search"], name)
        assert len(typesense_like._collections) == 2
    assert list(typesense_like._collections) == ["somebody's"]


async def test_what_cannot_be_tidied_up_ends_no_run(typesense_like):
    """A Typesense that is gone at the end of a run is said in the log and nowhere else."""
    choice = await to_thread.run_sync(lambda: find_search(port=typesense_like.port))
    async with choice.running():
        await typesense_like.__aexit__(None, None, None)


def test_a_key_that_is_refused_is_named(typesense_like):
    """A Typesense that refuses the servers' key is no reason to use the stand-in in silence."""
    with pytest.raises(UsageError, match=r"refuses the key 'other'.*--api-key=other"):
        find_search(port=typesense_like.port, api_key="other")


@contextmanager
def answering(status, body):
    async def app(scope, receive, send):
        await JSONResponse(body, status)(scope, receive, send)

    with LoopbackServer(app, name="somebody") as server:
        yield server.port


@pytest.mark.parametrize(
    ("status", "body"), [(200, {"ok": "yes"}), (200, ["ok"]), (404, {}), (200, {"ok": True}), (500, {"ok": True})]
)
def test_somebody_else_at_the_port_is_not_used(status, body):
    """What answers at the port but is no Typesense is not used."""
    with answering(status, body) as port:
        assert find_search(port=port).canonical is False


@pytest.mark.parametrize(("status", "body"), [(200, {"ok": False}), (503, {"ok": False, "resource_error": "DISK"})])
def test_one_that_is_not_ready_is_named(status, body):
    """A Typesense that is starting, or out of resources, is waited for by its user, not passed over."""
    with answering(status, body) as port, pytest.raises(UsageError, match="not ready"):
        find_search(port=port)
