"""What the adapters share: importing a framework, and saying whose fault an exception is.

``model_fault`` decides by an exception's type and the provider's own error code, never by its message.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tbadapters.core.errors import (
    AccessFault,
    AgentFault,
    Fault,
    HarnessFault,
    InvalidOption,
    MissingFramework,
    ProviderFault,
    TbAdaptersError,
    describe,
    is_ours,
)
from tbadapters.core.provider_errors import Meaning, meaning_of, retry_after


def require(module: str, *, framework: str, extra: str) -> Any:
    """Import a framework's module.

    Raises:
        MissingFramework: the framework (not something that it needs in turn) is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == module.partition(".")[0]:
            raise MissingFramework(framework, extra) from error
        raise


def must_take(function: object, option: str, *arguments: str) -> None:
    """Refuse a function that can't be called with these arguments: else every trial would fail of it.

    Raises:
        InvalidOption: it can't; the sentence says how it is called.
    """
    try:
        inspect.signature(function).bind(*arguments)  # type: ignore[arg-type]  # what is no callable is refused, too
    except TypeError:
        name = option.partition("(")[2].removesuffix("=...)")
        raise InvalidOption(f"{option}: it is called as {name}({', '.join(arguments)}).") from None
    except ValueError:  # a builtin without a signature: the first trial will tell
        return


def is_instance_of(value: object, package: str, *names: str) -> bool:
    """Whether the type of ``value``, or a base of it, is one of ``names`` defined in ``package``; imports nothing."""
    return any(
        base.__name__ in names and (base.__module__ == package or base.__module__.startswith(f"{package}."))
        for base in type(value).__mro__
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, what it was raised from, and the members of exception groups, outermost first."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
        if current.__cause__ is not None:
            waiting.append(current.__cause__)


def typed(error: BaseException) -> TbAdaptersError | None:
    """Return our own error inside an exception that a framework wrapped around it, or None."""
    return next((cause for cause in causes(error) if isinstance(cause, TbAdaptersError)), None)


def agent_fault(error: BaseException) -> Fault:
    """Return the fault for an exception that escaped from an agent.

    In this order: our own fault wrapped inside it, a model endpoint's failure, a bug of ours, else the agent's own
    exception.

    Raises:
        TbAdaptersError: an error of ours that is no fault (a tool called outside a trial) passes as it is.
    """
    found = typed(error)
    if found is not None and not isinstance(found, Fault):
        raise found
    if (fault := found or model_fault(error)) is not None:
        return fault
    bug = next((cause for cause in causes(error) if is_ours(cause)), None)
    return AgentFault(describe(error)) if bug is None else HarnessFault(describe(bug))


def model_fault(error: BaseException) -> Fault | None:
    """Return the fault for an exception of an openai client or of the HTTP transport below it; None for any other.

    The first cause that says something decides.
    """
    for cause in causes(error):
        fault = _openai_fault(cause) or _transport_fault(cause)
        if fault is not None:
            return fault
    return None


def http_fault(
    status: int, message: str, *, codes: tuple[str | None, ...] = (), headers: Mapping[str, str] | None = None
) -> Fault:
    """Return the fault for an HTTP error answer of a model endpoint.

    Args:
        status: The HTTP status.
        message: One line about the error.
        codes: The provider's own error code and error type, where it gave them.
        headers: The answer's headers, for ``Retry-After``.
    """
    meaning = meaning_of(status, codes) or Meaning("agent", "invalid_request")
    return _fault(meaning, message, retry_after(headers))


def _fault(meaning: Meaning, message: str, wait: float | None = None) -> Fault:
    if meaning.owner == "agent":
        return AgentFault(message, code=meaning.code)
    kind = AccessFault if meaning.owner == "access" else ProviderFault
    return kind(message, code=meaning.code, retry_after=wait)


def _openai_fault(error: BaseException) -> Fault | None:
    openai = sys.modules.get("openai")  # an exception of it can't exist before it is imported
    if openai is None or not isinstance(error, openai.OpenAIError):
        return None
    text = describe(error)
    codes = (getattr(error, "code", None), getattr(error, "type", None))
    if isinstance(error, openai.APIStatusError):
        return http_fault(error.status_code, text, codes=codes, headers=error.response.headers)
    if isinstance(error, openai.APIConnectionError):
        return ProviderFault(text, code="timeout" if isinstance(error, openai.APITimeoutError) else "connection")
    if isinstance(error, openai.APIError):  # an error event inside a stream has a code but no status
        return _fault(meaning_of(None, codes) or Meaning("provider", "stream_error"), text)
    own = {openai.LengthFinishReasonError: "length", openai.ContentFilterFinishReasonError: "content_filter"}
    if type(error) in own:
        return AgentFault(text, code=own[type(error)])
    return AccessFault(text, code="client_setup")  # no API key was given, or the like: no request can succeed


def _transport_fault(error: BaseException) -> Fault | None:
    for name in ("httpx2", "httpx"):
        module = sys.modules.get(name)
        if module is None:
            continue
        if isinstance(error, module.TimeoutException):
            return ProviderFault(describe(error), code="timeout")
        if isinstance(error, module.TransportError):
            return ProviderFault(describe(error), code="connection")
    return None
