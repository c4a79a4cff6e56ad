"""Scores whole agents by the backend records they leave behind, over concurrent repeated trials.

    from tbadapters import evaluate
    result = await evaluate(my_langgraph_agent, suite="neobank", trials=20)
    print(result)

A trajectory is a claim, the database state is the evidence, repetition is the test of trust.
"""

from importlib.metadata import version

from tbadapters.adapters.factory import factory
from tbadapters.adapters.function import TrialContext
from tbadapters.adapters.langgraph import LangGraphAgent
from tbadapters.adapters.openai_agents import OpenAIAgentsAgent
from tbadapters.adapters.pydantic_ai import PydanticAIAgent
from tbadapters.core.agent import (
    AgentAdapter,
    AgentSession,
    ApprovalRequest,
    Approvals,
    Ended,
    NeedsApproval,
    Recorder,
    Said,
    TaskBrief,
)
from tbadapters.core.comparison import Comparison
from tbadapters.core.cost import Price
from tbadapters.core.errors import RunStopped, SuiteError, TbAdaptersError, ToolError, UsageError
from tbadapters.core.gates import check_gate
from tbadapters.core.grading import EndState, Expectation, GoldenAction, Outcome, RequiredFact
from tbadapters.core.judge import Judge, Judgement, LLMJudge
from tbadapters.core.limits import Limits, Retries
from tbadapters.core.llm_user import LLMUser
from tbadapters.core.messages import Message, Usage
from tbadapters.core.result import RunResult
from tbadapters.core.run_folder import load_result
from tbadapters.core.state import TableRules
from tbadapters.core.suite import Suite, Task, UserBrief, UserFact
from tbadapters.core.tool_faults import ToolFaults
from tbadapters.core.tools import Tool, ToolCall, ToolResult
from tbadapters.evaluate import compare, evaluate, evaluate_sync
from tbadapters.suites import load_suite

__version__ = version("tbadapters")

__all__ = [
    "AgentAdapter",
    "AgentSession",
    "ApprovalRequest",
    "Approvals",
    "Comparison",
    "EndState",
    "Ended",
    "Expectation",
    "GoldenAction",
    "Judge",
    "Judgement",
    "LLMJudge",
    "LLMUser",
    "LangGraphAgent",
    "Limits",
    "Message",
    "NeedsApproval",
    "OpenAIAgentsAgent",
    "Outcome",
    "Price",
    "PydanticAIAgent",
    "Recorder",
    "RequiredFact",
    "Retries",
    "RunResult",
    "RunStopped",
    "Said",
    "Suite",
    "SuiteError",
    "TableRules",
    "Task",
    "TaskBrief",
    "TbAdaptersError",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolFaults",
    "ToolResult",
    "TrialContext",
    "Usage",
    "UsageError",
    "UserBrief",
    "UserFact",
    "__version__",
    "check_gate",
    "compare",
    "evaluate",
    "evaluate_sync",
    "factory",
    "load_result",
    "load_suite",
]
