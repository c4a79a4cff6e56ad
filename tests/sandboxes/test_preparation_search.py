import json
import subprocess
import sys

import pytest

from tbadapters.sandboxes.preparations import SEARCH
from tbadapters.sandboxes.search import SearchStandIn

SERVER = """
import json, os, runpy, sys, uuid, warnings
prepared = runpy.run_path(sys.argv[1])
prepared["before_import"](json.loads(sys.argv[2]))
import typesense
from typesense import exceptions
warnings.simplefilter("ignore")

FIELDS = [{"name": "source", "type": "string", "facet": True}, {"name": "text", "type": "string"}]
NODE = {"host": "127.0.0.1", "port": "8108", "protocol": "http"}

def new_client():
    return typesense.Client({"api_key": "Fake", "nodes": [NODE], "connection_timeout_seconds": 2, "num_retries": 0})

def index(client, texts):
    name = str(uuid.uuid4())
    client.collections.create({"name": name, "fields": FIELDS})
    for text in texts:
        client.collections[name].documents.create({"id": uuid.uuid4().hex, "source": "s", "text": text})
    return name

def find(client, name, q="*"):
    common = {"collection": name, "group_by": "source", "group_limit": 99}
    (result,) = client.multi_search.perform({"searches": [{"q": q, "query_by": "text"}]}, common)["results"]
    assert result["request_params"]["collection_name"] == name
    hits = [hit["document"] for group in result["grouped_hits"] for hit in group["hits"]]
    return [hit["text"] for hit in hits]

def in_fork(work):
    if os.fork() == 0:
        try:
            os.write(1, (json.dumps(work()) + "\\n").encode())
        finally:
            os._exit(0)

def join(number):
    return [os.wait()[1] for _ in range(number)]
"""


@pytest.fixture(scope="module")
def stand_in():
    with SearchStandIn() as search:
        yield search


