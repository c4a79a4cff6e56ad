from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import log
from uuid import uuid4

import pytest
import typesense
from typesense import exceptions

from tbadapters.sandboxes.search import SearchStandIn

# The client warns of parts of its own that it makes in any case.
pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated on v30:DeprecationWarning")

FIELDS = [
    {"name": "source", "type": "string", "facet": True},
    {"name": "size", "type": "int32"},
    {"name": "text", "type": "string"},
    {"name": "embedding", "type": "float[]", "embed": {"from": ["text"], "model_config": {"model_name": "any"}}},
]
TEXTS = [
    ("refunds", "Refunds are paid within five days of the return."),
    ("refunds", "A refund of a gift goes to who paid for it. Refunds of vouchers are not paid."),
    ("cards", "A lost card is blocked at once, and replaced within a week."),
    ("travel", "Tell us before you travel, so that your card works abroad."),
]
HYBRID = {"query_by": "embedding,text", "sort_by": "_text_match:desc,_vector_distance:asc"}


@pytest.fixture(scope="module")
def server():
    with SearchStandIn() as search:
        yield search


@pytest.fixture(scope="module")
def client(server):
    with client_of(server) as made:
        yield made


@contextmanager
def client_of(server, key="Fake"):
    node = {"host": server.host, "port": str(server.port), "protocol": "http"}
    config = {"api_key": key, "nodes": [node], "connection_timeout_seconds": 5, "num_retries": 0, "verify": False}
    made = typesense.Client(config)
    yield made
    made.api_call.close()


@pytest.fixture
def filled(client):
    name = uuid4().hex
    client.collections.create({"name": name, "fields": FIELDS})
    for size, (source, text) in enumerate(TEXTS):
        client.collections[name].documents.create({"id": f"d{size}", "source": source, "size": size, "text": text})
    yield client.collections[name]
    client.collections[name].delete()


def found(answer):
    return [hit["document"]["id"] for hit in answer["hits"]]


def test_life_of_a_collection(client):
    """A collection can be created once, is found until it is deleted, and counts its documents."""
    with pytest.raises(exceptions.ObjectNotFound, match="Not Found"):
        client.collections["life"].retrieve()
    made = client.collections.create({"name": "life", "fields": FIELDS})
    assert (made["name"], made["num_documents"]) == ("life", 0)
    with pytest.raises(exceptions.ObjectAlreadyExists, match="A collection with name `life` already exists"):
        client.collections.create({"name": "life", "fields": FIELDS})
    client.collections["life"].documents.create({"source": "a", "size": 1, "text": "one"})
    assert client.collections["life"].retrieve()["num_documents"] == 1
    assert "life" in [each["name"] for each in client.collections.retrieve()]
    assert client.collections["life"].delete()["name"] == "life"
    with pytest.raises(exceptions.ObjectNotFound, match="No collection with name `life` found"):
        client.collections["life"].delete()


def test_health_needs_no_key_the_rest_does(server):
    """Health is told to anyone, everything else only with a key, and only with the right one where one is set."""
    with client_of(server) as anyone, SearchStandIn(api_key="secret") as guarded:
        assert anyone.operations.is_healthy()
        with (
            client_of(guarded, "other") as other,
            pytest.raises(exceptions.RequestUnauthorized, match="valid `x-types"),
        ):
            other.collections.retrieve()
        with client_of(guarded, "secret") as owner:
            assert owner.collections.retrieve() == []


