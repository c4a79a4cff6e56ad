"""Keys and passwords, kept out of whatever is recorded, logged or said: the one place through which all of it passes.

Found are the values of environment variables that are named like keys, the keys that model requests of this process
carried in their headers, and texts of the shapes in which providers issue keys. Grading sees what really was there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "[redacted]"
_WORD = re.compile(r"[a-z_]{1,40}")
_ENV_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)$", re.IGNORECASE)
_ENV_LEAST = 8  # characters: shorter values would be found in ordinary words
_HEADER_LEAST = 16  # servers that ask for no key are given words such as not-needed
_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_LEARNED_MAX = 256

_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk|xai|gsk|pplx|r8|tvly|lsv2)[-_](?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, Stripe, ...
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # a JSON web token
    r")",
    re.DOTALL,
)
# What follows such a name: a header, an assignment, a field of JSON.
_NAMED = re.compile(
    r"((?<![A-Za-z0-9])(?:(?:proxy-)?authorization|(?:x-)?(?:goog-)?api[-_]?key|access[-_]?token|client[-_]?secret"
    r"|[A-Z0-9_]+_(?:KEY|TOKEN|SECRET|PASSWORD))[\\\"']*\s*[:=]\s*[\\\"']*(?:(?:bearer|basic|token)\s+)?)"
    r"[^\s\"'\\,;&)}\]]{8,}",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE)
_IN_URL = re.compile(r"(://)[^/\s:@]*:[^/\s@]+(?=@)")
_HINTS = (
    *("-----begin", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xai-", "gsk_", "pplx-", "r8_", "tvly-", "lsv2_"),
    *("aiza", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "hf_", "eyj"),
    *("authorization", "key", "token", "secret", "password", "bearer", "://"),
)

_learned: dict[str, None] = {}


def learn_keys(headers: Mapping[str, str]) -> None:
    """Remember the key that a request carries in its headers, whatever its shape."""
    for name in _HEADERS:
        key = headers.get(name, "").rpartition(" ")[2]
        if len(key) >= _HEADER_LEAST and key not in _learned:
            if len(_learned) >= _LEARNED_MAX:
                del _learned[next(iter(_learned))]
            _learned[key] = None


def redacted(text: str) -> str:
    """Return ``text`` with ``[redacted]`` in the place of every key and password that is found in it."""
    return _redacted(text, _known())


def redacted_data(value: Any) -> Any:
    """Return JSON-like data with all its text ``redacted``; keys of mappings too, but for plain words."""
    return _redacted_data(value, _known())


def _redacted_data(value: Any, known: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return _redacted(value, known)
    if isinstance(value, Mapping):
        return {_redacted_key(key, known): _redacted_data(item, known) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted_data(item, known) for item in value]
    return value


def _redacted_key(key: object, known: tuple[str, ...]) -> object:
    return key if isinstance(key, str) and _WORD.fullmatch(key) else _redacted_data(key, known)


def _redacted(text: str, known: tuple[str, ...]) -> str:
    if len(text) < _ENV_LEAST:
        return text
    for secret in known:
        if secret in text:
            text = text.replace(secret, REDACTED)
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        text = _SHAPES.sub(REDACTED, text)
        for pattern in (_NAMED, _BEARER, _IN_URL):
            text = pattern.sub(rf"\1{REDACTED}", text)
    return text


def _known() -> tuple[str, ...]:
    """Return the keys that are known by their very text, the longest first: one may contain another."""
    values = {value.strip() for name, value in os.environ.items() if _ENV_NAME.search(name)}
    found = {value for value in values if len(value) >= _ENV_LEAST} | set(_learned)
    return tuple(sorted(found | set(_escaped(found)), key=len, reverse=True))


def _escaped(secrets: Iterable[str]) -> Iterable[str]:
    """Yield secrets as they stand inside a JSON text."""
    return (json.dumps(secret)[1:-1] for secret in secrets)