@pytest.fixture
def played(stand_in):
    """Runs a server's program with its client pointed to the stand-in; returns what it printed, a JSON a line."""
    for collection in list(stand_in._collections):
        stand_in._collections.pop(collection).close()

    def play(program, **options):
        search = {"host": stand_in.host, "port": stand_in.port, "prefix": "run-"} | options
        done = subprocess.run(
            [sys.executable, "-c", SERVER + program, str(SEARCH), json.dumps({"search": search})],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        return [json.loads(line) for line in done.stdout.splitlines()], done

    return play


def test_nothing_is_sent_before_somebody_searches(played, stand_in):
    """Documents that nobody searches cost no request: the search never hears of them."""
    lines, done = played("client = new_client(); name = index(client, ['a']);"
                         "print(json.dumps(client.collections[name].retrieve()['num_documents']))")  # fmt: skip
    assert (lines, done.returncode) == ([1], 0), done.stderr
    assert not stand_in._collections


def test_forks_and_sessions_share_what_is_the_same(played, stand_in):
    """The same documents are held once, however many sessions index them and however many forks search them at once."""
    lines, done = played("""
client = new_client()
name = index(client, ["lost card", "late refund"])
for _ in range(8):
    in_fork(lambda: find(client, name, "card"))
codes = join(8)
again = new_client()
print(json.dumps([codes, find(again, index(again, ["lost card", "late refund"]))]))
""")
    assert done.returncode == 0, done.stderr
    assert lines == [["lost card"]] * 8 + [[[0] * 8, ["late refund", "lost card"]]]
    assert [len(collection) for collection in stand_in._collections.values()] == [2]
    assert all(name.startswith("run-") for name in stand_in._collections)


def test_a_fork_that_deletes_harms_no_other(played):
    """A fork that deletes its collection no longer finds it; its template and its siblings still do."""
    lines, done = played("""
client = new_client()
name = index(client, ["lost card"])
def gone():
    find(client, name)
    client.collections[name].delete()
    try:
        client.collections[name].documents.search({"q": "*", "query_by": "text"})
    except exceptions.ObjectNotFound as error:
        return str(error)
in_fork(gone); join(1)
in_fork(lambda: find(client, name)); join(1)
print(json.dumps(find(client, name)))
""")
    assert lines == ["[Errno 404] Not Found", ["lost card"], ["lost card"]], done.stderr


def test_a_fork_that_adds_is_alone_with_it(played):
    """What a fork indexes after the fork only this fork finds, and it finds what was there before, too."""
    lines, done = played("""
client = new_client()
name = index(client, ["lost card"])
def adding():
    before = find(client, name)
    client.collections[name].documents.create({"source": "s", "text": "new card"})
    return [before, find(client, name, "card")]
in_fork(adding); join(1)
in_fork(lambda: find(client, name)); join(1)
""")
    assert lines == [[["lost card"], ["new card", "lost card"]], ["lost card"]], done.stderr


def test_a_session_sees_its_own_ids_and_nobody_elses_collections(played):
    """Hits carry the ids that this session gave its documents; collections of other sessions do not exist for it."""
    lines, done = played("""
client = new_client()
client.collections.create({"name": "c", "fields": FIELDS})
client.collections["c"].documents.import_([{"id": "mine", "source": "s", "text": "card"}], {"action": "create"})
hit = client.collections["c"].documents.search({"q": "card", "query_by": "text"})["hits"][0]["document"]
try:
    client.collections["run-anything"].retrieve()
except exceptions.ObjectNotFound:
    print(json.dumps([hit, [each["name"] for each in client.collections.retrieve()]]))
""")
    assert lines == [[{"id": "mine", "source": "s", "text": "card"}, ["c"]]], done.stderr


def test_mistakes_are_those_of_the_real_client(played):
    """A collection or a document that is created twice is refused as the real search would."""
    lines, done = played("""
client = new_client()
said = []
for _ in range(2):
    try:
        client.collections.create({"name": "c", "fields": FIELDS})
        client.collections["c"].documents.create({"id": "1", "source": "s", "text": "t"})
        client.collections["c"].documents.create({"id": "1", "source": "s", "text": "t"})
    except exceptions.ObjectAlreadyExists as error:
        said.append(str(error))
answers = client.collections["c"].documents.import_('{"id": "1"}\\n{"id": "2", "source": "s", "text": "u"}')
said.append([json.loads(line)["success"] for line in answers.splitlines()])
try:
    client.multi_search.perform({"searches": [{"q": "x"}]}, {"collection": "nowhere"})
except exceptions.ObjectNotFound as error:
    said.append(str(error))
else:
    said.append(client.multi_search.perform({"searches": [{"q": "x"}]}, {"collection": "no"})["results"][0]["code"])
print(json.dumps(said))
""")
    assert lines == [
        [
            "[Errno 409] A document with id 1 already exists.",
            "[Errno 409] A collection with name `c` already exists.",
            [False, True],
            404,
        ]
    ], done.stderr


@pytest.mark.parametrize(
    "call",
    [
        "client.collections['c'].update({})",
        "client.collections['c'].documents.delete({'filter_by': 'text:x'})",
        "client.collections['c'].documents.search({'q': '*', 'query_by': 'text', 'filter_by': 'id:=1'})",
        "typesense.AsyncClient({})",
    ],
)
def test_what_cannot_be_kept_apart_is_refused(played, call):
    """A call that attempts could not each have for themselves is refused by name, never let through."""
    program = f"client = new_client(); client.collections.create({{'name': 'c', 'fields': FIELDS}}); {call}"
    _, done = played(program)
    assert done.returncode == 1
    assert "NotImplementedError" in done.stderr


def test_a_search_that_does_not_answer_ends_the_process(played):
    """A search that is gone ends the server's process: no agent is failed for it."""
    lines, done = played("client = new_client(); print(json.dumps(find(client, index(client, ['a']))))", port=1)
    assert (lines, done.returncode) == ([], 70)
    assert "The search does not answer" in done.stderr


def test_without_the_option_the_client_is_left_alone(stand_in):
    """Without a search of the run the client's class is the one that the server installed."""
    program = SERVER + "print(json.dumps([typesense.Client.__init__.__qualname__, str(new_client().collections)]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(SEARCH), "{}"], capture_output=True, text=True, timeout=30, check=True
    )
    name, collections = json.loads(done.stdout)
    assert name == "Client.__init__"
    assert "typesense." in collections


def test_a_server_without_the_client_is_let_be():
    """A server's environment that lacks the client's package is none of this file's business."""
    program = "import runpy, sys; runpy.run_path(sys.argv[1])['before_import']({'search': {'prefix': ''}}); print('on')"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, str(SEARCH)], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "on\n"
