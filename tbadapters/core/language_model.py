"""A language model that answers in a structured form: what plays the simulated user, and what judges.

It speaks through PydanticAI (``pip install 'tbadapters[llm]'``), which is imported when a model is named and not before.
Nothing here decides anything about an agent: what fails is the fault of whoever asked, or of the model's endpoint.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import anyio

from tbadapters.core.errors import (
    AccessFault,
    Fault,
    InvalidOption,
    JudgeFault,
    MissingFramework,
    ProviderFault,
    UserFault,
    describe,
)
from tbadapters.core.limits import is_finite, is_whole
from tbadapters.core.messages import ModelRequest, Usage
from tbadapters.core.paced_requests import served
from tbadapters.core.provider_errors import meaning_of
from tbadapters.core.spending import record_request
from tbadapters.core.transport import ProviderFaults

Answer = TypeVar("Answer")


class LanguageModel:
    """A model of any provider, asked one question at a time; each question stands alone.

    Args:
        model: A name as PydanticAI takes it (``openai:gpt-5-mini``, ``anthropic:...``), or one of its ``Model`` objects.
        role: Who asks, in words for messages: ``the simulated user``, ``the judge``.
        fault: Whose fault it is where the model answers nothing that can be used.
        settings: PydanticAI's ``ModelSettings``, such as ``{"temperature": 0}``.
        tries: How often one question is put at most until the answer has the right form and nothing speaks against it.
        seconds: Deadline of one question, further tries included.

    Raises:
        MissingFramework: PydanticAI is not installed.
        InvalidOption: there is no such model, its key is missing, or an option makes no sense.
    """

    def __init__(
        self,
        model: object,
        *,
        role: str,
        fault: type[UserFault | JudgeFault],
        settings: Mapping[str, Any] | None = None,
        tries: int = 3,
        seconds: float = 60.0,
    ) -> None:
        if not is_whole(tries, 1):
            raise InvalidOption(f"tries={tries!r}: a whole number of at least 1 is needed.")
        if not is_finite(seconds, above=0):
            raise InvalidOption(f"seconds={seconds!r}: a number of seconds above 0 is needed.")
        self._ai = _pydantic_ai(role)
        self._model = self._inferred(model, role)
        self._role, self._fault = role, fault
        self._settings = dict(settings) if settings else None
        self._tries, self._seconds = tries, seconds

    @property
    def name(self) -> str:
        """The model's name, as its provider knows it."""
        return str(self._model.model_name)

    async def ask(
        self,
        instructions: str,
        prompt: str,
        answer: type[Answer],
        *,
        objection: Callable[[Answer], str | None] = lambda _: None,
    ) -> Answer:
        """Put one question and return the answer; each model request is recorded as spent by whoever asks.

        Args:
            instructions: What the model is to do; the only text that it obeys.
            prompt: What it is to do it with, texts of others ``quoted``.
            answer: The form of the answer, a pydantic model.
            objection: Says in a sentence what speaks against an answer, None where nothing does. The model is told,
                and tries again.

        Raises:
            UserFault: or ``JudgeFault``: no try gave an answer of the right form (``malformed``), every one met an
                objection (``objection``), or the time ran out (``deadline``).
            ProviderFault: the model's endpoint failed; ``AccessFault`` where another attempt can't help.
        """
        agent = self._ai.Agent(
            self._model, output_type=answer, instructions=instructions, retries={"output": self._tries - 1}
        )
        asked = _Asking(self._ai, agent, objection)
        seen = ProviderFaults(served())
        try:
            # An endpoint that fails here is no fault of the agent's, which is watched in the context around this.
            with seen.observe(), anyio.fail_after(self._seconds):
                return await asked.run(prompt, self._settings)
        except TimeoutError as error:
            raise self._timed_out(seen) from error
        except Exception as error:
            raise self._fault_of(error, seen, asked) from error
        finally:
            for request in asked.requests():
                record_request(request)

    def _inferred(self, model: object, role: str) -> Any:
        try:
            return self._ai.models.infer_model(model)
        except Exception as error:
            raise InvalidOption(f"The model {model!r} of {role} can't be used: {describe(error)}") from error

    def _timed_out(self, seen: ProviderFaults) -> Fault:
        fault = seen.unrecovered()
        if fault is None and seen.waiting_seconds() > self._seconds / 2:
            fault = ProviderFault(f"no answer for {self._seconds:g} s", code="stalled")
        return self._of_provider(fault) or self._fault(f"No answer within {self._seconds:g} s.", code="deadline")

    def _fault_of(self, error: Exception, seen: ProviderFaults, asked: _Asking[Any]) -> Fault:
        fault = self._of_provider(seen.unrecovered() or _http_fault(error))
        if fault is not None:
            record_request(ModelRequest(self.name, None, fault=str(fault)))
            return fault
        if isinstance(error, self._ai.exceptions.UnexpectedModelBehavior):
            code = "objection" if asked.objected else "malformed"
            why = asked.objected or describe(error)
            return self._fault(f"{self.name} gave no answer that can be used in {self._tries} tries: {why}", code=code)
        return self._fault(describe(error))

    def _of_provider(self, fault: ProviderFault | None) -> ProviderFault | None:
        """Return an endpoint's fault in a sentence that says whose endpoint it is."""
        if fault is None:
            return None
        return type(fault)(f"The model of {self._role}: {fault}", code=fault.code, retry_after=fault.retry_after)


class _Asking(Generic[Answer]):
    """One question under way.

    Attributes:
        objected: What spoke against the last answer that had the right form, or None.
    """

    def __init__(self, ai: Any, agent: Any, objection: Callable[[Answer], str | None]) -> None:
        self.objected: str | None = None
        self._ai, self._agent, self._objection = ai, agent, objection
        self._messages: list[Any] = []
        agent.output_validator(self._checked)

    async def run(self, prompt: str, settings: Mapping[str, Any] | None) -> Answer:
        """Return the answer."""
        with self._ai.capture_run_messages() as self._messages:
            result = await self._agent.run(prompt, model_settings=settings)
        output: Answer = result.output
        return output

    def requests(self) -> list[ModelRequest]:
        """Return the answered requests so far."""
        answers = (m for m in self._messages if m.kind == "response")
        return [ModelRequest(str(m.model_name or "unknown"), _tokens(m.usage)) for m in answers]

    def _checked(self, answer: Answer) -> Answer:
        self.objected = self._objection(answer)
        if self.objected is not None:
            raise self._ai.ModelRetry(self.objected)
        return answer


def quoted(label: str, text: str) -> str:
    """Return somebody's text as data: between marks that it can't contain, because they hold its digest."""
    mark = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"<{label} {mark}>\n{text}\n</{label} {mark}>"


def _pydantic_ai(role: str) -> Any:
    try:
        importlib.import_module("pydantic_ai.models")
        return importlib.import_module("pydantic_ai")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "pydantic_ai":
            raise MissingFramework(f"PydanticAI, through which {role} asks its model,", "llm") from error
        raise


def _http_fault(error: Exception) -> ProviderFault | None:
    """Return the fault of an endpoint that was not reached through the transport that we watch."""
    meaning = meaning_of(getattr(error, "status_code", None))
    if meaning is None or meaning.owner == "agent":
        return None
    kind = AccessFault if meaning.owner == "access" else ProviderFault
    return kind(describe(error), code=meaning.code)


def _tokens(usage: Any) -> Usage | None:
    if not usage.has_values():
        return None
    reasoning = usage.details.get("reasoning_tokens", 0)
    return Usage(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, reasoning)
