"""How well documents match the words of a query: BM25 over word stems.

    score(d) = sum over terms t of idf(t) * f * (k1 + 1) / (f + k1 * (1 - b + b * |d| / avg))
    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))

f is how often t is in d, |d| the document's length in words, n the documents with t, of N. Source: Robertson and Zaragoza
2009, "The Probabilistic Relevance Framework", section 3; the 1 inside of the logarithm is Lucene's. SQLite's own ``bm25()``
gives a word that most documents have no weight at all, and in a policy of ten documents most words are such.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from math import log

K1, B = 1.2, 0.75
TOKENIZER = "porter unicode61"


class Ranking:
    """Scores of the documents in a full-text table ``words``.

    Args:
        database: Where the table is; others, which read it, are made beside it.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database
        self._lengths: dict[tuple[str, ...], dict[int, int]] = {}
        database.execute("CREATE VIRTUAL TABLE places USING fts5vocab(words, 'instance')")
        database.execute(f"CREATE VIRTUAL TABLE query USING fts5(text, tokenize='{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(query, 'row')")

    def changed(self) -> None:
        """Be told that documents came or went."""
        self._lengths.clear()

    def scores(self, texts: Iterable[str], columns: Sequence[str], *, prefix: str = "") -> Mapping[int, float]:
        """Return the score of each document that has a word of these texts, by its row's id.

        Args:
            texts: Words and phrases; of a phrase each word counts.
            columns: The table's columns that count.
            prefix: A text whose last word may be the beginning of one.
        """
        lengths = self._lengths_of(columns)
        terms = self._stems_of(texts)
        if prefix:
            terms |= {term for stem in self._stems_of([prefix]) for term in self._beginning_with(stem)}
        average = sum(lengths.values()) / len(lengths) if lengths else 1.0
        found: dict[int, float] = {}
        for term in sorted(terms):  # the order in which numbers are added must not vary
            counts = self._counts(term, columns)
            idf = log(1 + (len(lengths) - len(counts) + 0.5) / (len(counts) + 0.5))
            for row, count in counts.items():
                spread = K1 * (1 - B + B * lengths[row] / average)
                found[row] = found.get(row, 0.0) + idf * count * (K1 + 1) / (count + spread)
        return found

    def _stems_of(self, texts: Iterable[str]) -> set[str]:
        """Return the stems of the words in texts, as the index has them."""
        self._db.execute("DELETE FROM query")
        self._db.executemany("INSERT INTO query (text) VALUES (?)", [(text,) for text in texts])
        return {term for (term,) in self._db.execute("SELECT term FROM stems")}

    def _beginning_with(self, stem: str) -> list[str]:
        rows = self._db.execute(
            "SELECT DISTINCT term FROM places WHERE term >= ? AND term < ?", (stem, stem + "\U0010ffff")
        )
        return [term for (term,) in rows]

    def _counts(self, term: str, columns: Sequence[str]) -> dict[int, int]:
        rows = self._db.execute("SELECT doc, col FROM places WHERE term = ?", (term,))
        counts: dict[int, int] = {}
        for row, column in rows:
            if column in columns:
                counts[row] = counts.get(row, 0) + 1
        return counts

    def _lengths_of(self, columns: Sequence[str]) -> Mapping[int, int]:
        """Return the words of each document, counted once while none comes or goes."""
        key = tuple(columns)
        if key not in self._lengths:
            lengths = dict.fromkeys((row for (row,) in self._db.execute("SELECT rowid FROM words")), 0)
            for row, column in self._db.execute("SELECT doc, col FROM places"):
                lengths[row] += column in columns
            self._lengths[key] = lengths
        return self._lengths[key]
