"""What a model endpoint's error answer means: by its HTTP status and the provider's own error code, never by words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

ACCESS_CODES = frozenset({"insufficient_quota", "invalid_api_key", "model_not_found", "billing_not_active"})
"""Error codes of a provider after which no further request can succeed."""
_ACCESS = {401: "authentication", 403: "permission", 404: "model_not_found"}
_PROVIDER = {408: "timeout", 409: "conflict", 429: "rate_limit"}
_SERVER_ERROR = 500


def access_code(status: int) -> str | None:
    """Return the code of a status that refuses access (key, permission, model), None of any other."""
    return _ACCESS.get(status)


def provider_code(status: int) -> str | None:
    """Return the code of a status that another attempt may mend, None of any other (400 is the agent's own fault)."""
    return _PROVIDER.get(status) or ("server_error" if status >= _SERVER_ERROR else None)


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
