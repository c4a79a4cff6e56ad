"""Who agrees to the tool calls that an agent wants a person to confirm: the simulated user, or a policy in its place."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from tbadapters.core.agent import ApprovalRequest
from tbadapters.core.users import Approver, SimulatedUser

ApprovalPolicy = Literal["user", "approve", "deny"] | Approver
NAMES = ("user", "approve", "deny")


def policy_name(policy: ApprovalPolicy) -> str:
    """Return a policy's name, for the manifest and the record."""
    return policy if isinstance(policy, str) else str(getattr(policy, "__name__", type(policy).__name__))


async def decision(policy: ApprovalPolicy, user: SimulatedUser, call: ApprovalRequest) -> bool:
    """Return whether a call may be made, by the policy."""
    if policy == "user":
        return await user.approve(call)
    if isinstance(policy, str):
        return policy == "approve"
    agreed: Any = policy(call)
    return bool(await agreed if inspect.isawaitable(agreed) else agreed)
