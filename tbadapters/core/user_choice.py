"""Which simulated user plays in a run: what may be passed as one, and under which name the manifest knows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tbadapters.core.context_user import ContextUser
from tbadapters.core.errors import InvalidOption
from tbadapters.core.llm_user import LLMUser
from tbadapters.core.suite import Suite, Task
from tbadapters.core.users import ScriptedUser, SimulatedUser

SCRIPTED = "scripted"
UserOf = Callable[[Task], SimulatedUser]

_STANDS_IN = (
    "The simulated user is a deterministic one that tells everything at the first question, because these tasks describe "
    "their user in free text: that is not canonical; user=MODEL lets a language model play it."
)


@dataclass(frozen=True, slots=True)
class UserChoice:
    """The simulated user of a run.

    Attributes:
        name: For the manifest: what was passed as text, the model's name, or the function's.
        of: Makes the user of one attempt at a task.
    """

    name: str
    of: UserOf

    def notes(self, suite: Suite) -> tuple[str, ...]:
        """Return what a reader of the figures must know of it."""
        stands_in = self.name == SCRIPTED and any(task.user.context for task in suite.tasks)
        return (_STANDS_IN,) if stands_in else ()


def chosen_user(user: object) -> UserChoice:
    """Return the user that is meant.

    Args:
        user: ``"scripted"``, a model's name as PydanticAI takes it, one of its ``Model`` objects, an ``LLMUser``, or a
            callable that returns a task's simulated user.

    Raises:
        MissingFramework: a model is meant, and ``tbadapters[llm]`` is not installed.
        InvalidOption: there is no such model, or its key is missing.
    """
    if user == SCRIPTED:
        return UserChoice(SCRIPTED, _scripted)
    if isinstance(user, str) and ":" not in user:
        raise InvalidOption(f"user={user!r}: 'scripted' is needed, or a model such as 'openai:gpt-5-mini'.")
    if isinstance(user, LLMUser) or not callable(user):
        played = user if isinstance(user, LLMUser) else LLMUser(user)
        return UserChoice(user if isinstance(user, str) else played.name, played)
    return UserChoice(getattr(user, "__name__", "custom"), user)


def _scripted(task: Task) -> SimulatedUser:
    return ContextUser(task.user) if task.user.context else ScriptedUser(task.user)
