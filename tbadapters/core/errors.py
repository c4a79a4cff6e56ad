"""Everything that can go wrong, and whose fault it is.

    TbAdaptersError
    ├── UsageError                 what was asked for can't be done; one sentence names the thing and the mend
    │   ├── UnknownName            no such suite, task or tool; the nearest names are given
    │   ├── UnknownAgentType       an object that no adapter accepts
    │   ├── UnimportableAgent      a "module:attr" or "file.py:attr" that can't be imported
    │   ├── ForeignTools           an agent brings tools that are not the suite's
    │   ├── ToolsDiffer            tasks with different tools are given an agent that is built once
    │   ├── MissingFramework       an extra is not installed
    │   ├── InvalidOption          an option's value makes no sense
    │   ├── UnusableFolder         a run folder can't be written, read, or is in use
    │   ├── ResumeMismatch         a run folder holds a run with other settings
    │   └── NoRunningTrial         a suite's tool was called outside a trial
    ├── SuiteError                 a suite is wrong: nobody is graded by it
    ├── RunStopped                 the run can't go on (quota, key, model, cost); what is finished is kept
    └── Fault                      something went wrong inside one attempt; its type says who owns it
        ├── AgentFault             graded all the same: a failed trial
        │   ├── LimitReached       a limit of the trial was met
        │   └── AttemptEnded       the agent called an end-turn tool: the way out of its code, and no fault in the end
        ├── ProviderFault          a model endpoint failed: another attempt
        │   └── AccessFault        quota, key or model: another attempt can't help, the run is stopped
        ├── SandboxFault           the backend failed
        ├── UserFault              the simulated user failed
        ├── JudgeFault             the judge failed
        ├── GraderFault            the grader failed, or a golden action did
        └── HarnessFault           tbadapters itself failed

``ToolError`` stands apart: it is an answer that the agent may read and recover from, not a fault.
``boundary(FaultType)`` turns what escapes from a piece of code into the fault of its owner; what is typed passes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import ClassVar

from tbadapters.core.redaction import redacted

MESSAGE_MAX = 10_000  # characters of a fault's message that are kept
OWNERS = ("agent", "provider", "sandbox", "user", "judge", "grader", "harness")


class TbAdaptersError(Exception):
    """Raised when tbadapters can't do what it was asked to; the base of all its errors."""


class UsageError(TbAdaptersError):
    """Raised when what was asked for can't be done; the message names the thing and the mend."""


class UnknownName(UsageError):
    """Raised when a suite, task, tool or run is named that does not exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        near = get_close_matches(name, self.known, n=3, cutoff=0.4)
        if near:
            mend = "Did you mean " + " or ".join(map(repr, near)) + "?"
        elif self.known:
            mend = "Known: " + ", ".join(self.known[:8]) + (", ..." if len(self.known) > 8 else ".")  # noqa: PLR2004
        else:
            mend = "None is known."
        super().__init__(f"There is no {kind} {name!r}. {mend}")


class UnknownAgentType(UsageError):
    """Raised when an object is passed as an agent that no adapter accepts."""


class UnimportableAgent(UsageError):
    """Raised when an agent given as text can't be imported."""

    def __init__(self, spec: str, why: str) -> None:
        super().__init__(f"The agent {spec!r} can't be imported: {why}")


class ForeignTools(UsageError):
    """Raised when an agent brings tools that are not the suite's, and its author did not say what to do with them."""


class ToolsDiffer(UsageError):
    """Raised when an agent that is built once is given tasks that have different tools."""

    def __init__(self, suite: str, parts: Iterable[str]) -> None:
        names = list(parts)
        super().__init__(
            f"The tasks of {suite!r} have different tools, so its agent must be built for each attempt: "
            f"evaluate(factory(make), ...) with `def make(tools): return <the agent with these tools>`; "
            f"or run one part with any agent, such as suite={names[0]!r} (the parts are {', '.join(names)})."
        )


class MissingFramework(UsageError):
    """Raised when an agent needs a framework whose extra is not installed."""

    def __init__(self, framework: str, extra: str) -> None:
        super().__init__(f"{framework} is not installed: pip install 'tbadapters[{extra}]'")


class InvalidOption(UsageError):
    """Raised when an option's value makes no sense."""


class UnusableFolder(UsageError):
    """Raised when a run folder can't be written or read, or is in use by another process."""


class ResumeMismatch(UsageError):
    """Raised when a run folder is resumed with settings other than those that it was started with."""


