"""Shipped fakes and checks: a scripted model server, policies that play tasks, suite checks."""

from tbadapters.testing.faults import Faults
from tbadapters.testing.model_server import ScriptedModelServer
from tbadapters.testing.server_log import Exchange
from tbadapters.testing.turns import (
    Call,
    FaultKind,
    FixedPolicy,
    ModelTurn,
    OfferedTool,
    Policy,
    Reply,
    TurnMessage,
)

__all__ = [
    "Call",
    "Exchange",
    "FaultKind",
    "Faults",
    "FixedPolicy",
    "ModelTurn",
    "OfferedTool",
    "Policy",
    "Reply",
    "ScriptedModelServer",
    "TurnMessage",
]
