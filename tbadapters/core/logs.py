"""Logs by structlog over the standard library's logging: silent unless the application shows them."""

from __future__ import annotations

import logging
from typing import cast

import structlog

from tbadapters.core.redaction import redacted_data


def _without_keys(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {name: redacted_data(value) for name, value in event.items()}


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger of a module; run, task and trial are bound to what is logged inside one."""
    logger = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            _without_keys,
            structlog.processors.KeyValueRenderer(key_order=["event"], sort_keys=True),
        ],
    )
    return cast("structlog.stdlib.BoundLogger", logger)