class NoRunningTrial(UsageError):
    """Raised when a suite's tool is called outside a trial."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"The tool {tool!r} was called outside a trial; it works only while evaluate() runs the agent."
        )


class SuiteError(TbAdaptersError):
    """Raised when a suite is wrong, such as a golden action that errors; nobody is graded by it."""


class RunStopped(TbAdaptersError):
    """Raised when the run can't go on; everything finished is kept in the run folder."""


class ToolError(Exception):
    """Raised by a tool to answer the agent with an error that it may read and recover from."""


class Fault(TbAdaptersError):
    """Raised when something goes wrong inside one attempt; the subclass says who owns it.

    Attributes:
        owner: One of ``OWNERS``.
        code: A short, stable word for the kind of fault, such as ``rate_limit`` or ``exception``.
        retry_after: Seconds that the provider asked to wait, if it said so.
    """

    owner: ClassVar[str]

    def __init__(self, message: str, *, code: str = "exception", retry_after: float | None = None) -> None:
        super().__init__(_kept(message))
        self.code = code
        self.retry_after = retry_after


class AgentFault(Fault):
    """Raised when the agent's own code or behaviour ends the attempt: graded all the same, a failed trial."""

    owner = "agent"


class LimitReached(AgentFault):
    """Raised when a trial meets one of its limits; ``code`` is the limit's name in ``Limits``."""

    def __init__(self, limit: str, allowed: float) -> None:
        super().__init__(f"The trial's limit of {allowed:g} {limit} is reached.", code=limit)


class AttemptEnded(AgentFault):
    """Raised when the agent calls an end-turn tool, to lead out of its code as a limit does.

    It is no fault: the attempt is graded as it is, and its record holds none.
    """

    def __init__(self, tool: str) -> None:
        super().__init__(f"{tool} ended the conversation.", code="end_turn_tool")


class ProviderFault(Fault):
    """Raised when a model endpoint fails (rate limit, 5xx, connection, timeout): another attempt is made."""

    owner = "provider"


class AccessFault(ProviderFault):
    """Raised when a quota, a key or a model's name makes every further request fail: the run is stopped."""


class SandboxFault(Fault):
    """Raised when the sandbox fails."""

    owner = "sandbox"


class UserFault(Fault):
    """Raised when the simulated user fails."""

    owner = "user"


class JudgeFault(Fault):
    """Raised when the judge fails."""

    owner = "judge"


class GraderFault(Fault):
    """Raised when the grader fails."""

    owner = "grader"


class HarnessFault(Fault):
    """Raised when tbadapters itself fails."""

    owner = "harness"


@contextmanager
def boundary(fault: type[Fault]) -> Iterator[None]:
    """Turn any exception that escapes the block into ``fault``; errors of this module pass through as they are.

    Cancellation and other ``BaseException``s are not touched.
    """
    try:
        yield
    except TbAdaptersError:
        raise
    except Exception as error:
        raise fault(describe(error)) from error


_OURS = ("tbadapters.core.", "tbadapters.adapters.", "tbadapters.sandboxes.")


def is_ours(error: BaseException) -> bool:
    """Say whether code of ours raised an error that it did not mean to: a bug, of which no agent is to be blamed.

    ``ToolError`` and ``RuntimeError`` are raised on purpose, to tell an agent what it did.
    """
    innermost, trace = "", error.__traceback__
    while trace is not None:
        innermost, trace = str(trace.tb_frame.f_globals.get("__name__")), trace.tb_next
    deliberate = isinstance(error, TbAdaptersError | ToolError | RuntimeError) or not isinstance(error, Exception)
    return innermost.startswith(_OURS) and not deliberate


def describe(error: BaseException) -> str:
    """Return ``error`` as one line: its type and its message, without keys and passwords, whatever its ``str`` does."""
    try:
        text = " ".join(_kept(str(error)).split())
    except Exception as broken:  # noqa: BLE001  (an agent's own exceptions may raise anything there)
        text = f"its message can't be read ({type(broken).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _kept(message: str) -> str:
    """Return the beginning of a message without keys: what comes after it is read first, for a key may begin before."""
    kept = redacted(message[: 2 * MESSAGE_MAX])
    if len(message) <= MESSAGE_MAX:
        return kept
    return f"{kept[:MESSAGE_MAX]} [{len(message) - MESSAGE_MAX:,} characters left out]"