def test_documents_are_kept_as_they_came(filled):
    """A document is read back as it was written, changed in part by update, whole by upsert, and deleted once."""
    documents = filled.documents
    assert documents["d1"].retrieve()["source"] == "refunds"
    with pytest.raises(exceptions.ObjectAlreadyExists, match="A document with id d1 already exists"):
        documents.create({"id": "d1", "source": "x", "size": 0, "text": "x"})
    documents["d1"].update({"size": 11})
    assert documents["d1"].retrieve()["size"] == 11
    assert documents["d1"].retrieve()["source"] == "refunds"
    documents.upsert({"id": "d1", "source": "moved", "size": 12, "text": "bicycle"})
    assert found(documents.search({"q": "bicycle", "query_by": "text"})) == ["d1"]
    assert found(documents.search({"q": "vouchers", "query_by": "text"})) == []
    documents["d1"].delete()
    with pytest.raises(exceptions.ObjectNotFound, match="Could not find a document with id: d1"):
        documents["d1"].delete()
    assert found(documents.search({"q": "bicycle", "query_by": "text"})) == []
    assert documents.delete({"filter_by": "source:=[refunds, cards]"}) == {"num_deleted": 2}
    assert filled.retrieve()["num_documents"] == 1


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"source": "a", "size": 1}, "Field `text` has been declared in the schema, but is not found"),
        ({"source": "a", "size": "1", "text": "t"}, "Field `size` must be an int32"),
        ({"source": "a", "size": True, "text": "t"}, "Field `size` must be an int32"),
        ({"source": ["a"], "size": 1, "text": "t"}, "Field `source` must be a string"),
        ({"id": 7, "source": "a", "size": 1, "text": "t"}, "`id` field should be a string"),
    ],
)
def test_documents_fit_the_schema(filled, document, sentence):
    """A document that does not fit the schema is refused with Typesense's sentence."""
    with pytest.raises(exceptions.RequestMalformed, match=sentence):
        filled.documents.create(document)


def test_import_answers_line_by_line(filled):
    """An import keeps what fits and says of each line what became of it."""
    rows = [{"id": each, "source": "a", "size": 1, "text": "imported"} for each in ("n1", "d0")] + [{"id": "n2"}]
    answers = filled.documents.import_(rows, {"action": "create"})
    assert [(each["success"], each.get("code")) for each in answers] == [(True, None), (False, 409), (False, 400)]
    assert found(filled.documents.search({"q": "imported", "query_by": "text"})) == ["n1"]
    assert '"n1"' in filled.documents.export()


def test_words_are_matched_by_their_stems(filled):
    """All words must occur, as any form of them, the last one also as a beginning."""
    search = filled.documents.search
    assert set(found(search({"q": "refund", "query_by": "text"}))) == {"d0", "d1"}
    assert found(search({"q": "refunding vouchers", "query_by": "text"})) == ["d1"]
    assert found(search({"q": "repla", "query_by": "text"})) == ["d2"]
    assert found(search({"q": "repla", "query_by": "text", "prefix": "false"})) == []
    assert found(search({"q": '"card works"', "query_by": "text"})) == ["d3"]
    assert found(search({"q": "card -lost", "query_by": "text"})) == ["d3"]


def test_words_are_left_out_from_the_end_until_something_matches(filled):
    """Where not all words occur together the last ones are left out, unless that is switched off."""
    asked = {"q": "vouchers bicycle helicopter", "query_by": "text"}
    assert found(filled.documents.search(asked)) == ["d1"]
    assert found(filled.documents.search({**asked, "drop_tokens_threshold": 0})) == []


def test_a_search_by_meaning_ranks_by_any_of_the_words(filled):
    """A search by an embedding finds what shares any word, the better match nearer, and no distance elsewhere."""
    answer = filled.documents.search({"q": "I lost my card while I travel", **HYBRID})
    assert found(answer)[:2] == ["d2", "d3"] or found(answer)[:2] == ["d3", "d2"]
    distances = [hit["vector_distance"] for hit in answer["hits"]]
    assert distances == sorted(distances)
    assert all(0 < each <= 1 for each in distances)
    assert all("vector_distance" not in h for h in filled.documents.search({"q": "card", "query_by": "text"})["hits"])


