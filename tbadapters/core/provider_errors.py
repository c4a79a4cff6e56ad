"""What a model endpoint's error answer means: by its HTTP status and the provider's own error code, never by words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple

_ACCESS_CODES = frozenset({"insufficient_quota", "invalid_api_key", "model_not_found", "billing_not_active"})
_AGENT_CODES = {
    "context_length_exceeded": "context_length_exceeded",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
}
_PROVIDER_CODES = {
    "rate_limit_exceeded": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "server_error": "server_error",
}
_ACCESS = {401: "authentication", 402: "payment_required", 403: "permission", 404: "model_not_found"}
_PROVIDER = {408: "timeout", 409: "conflict", 429: "rate_limit"}
_SERVER_ERROR = 500


class Meaning(NamedTuple):
    """Whose fault an error answer is.

    Attributes:
        owner: ``access``: a quota, key or model, where no further request can succeed; ``provider``: another attempt
            may mend it; ``agent``: the request was at fault.
        code: A word for it.
    """

    owner: Literal["access", "provider", "agent"]
    code: str


def meaning_of(status: int | None, codes: Iterable[object] = ()) -> Meaning | None:
    """Return what an error answer means, or None where nothing that is known says it (a bare 400).

    Args:
        status: The HTTP status, or None where it says nothing: some gateways answer 200 with an error in the body.
        codes: The provider's own error code and type, where it gave them; they say more than the status. Such a
            gateway's code may be an HTTP status, as a number or in digits.
    """
    words = [str(code) for code in codes if code is not None]
    for word in words:
        if word in _ACCESS_CODES:
            return Meaning("access", word)
        if word in _AGENT_CODES:
            return Meaning("agent", _AGENT_CODES[word])
    statuses = [status, *(int(word) for word in words if word.isdecimal() and len(word) == len("429"))]
    for known in filter(None, statuses):
        if (meaning := _by_status(known)) is not None:
            return meaning
    return next((Meaning("provider", _PROVIDER_CODES[word]) for word in words if word in _PROVIDER_CODES), None)


def _by_status(status: int) -> Meaning | None:
    if status in _ACCESS:
        return Meaning("access", _ACCESS[status])
    code = _PROVIDER.get(status) or ("server_error" if status >= _SERVER_ERROR else None)
    return Meaning("provider", code) if code else None


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Return the seconds that ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date) ask to wait."""
    if headers is None:
        return None
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        if (value := headers.get("retry-after")) is None:
            return None
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
