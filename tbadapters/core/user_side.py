"""The user's side of one attempt: whose turn it is and what the user says, within a deadline, its time and money counted.

What is spent here is not the agent's: neither the seconds that a user's model thinks, nor its tokens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from tbadapters.core.agent import ApprovalRequest, Ended, Said
from tbadapters.core.approvals import ApprovalPolicy, decision
from tbadapters.core.conversation import Conversation, End
from tbadapters.core.errors import UserFault, boundary
from tbadapters.core.messages import Message, ModelRequest
from tbadapters.core.spending import collect_requests
from tbadapters.core.transport import unobserved
from tbadapters.core.users import SimulatedUser


class UserSide:
    """Conversation and simulated user of one attempt.

    Args:
        conversation: The turns, by the suite's protocol.
        user: Who answers, and agrees to calls that need approval.
        deadline: Seconds that one answer may take.

    Attributes:
        requests: The user's model requests so far.
    """

    def __init__(self, conversation: Conversation, user: SimulatedUser, *, deadline: float) -> None:
        self.requests: list[ModelRequest] = []
        self._conversation, self._user, self._deadline = conversation, user, deadline
        self._seconds = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """How long the agent has waited for the user so far."""
        return self._seconds + (time.monotonic() - self._since if self._since is not None else 0.0)

    def start(self) -> Message:
        """Return the user's opening message."""
        return self._conversation.start()

    async def next(self, said: Said | Ended) -> Message | End:
        """Return the user's next message, or the end.

        Raises:
            UserFault: the simulated user failed, or took too long.
        """
        with self._asked():
            with anyio.move_on_after(self._deadline):
                return await self._conversation.next(said)
            raise self._late()

    async def approve(self, call: ApprovalRequest, by: ApprovalPolicy = "user") -> bool:
        """Say whether the agent may make a tool call: the user, or a policy in its place.

        Raises:
            UserFault: the simulated user failed, or took too long.
        """
        with self._asked():
            with anyio.move_on_after(self._deadline):
                return await decision(by, self._user, call)
            raise self._late()

    def _late(self) -> UserFault:
        return UserFault(f"The simulated user did not answer within {self._deadline:g} s.", code="deadline")

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Count the time and the model requests of what is asked of the user; what fails in it is its own fault."""
        self._since = began = time.monotonic()
        try:
            with unobserved(), collect_requests(self.requests), boundary(UserFault):
                yield
        finally:
            self._seconds += time.monotonic() - began
            self._since = None