def test_ranking_is_bm25_by_hand(client):
    """Scores are those of the formula, worked out by hand; a word that every document has still counts a little."""
    client.collections.create({"name": "bm25", "fields": FIELDS})
    for text in ("card card lost", "card fee", "card travel abroad now"):
        client.collections["bm25"].documents.create({"source": "s", "size": 1, "text": text})
    hits = client.collections["bm25"].documents.search({"q": "lost cards", **HYBRID})["hits"]
    average, scores = 3.0, []
    for cards, losts, length in ((2, 1, 3), (1, 0, 2), (1, 0, 4)):
        spread = 1.2 * (0.25 + 0.75 * length / average)
        in_all, in_one = log(1 + 0.5 / 3.5), log(1 + 2.5 / 1.5)
        scores.append(in_all * cards * 2.2 / (cards + spread) + in_one * losts * 2.2 / (losts + spread))
    assert [hit["text_match"] for hit in hits] == [round(1_000_000 * score) for score in scores]
    assert [hit["vector_distance"] for hit in hits] == [round(1 / (1 + score), 6) for score in scores]
    client.collections["bm25"].documents.create({"source": "s", "size": 1, "text": "lost lost"})
    assert client.collections["bm25"].documents.search({"q": "lost", **HYBRID})["hits"][0]["document"]["id"] == "3"


@pytest.mark.parametrize("query", ["*", "", '""', "?!"])
def test_no_word_finds_everything(filled, query):
    """A query without a word finds every document, the newest first."""
    assert found(filled.documents.search({"q": query, "query_by": "text"})) == ["d3", "d2", "d1", "d0"]


@pytest.mark.parametrize(
    "query", ['"', "a AND", "NEAR(", "text:", "c0 : x", "{", "col*", "'; DROP TABLE documents; --", "ünï \x00 x"]
)
def test_any_text_is_a_query(filled, query):
    """What looks like the syntax of the database or of its search is text like any other."""
    filled.documents.search({"q": query, **HYBRID})
    assert filled.retrieve()["num_documents"] == len(TEXTS)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("source:=refunds", ["d1", "d0"]),
        ("source:=refunds || source:=cards", ["d2", "d1", "d0"]),
        ("source:=[cards, travel] && size:>2", ["d3"]),
        ("(source:=cards || source:=travel) && size:<=2", ["d2"]),
        ("source:!=refunds", ["d3", "d2"]),
        ("text:card", ["d3", "d2"]),
        ("text:ard", []),
        ("source:=`a, b || c`", []),
        ("size:2", ["d2"]),
    ],
)
def test_filters(filled, text, ids):
    """A filter lets through what it names, by value, by word, by comparison, joined by and, or and parentheses."""
    assert found(filled.documents.search({"q": "*", "query_by": "text", "filter_by": text})) == ids


@pytest.mark.parametrize("text", ["source", "source:=(a", ":=a", "size:>many"])
def test_malformed_filters_are_refused(filled, text):
    """A filter that can't be read is an error, never no filter."""
    with pytest.raises(exceptions.RequestMalformed):
        filled.documents.search({"q": "*", "query_by": "text", "filter_by": text})


def test_groups_pages_and_fields(client, filled):
    """A multi-search groups by a facet, keeps to its page and fields, and takes common parameters where it has none."""
    common = {"collection": filled.name, "group_by": "source", "exclude_fields": "size", "per_page": 2, "q": "*"}
    searches = [{"query_by": "text"}, {"query_by": "text", "page": 2}, {"query_by": "text", "q": "refund"}]
    first, second, third = client.multi_search.perform({"searches": searches}, common)["results"]
    assert [group["group_key"] for group in first["grouped_hits"]] == [["travel"], ["cards"]]
    assert [group["group_key"] for group in second["grouped_hits"]] == [["refunds"]]
    assert (first["found"], first["found_docs"], first["out_of"], second["page"]) == (3, 4, 4, 2)
    (limited,) = client.multi_search.perform(
        {"searches": [{"query_by": "text", "group_limit": 1, "filter_by": "source:=refunds"}]}, common
    )["results"]
    assert (limited["grouped_hits"][0]["found"], len(limited["grouped_hits"][0]["hits"])) == (2, 1)
    assert second["grouped_hits"][0]["found"] == len(second["grouped_hits"][0]["hits"]) == 2
    assert set(third["grouped_hits"][0]["hits"][0]["document"]) == {"id", "source", "text"}
    assert third["request_params"]["q"] == "refund"


