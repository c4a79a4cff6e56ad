"""Who speaks next, and when it is over: one small state machine a protocol, chosen by the suite.

A conversation holds no loop and calls no agent: whoever drives the attempt asks it for the next message, so that
agents that are pushed to and agents that pull share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from tbadapters.core.agent import Ended, Said
from tbadapters.core.errors import UnknownName, UserFault, boundary
from tbadapters.core.messages import Message
from tbadapters.core.suite import Task
from tbadapters.core.users import SimulatedUser

ProtocolName = Literal["default", "thinkingbox"]
DONE = "<DONE>"  # by the thinkingbox protocol, at the end of the agent's last message
MAX_USER_REPLIES = 10


@dataclass(frozen=True, slots=True)
class End:
    """The conversation is over.

    Attributes:
        reason: ``settled`` (the agent claimed that it settled, refused or escalated the matter), ``user_gave_up`` (it
            neither asked nor claimed anything for too long), ``max_user_replies`` or ``agent_ended``. It says nothing of
            the verdict.
    """

    reason: str


class Conversation(Protocol):
    """The turns of one attempt."""

    def start(self) -> Message:
        """Return the user's first message."""
        ...

    async def next(self, answer: Said | Ended) -> Message | End:
        """Return the user's next message, or the end; after the end, the same end again.

        Raises:
            UserFault: the simulated user failed.
        """
        ...


class DefaultConversation:
    """The task's opening, then the simulated user's answer to whatever the agent says, until one of them ends it."""

    def __init__(self, task: Task, user: SimulatedUser) -> None:
        self._opening = task.opening
        self._user = user
        self._end: End | None = None

    def start(self) -> Message:
        """Return the task's opening."""
        return Message(self._opening)

    async def next(self, answer: Said | Ended) -> Message | End:
        """Return the user's next message, or the end."""
        if self._end is not None:
            return self._end
        if isinstance(answer, Ended):
            self._end = End("agent_ended")
            return self._end
        with boundary(UserFault):
            reply = await self._user.reply(answer.text)
        if reply.ended is None:
            return Message(reply.text)
        self._end = End(reply.ended)
        return self._end


class ThinkingBoxConversation:
    """The turns of the public benchmark: only the agent can end it, or the number of the user's replies does.

    The agent ends it by a message that ends with ``<DONE>`` or by calling an end-turn tool. A user that is satisfied says
    so and is one message nearer to the limit. The marker is part of the message: it is recorded and graded with it.
    """

    def __init__(self, task: Task, user: SimulatedUser) -> None:
        self._opening = task.opening
        self._user = user
        self._left = MAX_USER_REPLIES if task.max_user_replies is None else task.max_user_replies
        self._end: End | None = None

    def start(self) -> Message:
        """Return the task's opening."""
        return Message(self._opening)

    async def next(self, answer: Said | Ended) -> Message | End:
        """Return the user's next message, or the end."""
        if self._end is None and (isinstance(answer, Ended) or answer.text.strip().endswith(DONE)):
            self._end = End("agent_ended")
        if self._end is None and self._left <= 0:
            self._end = End("max_user_replies")
        if self._end is not None:
            return self._end
        self._left -= 1
        with boundary(UserFault):
            return Message((await self._user.reply(answer.text)).text)


# A protocol with other turns or other ends is a class of its own here.
_PROTOCOLS: Mapping[str, Callable[[Task, SimulatedUser], Conversation]] = {
    "default": DefaultConversation,
    "thinkingbox": ThinkingBoxConversation,
}


def conversation_for(suite_protocol: ProtocolName, task: Task, user: SimulatedUser) -> Conversation:
    """Return a fresh conversation by the suite's protocol for one attempt at ``task``.

    Raises:
        UnknownName: there is no such protocol.
    """
    try:
        protocol = _PROTOCOLS[suite_protocol]
    except KeyError:
        raise UnknownName("conversation protocol", suite_protocol, _PROTOCOLS) from None
    return protocol(task, user)
