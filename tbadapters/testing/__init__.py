"""Shipped fakes and checks: a scripted model server, policies that play tasks, suite checks."""

from tbadapters.testing.faults import Faults, RateLimit
from tbadapters.testing.model_server import ScriptedModelServer
from tbadapters.testing.outcomes import FLAWS, Flaw, Outcomes
from tbadapters.testing.policies import GoldenPolicy
from tbadapters.testing.scripts import Injected, Script
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
    "FLAWS",
    "Call",
    "Exchange",
    "FaultKind",
    "Faults",
    "FixedPolicy",
    "Flaw",
    "GoldenPolicy",
    "Injected",
    "ModelTurn",
    "OfferedTool",
    "Outcomes",
    "Policy",
    "RateLimit",
    "Reply",
    "Script",
    "ScriptedModelServer",
    "TurnMessage",
]
