"""One collection of the search stand-in: documents in SQLite, found by its full-text index, ranked by BM25.

The same documents and the same query always give the same order: what scores the same is ordered newest first, as
Typesense does it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tbadapters.sandboxes.search_query import SearchError, SearchRequest, Term, terms_of
from tbadapters.sandboxes.search_ranking import TOKENIZER, Ranking

_PYTHON_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a string", (str,)),
    "int32": ("an int32", (int,)),
    "int64": ("an int64", (int,)),
    "float": ("a float", (int, float)),
    "bool": ("a bool", (bool,)),
}
_SNIPPET_WORDS = 64  # the most that SQLite's snippet() gives


@dataclass(frozen=True, slots=True)
class _Found:
    """A document that matches: its place in the order of creation, itself, and how well (above 0 for a match)."""

    sequence: int
    document: Mapping[str, Any]
    score: float = 0.0


class Collection:
    """Documents of one schema.

    Args:
        schema: As ``POST /collections`` takes it.

    Raises:
        SearchError: the schema is incomplete.
    """

    def __init__(self, schema: Any) -> None:
        if not isinstance(schema, dict) or not isinstance(schema.get("name"), str) or not schema["name"]:
            raise SearchError(400, "Parameter `name` is required.")
        if not isinstance(schema.get("fields"), list):
            raise SearchError(400, "Parameter `fields` is required.")
        self.name: str = schema["name"]
        self._created = int(time.time())
        self._fields: dict[str, Mapping[str, Any]] = {}
        for field in schema["fields"]:
            if not isinstance(field, dict) or not field.get("name") or not field.get("type"):
                raise SearchError(
                    400, "Wrong format for `fields`. It should be an array of objects with name and type."
                )
            self._fields[field["name"]] = field
        self._default_sort = str(schema.get("default_sorting_field") or "")
        # An index of words over text fields only; a column's place is its field's.
        self._texts = [n for n, f in self._fields.items() if str(f["type"]).startswith("string") and n != "id"]
        self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._db.execute(
            "CREATE TABLE documents (sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, body TEXT)"
        )
        columns = ", ".join(f"c{place}" for place in range(max(1, len(self._texts))))
        self._db.execute(f"CREATE VIRTUAL TABLE words USING fts5({columns}, tokenize='{TOKENIZER}')")
        self._ranking = Ranking(self._db)

    def close(self) -> None:
        """Forget all documents."""
        self._db.close()

    def summary(self) -> dict[str, Any]:
        """Return what ``GET /collections/NAME`` tells."""
        defaults = {"facet": False, "optional": False, "index": True, "sort": False, "infix": False, "locale": ""}
        return {
            "name": self.name,
            "num_documents": len(self),
            "created_at": self._created,
            "default_sorting_field": self._default_sort,
            "enable_nested_fields": False,
            "token_separators": [],
            "symbols_to_index": [],
            "fields": [{**defaults, **field} for field in self._fields.values() if field["name"] != "id"],
        }

    def __len__(self) -> int:
        (number,) = self._db.execute("SELECT count(*) FROM documents").fetchone()
        return int(number)

    # -- documents ------------------------------------------------------------------------------------------------

    def put(self, document: Any, action: str = "create") -> dict[str, Any]:
        """Keep a document and return it.

        Args:
            document: Its fields.
            action: ``create``, ``upsert`` (the whole document), ``update`` (some fields), or ``emplace`` (either).

        Raises:
            SearchError: it does not fit the schema, exists already, or does not exist.
        """
        if not isinstance(document, dict):
            raise SearchError(400, "Bad JSON: not a properly formed document.")
        key = document.get("id")
        if key is not None and not isinstance(key, str):
            raise SearchError(400, "Document's `id` field should be a string.")
        before = self.get(key) if key is not None and self._has(key) else None
        if action == "create" and before is not None:
            raise SearchError(409, f"A document with id {key} already exists.")
        if action == "update" and before is None:
            raise SearchError(404, f"Could not find a document with id: {key}")
        if before is not None and action in ("update", "emplace"):
            document = {**before, **document}
        self._check(document)
        return self._kept(document, replaces=before is not None)

    def get(self, key: str) -> dict[str, Any]:
        """Return the document of an id.

        Raises:
            SearchError: there is none.
        """
        row = self._db.execute("SELECT body FROM documents WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise SearchError(404, f"Could not find a document with id: {key}")
        found: dict[str, Any] = json.loads(row[0])
        return found

    def remove(self, key: str) -> dict[str, Any]:
        """Delete the document of an id and return it.

        Raises:
            SearchError: there is none.
        """
        document = self.get(key)
        self._db.execute("DELETE FROM words WHERE rowid = (SELECT sequence FROM documents WHERE id = ?)", (key,))
        self._db.execute("DELETE FROM documents WHERE id = ?", (key,))
        self._ranking.changed()
        return document

    def all(self) -> list[dict[str, Any]]:
        """Return all documents in the order of their creation."""
        return [json.loads(body) for (body,) in self._db.execute("SELECT body FROM documents ORDER BY sequence")]

    def _has(self, key: str) -> bool:
        return self._db.execute("SELECT 1 FROM documents WHERE id = ?", (key,)).fetchone() is not None

    def _check(self, document: Mapping[str, Any]) -> None:
        for name, field in self._fields.items():
            if name == "id" or "embed" in field or any(sign in name for sign in ".*"):
                continue
            value = document.get(name)
            if value is None:
                if not field.get("optional"):
                    raise SearchError(
                        400, f"Field `{name}` has been declared in the schema, but is not found in the document."
                    )
                continue
            kind = str(field["type"])
            wanted = _PYTHON_TYPES.get(kind.removesuffix("[]"))
            if wanted is None:
                continue
            values = value if kind.endswith("[]") and isinstance(value, list) else [value]
            if any(not isinstance(v, wanted[1]) or (isinstance(v, bool) and kind[:4] != "bool") for v in values):
                many = "an array of " if kind.endswith("[]") else ""
                raise SearchError(400, f"Field `{name}` must be {many}{wanted[0]}.")

    def _kept(self, document: dict[str, Any], *, replaces: bool) -> dict[str, Any]:
        if replaces:
            self.remove(document["id"])
        if "id" not in document:
            (last,) = self._db.execute("SELECT coalesce(max(sequence), 0) FROM documents").fetchone()
            document = {**document, "id": str(last)}
        text = json.dumps(document, ensure_ascii=False)
        cursor = self._db.execute("INSERT INTO documents (id, body) VALUES (?, ?)", (document["id"], text))
        if self._texts:
            columns = ", ".join(["rowid", *(f"c{place}" for place in range(len(self._texts)))])
            marks = ", ".join("?" * (1 + len(self._texts)))
            values = [_joined(document.get(name)) for name in self._texts]
            self._db.execute(f"INSERT INTO words ({columns}) VALUES ({marks})", (cursor.lastrowid, *values))  # noqa: S608  (our own column names)
        self._ranking.changed()
        return document

    # -- search ---------------------------------------------------------------------------------------------------

    def search(self, request: SearchRequest) -> dict[str, Any]:
        """Return what ``documents/search`` answers.

        Raises:
            SearchError: a field is not in the schema.
        """
        began = time.monotonic()
        texts, hybrid = self._searched(request)
        terms = terms_of(request.q)
        match, found = self._found(terms, texts, request, hybrid=hybrid)
        found = self._sorted([each for each in found if request.filter(each.document)], request, hybrid=hybrid)
        answer: dict[str, Any] = {"facet_counts": [], "found": len(found), "out_of": len(self), "page": request.page}
        if request.group_by:
            groups = _grouped(found, request.group_by)
            answer |= {"found": len(groups), "found_docs": len(found)}
            shown = list(groups.items())[request.offset : request.offset + request.per_page]
            answer["grouped_hits"] = [
                {
                    "found": len(members),
                    "group_key": list(key),
                    "hits": self._hits(members[: request.group_limit], match, texts, request, hybrid=hybrid),
                }
                for key, members in shown
            ]
        else:
            shown_hits = found[request.offset : request.offset + request.per_page]
            answer["hits"] = self._hits(shown_hits, match, texts, request, hybrid=hybrid)
        asked = {"collection_name": self.name, "first_q": request.q, "per_page": request.per_page, "q": request.q}
        spent = int(1000 * (time.monotonic() - began))
        return answer | {"request_params": asked, "search_cutoff": False, "search_time_ms": spent}

    def _searched(self, request: SearchRequest) -> tuple[list[str], bool]:
        """Return the text fields that are searched, and whether a field of vectors is among those asked for."""
        texts: list[str] = []
        hybrid = False
        for name in request.query_by:
            field = self._fields.get(name)
            if field is None:
                raise SearchError(404, f"Could not find a field named `{name}` in the schema.")
            if "embed" in field:
                hybrid = True
                texts += [each for each in field["embed"].get("from", ()) if each in self._texts]
            elif name in self._texts:
                texts.append(name)
            else:
                raise SearchError(400, f"Field `{name}` should be a string or a string array.")
        for name, _ in request.sort_by:
            if name not in self._fields and name not in ("_text_match", "_vector_distance"):
                raise SearchError(404, f"Could not find a field named `{name}` in the schema for sorting.")
        for name in request.group_by:
            if not self._fields.get(name, {}).get("facet"):
                raise SearchError(404, f"Could not find a facet field named `{name}` in the schema.")
        return list(dict.fromkeys(texts)), hybrid

    def _found(
        self, terms: Sequence[Term], texts: Sequence[str], request: SearchRequest, *, hybrid: bool
    ) -> tuple[str | None, list[_Found]]:
        """Return the query that matched and its documents; without a term every document, and no query.

        A search by meaning asks for any of the words, the others for all of them; of those the last ones are left out
        while too few documents match.
        """
        wanted = [term for term in terms if not term.excluded]
        unwanted = [term.match() for term in terms if term.excluded]
        if not wanted or not texts:
            rows = self._db.execute("SELECT sequence, body FROM documents")
            found = [_Found(sequence, json.loads(body)) for sequence, body in rows]
            without = {each.sequence for text in unwanted for each in self._matching(text, texts)} if texts else set()
            return None, [each for each in found if each.sequence not in without]
        kept, match, found = wanted, "", []
        for number in [len(wanted)] if hybrid else range(len(wanted), 0, -1):
            kept = wanted[:number]
            parts = [t.match(prefix=request.prefix and not hybrid and t is kept[-1]) for t in kept]
            match = f"({(' OR ' if hybrid else ' AND ').join(parts)})" + "".join(f" NOT {text}" for text in unwanted)
            found = self._matching(match, texts)
            if len(found) >= max(1, request.drop_below) or request.drop_below == 0:
                break
        begun = kept[-1].text if request.prefix and not hybrid and not kept[-1].phrase else ""
        scores = self._ranking.scores([term.text for term in kept], self._columns(texts), prefix=begun)
        return match, [replace(each, score=scores.get(each.sequence, 0.0)) for each in found]

    def _matching(self, match: str, texts: Sequence[str]) -> list[_Found]:
        rows = self._db.execute(
            "SELECT sequence, body FROM words JOIN documents ON sequence = words.rowid WHERE words MATCH ?",
            (self._within(match, texts),),
        )
        return [_Found(sequence, json.loads(body)) for sequence, body in rows]

    def _within(self, match: str, texts: Sequence[str]) -> str:
        return f"{{{' '.join(self._columns(texts))}}} : ({match})"

    def _columns(self, texts: Sequence[str]) -> list[str]:
        return [f"c{self._texts.index(name)}" for name in texts]

    def _sorted(self, found: list[_Found], request: SearchRequest, *, hybrid: bool) -> list[_Found]:
        keys = request.sort_by or (("_text_match", True),)
        found.sort(key=lambda each: each.sequence, reverse=True)
        for name, descending in reversed(keys):
            values = {each.sequence: _sort_value(each, name, hybrid=hybrid) for each in found}
            have = [each for each in found if values[each.sequence] is not None]
            have.sort(key=lambda each: values[each.sequence], reverse=descending)
            found = have + [each for each in found if values[each.sequence] is None]
        return found

    def _hits(
        self, found: Sequence[_Found], match: str | None, texts: Sequence[str], request: SearchRequest, *, hybrid: bool
    ) -> list[dict[str, Any]]:
        fields = [name for name in texts if request.highlight_fields is None or name in request.highlight_fields]
        hits = []
        for each in found:
            lights = self._highlights(each.sequence, match, texts, fields, request) if match else []
            hit: dict[str, Any] = {
                "document": _selected(each.document, request),
                "highlight": {light["field"]: {k: v for k, v in light.items() if k != "field"} for light in lights},
                "highlights": lights,
                "text_match": _text_match(each.score),
            }
            if hybrid:
                hit["vector_distance"] = _distance(each.score)
            hits.append(hit)
        return hits

    def _highlights(
        self, sequence: int, match: str, texts: Sequence[str], fields: Iterable[str], request: SearchRequest
    ) -> list[dict[str, Any]]:
        lights = []
        for name in fields:
            place = self._texts.index(name)
            words = min(_SNIPPET_WORDS, 2 * request.affix + 1)
            row = self._db.execute(
                "SELECT highlight(words, ?, ?, ?), snippet(words, ?, ?, ?, '', ?) FROM words "
                "WHERE words MATCH ? AND rowid = ?",
                (place, *request.tags, place, *request.tags, words, self._within(match, texts), sequence),
            ).fetchone()
            whole, part = row or ("", "")
            if request.tags[0] not in whole:
                continue
            short = len(whole.split()) <= request.whole_below
            light = {"field": name, "matched_tokens": _marked(whole, request.tags), "snippet": whole if short else part}
            if name in request.full_fields:
                light["value"] = whole
            lights.append(light)
        return lights


def _joined(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _text_match(score: float) -> int:
    return round(score * 1_000_000)


def _distance(score: float) -> float:
    """Return a distance like that of vectors, from 0 to 1: the better the words match, the smaller."""
    return round(1.0 / (1.0 + max(0.0, score)), 6)


def _sort_value(found: _Found, name: str, *, hybrid: bool) -> Any:
    if name == "_text_match":
        return _text_match(found.score)
    if name == "_vector_distance":
        return _distance(found.score) if hybrid else None
    return found.document.get(name)


def _grouped(found: Iterable[_Found], fields: Sequence[str]) -> dict[tuple[str, ...], list[_Found]]:
    groups: dict[tuple[str, ...], list[_Found]] = {}
    for each in found:
        groups.setdefault(tuple(_joined(each.document.get(name)) for name in fields), []).append(each)
    return groups


def _selected(document: Mapping[str, Any], request: SearchRequest) -> dict[str, Any]:
    return {
        name: value
        for name, value in document.items()
        if (not request.include or name in request.include) and name not in request.exclude
    }


def _marked(text: str, tags: tuple[str, str]) -> list[str]:
    before, behind = map(re.escape, tags)
    return list(dict.fromkeys(re.findall(f"{before}(.*?){behind}", text, re.DOTALL)))