def test_errors_of_one_search_leave_the_others(client, filled):
    """A search of a multi-search that can't be answered says so in its place; the others are answered."""
    searches = [
        {"collection": "nowhere", "q": "a", "query_by": "text"},
        {"collection": filled.name, "q": "card", "query_by": "nothing"},
        {"collection": filled.name, "q": "card", "query_by": "text", "per_page": 251},
        {"collection": filled.name, "query_by": "text"},
        {"collection": filled.name, "q": "card", "query_by": "text"},
    ]
    results = client.multi_search.perform({"searches": searches}, {})["results"]
    assert [each.get("code") for each in results] == [404, 404, 422, 400, None]
    assert results[0]["error"] == "Not found."
    assert results[-1]["found"] == 2


def test_highlights_mark_the_words_that_matched(filled):
    """A hit shows its words marked, in a snippet around them, and whole where that is asked for."""
    asked = {"q": "voucher", "query_by": "text", "highlight_full_fields": "text", "highlight_affix_num_tokens": 1}
    (hit,) = filled.documents.search({**asked, "snippet_threshold": 3})["hits"]
    (light,) = hit["highlights"]
    assert light["matched_tokens"] == ["vouchers"]
    assert "<mark>vouchers</mark>" in light["snippet"]
    assert len(light["snippet"].split()) <= 4
    assert light["value"].startswith("A refund of a gift")
    assert hit["highlight"]["text"]["snippet"] == light["snippet"]


def test_ties_are_broken_the_same_way_always(client):
    """Documents that match equally well are ordered newest first, whatever their ids."""
    client.collections.create({"name": "ties", "fields": FIELDS})
    for size, key in enumerate(["m", "z", "a"]):
        client.collections["ties"].documents.create({"id": key, "source": "s", "size": size, "text": "same words"})
    orders = {tuple(found(client.collections["ties"].documents.search({"q": "same", **HYBRID}))) for _ in range(5)}
    assert orders == {("a", "z", "m")}
    by_size = {"q": "same", "query_by": "text", "sort_by": "size:asc"}
    assert found(client.collections["ties"].documents.search(by_size)) == ["m", "z", "a"]


def test_collections_are_apart(filled, client):
    """What one collection holds no other finds, though ids and texts are the same."""
    client.collections.create({"name": "apart", "fields": FIELDS})
    client.collections["apart"].documents.create({"id": "d0", "source": "a", "size": 1, "text": "zebra"})
    assert found(filled.documents.search({"q": "zebra", "query_by": "text"})) == []
    assert found(client.collections["apart"].documents.search({"q": "refund", "query_by": "text"})) == []


def test_two_hundred_sessions_at_once(server, client):
    """Two hundred sessions that create, fill, search and delete collections at once each see their own only."""

    def session(number):
        name = f"session-{number}"
        with client_of(server) as own:
            own.collections.create({"name": name, "fields": FIELDS})
            for size in range(3):
                document = {"id": str(size), "source": "s", "size": size, "text": f"word{number} common{size}"}
                own.collections[name].documents.create(document)
            answer = own.collections[name].documents.search({"q": f"word{number}", **HYBRID})
            own.collections[name].delete()
        return len(found(answer))

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(session, range(200))) == [3] * 200
    assert not [c for c in client.collections.retrieve() if c["name"].startswith("session-")]


def test_a_port_that_is_taken_is_said():
    """A port that somebody else listens on can't be taken over."""
    with SearchStandIn() as first, pytest.raises(OSError, match="in use"), SearchStandIn(port=first.port):
        pass


async def test_from_async_code():
    """It serves in an ``async with`` block, beside the loop's own work, and has no port afterwards."""
    search = SearchStandIn()
    async with search:
        assert search.port > 0
    with pytest.raises(RuntimeError, match="search stand in is not running"):
        search.port  # noqa: B018  (reading it is what fails)
