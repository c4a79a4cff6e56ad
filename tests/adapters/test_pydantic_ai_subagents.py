"""PydanticAI agents that hand work to sub-agents, and tools of the author's own."""

from __future__ import annotations

from typing import Any

import pydantic_ai_lab
import pytest
from fake_attempt import TOOLS, make_tool
from pydantic import ValidationError
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, RunContext
from pydantic_ai.capabilities import ModelFallback, NativeTool
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai_lab import BALANCE, CLOSE, system_texts

from tbadapters.adapters.pydantic_ai import FRAMEWORK, PydanticAIAgent
from tbadapters.core.agent import Said
from tbadapters.core.errors import AgentFault, ForeignTools, InvalidOption, LimitReached, ProviderFault, UsageError
from tbadapters.core.messages import Message, Usage
from tbadapters.testing import ModelTurn, Reply

lab = pydantic_ai_lab.lab


def play(turn: ModelTurn) -> Reply:
    """Delegate where there is a tool for it, else look at the account once and report."""
    if "ask_cards" in turn.offered:
        if turn.replies % 2 == 0:
            return Reply(tool_calls=[("ask_cards", {"question": "How much?"})])
        return Reply(text=f"Root: {turn.messages[-1].text}")
    if turn.replies == 0:
        return Reply(tool_calls=[BALANCE])
    return Reply(text=f"Cards: {turn.messages[-1].text}")


def team(here: Any, *, share_usage: bool = False, **cards_options: Any) -> tuple[Agent[Any, Any], Agent[Any, Any]]:
    cards = Agent(here.model(), name="cards", instructions="I do cards.", **cards_options)
    top = Agent(here.model(), name="top")

    @top.tool
    async def ask_cards(ctx: RunContext[Any], question: str) -> str:
        return (await cards.run(question, usage=ctx.usage if share_usage else None)).output

    return top, cards


class TestSubagents:
    async def test_a_named_sub_agent_gets_tools_policy_and_a_name_in_the_record(self, lab, attempt):
        """A sub-agent that brings no tool gets the suite's and the policy; what it does is recorded as its own."""
        here = await lab(play)
        top, cards = team(here)
        attempt.answers["get_balance"] = "3"
        adapter = PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards])
        async with attempt.session(adapter, instructions="No refunds.") as session:
            assert await session.send(Message("How much?")) == Said("Root: Cards: 3")
        assert [(call.name, call.actor) for call in attempt.calls] == [("get_balance", "cards")]
        assert [request.actor for request in attempt.requests] == [None, "cards", "cards", None]
        assert attempt.started == [None, "cards", "cards", None]
        assert attempt.usage == here.server.totals
        assert here.shown[0].offered == {"ask_cards"}
        assert here.shown[1].offered == {tool.name for tool in TOOLS}
        assert "I do cards." in system_texts(here.shown[1])
        assert all("No refunds." in system_texts(turn) for turn in here.shown)

    async def test_tokens_are_counted_once_where_usage_is_shared(self, lab, attempt):
        """A sub-agent that adds to its caller's usage is neither counted twice nor taken for an unnamed one."""
        here = await lab(play)
        top, cards = team(here, share_usage=True)
        async with attempt.session(PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards])) as session:
            await session.send(Message("How much?"))
            await session.send(Message("And now?"))
        assert attempt.usage == here.server.totals
        assert attempt.notes == []

    async def test_a_sub_agent_built_with_suite_tools_keeps_its_own_choice(self, lab, attempt):
        """A sub-agent has exactly the suite's tools that its author gave it, and is told the policy all the same."""
        here = await lab(play)
        some = [tool for tool in FRAMEWORK.tools(TOOLS) if tool.name == "get_balance"]
        top, cards = team(here, tools=some)
        adapter = PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards])
        async with attempt.session(adapter, instructions="No refunds.") as session:
            await session.send(Message("How much?"))
        assert here.shown[1].offered == {"get_balance"}
        assert "No refunds." in system_texts(here.shown[1])
        assert [call.actor for call in attempt.calls] == ["cards"]

    async def test_a_limit_met_in_a_sub_agent_ends_the_attempt(self, lab, attempt):
        """The limit on model requests counts a sub-agent's and passes through the author's tool."""
        here = await lab(play)
        top, cards = team(here)
        attempt.max_requests = 2
        async with attempt.session(PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards])) as session:
            with pytest.raises(LimitReached, match="model_requests"):
                await session.send(Message("How much?"))
        assert len(here.shown) == 2

    async def test_a_swallowed_fault_of_a_sub_agents_model_is_recorded(self, lab, attempt):
        """An author's tool that turns a provider's failure into a polite sentence does not hide it."""

        def failing(turn: ModelTurn) -> Reply:
            return play(turn) if "ask_cards" in turn.offered else Reply(fault="rate_limit")

        here = await lab(failing)
        top, cards = Agent(here.model(), name="top"), Agent(here.model(), name="cards")

        @top.tool_plain
        async def ask_cards(question: str) -> str:
            try:
                return (await cards.run(question)).output
            except Exception:  # noqa: BLE001 - as careless authors do
                return "unavailable"

        async with attempt.session(PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards])) as session:
            assert await session.send(Message("How much?")) == Said("Root: unavailable")
        assert [(fault.owner, fault.code) for fault in attempt.faults] == [("provider", "rate_limit")]
        assert [(r.actor, r.usage is None) for r in attempt.requests] == [(None, False), ("cards", True), (None, False)]

    async def test_approval_in_a_sub_agent_is_refused_in_words(self, lab, attempt):
        """A sub-agent that can't ask for approval is told so, and the call is not executed."""

        def closing(turn: ModelTurn) -> Reply:
            return play(turn) if "ask_cards" in turn.offered or turn.replies else Reply(tool_calls=[CLOSE])

        here = await lab(closing)
        top, cards = team(here)
        async with attempt.session(PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards])) as session:
            said = await session.send(Message("Close it"))
        assert "needs a person's approval" in said.text
        assert attempt.called == []

    async def test_a_sub_agent_that_can_ask_does_so_in_its_authors_way(self, lab, attempt):
        """A sub-agent whose output type allows for approvals returns them to its author's tool."""
        here = await lab(lambda turn: play(turn) if "ask_cards" in turn.offered else Reply(tool_calls=[CLOSE]))
        cards = Agent(here.model(), name="cards", output_type=[str, DeferredToolRequests])
        top = Agent(here.model(), name="top")

        @top.tool_plain
        async def ask_cards(question: str) -> str:
            asked = (await cards.run(question)).output
            return f"asks for {asked.approvals[0].tool_name}"

        async with attempt.session(PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards])) as session:
            assert await session.send(Message("Close it")) == Said("Root: asks for close_account")

    async def test_an_agent_that_nobody_named_is_noted(self, lab, attempt):
        """Requests of an agent that can't be seen from outside are noted where it shares the run's usage."""
        here = await lab(lambda turn: play(turn) if "ask_cards" in turn.offered else Reply(text="Hidden."))
        top = Agent(here.model(), name="top", tools=FRAMEWORK.tools(TOOLS), deps_type=dict)

        @top.tool
        async def ask_cards(ctx: RunContext[dict[str, Any]], question: str) -> str:
            return (await ctx.deps["hidden"].run(question, usage=ctx.usage)).output

        adapter = PydanticAIAgent(top, deps={"hidden": Agent(here.model())}, keep=["ask_cards"])
        async with attempt.session(adapter) as session:
            assert await session.send(Message("How much?")) == Said("Root: Hidden.")
        assert len(attempt.requests) == 2
        assert len(attempt.notes) == 1
        assert attempt.notes[0].startswith("1 model request")
        assert attempt.usage != here.server.totals != Usage()


class TestRefusals:
    async def test_foreign_tools_are_refused_and_never_run(self, lab, attempt):
        """Tools of the author's own beside the suite's are refused by name, with the lines that work."""
        here = await lab(play)
        agent = Agent(here.model(), name="mine", tools=FRAMEWORK.tools(TOOLS), toolsets=[FunctionToolset(id="extra")])

        @agent.tool_plain
        def pay_for_real(amount: int) -> str:
            raise AssertionError

        @agent.toolset
        def more(_ctx: RunContext[Any]) -> FunctionToolset[Any]:
            raise AssertionError

        with pytest.raises(ForeignTools) as refused:
            PydanticAIAgent(agent).check(TOOLS)
        text = str(refused.value)
        assert "'mine'" in text
        assert "pay_for_real, DynamicToolset" in text
        assert 'tools="replace"' in text
        assert "keep=('pay_for_real', 'DynamicToolset')" in text

    async def test_foreign_tools_of_a_sub_agent_and_of_the_provider_are_found(self, lab):
        """Native tools are the author's own, too, and sub-agents are looked through like the agent."""
        here = await lab(play)
        top, cards = team(here)
        searching = Agent(here.model("responses"), name="searching", capabilities=[NativeTool(WebSearchTool())])
        with pytest.raises(ForeignTools, match="'searching' brings tools that are not the suite's: web_search"):
            PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards, searching]).check(TOOLS)

    async def test_replace_takes_the_authors_tools_away(self, lab, attempt):
        """With tools="replace" the model is offered the suite's tools and those that are kept, no others."""
        here = await lab(lambda turn: Reply(text="Hi."))
        own = FunctionToolset(id="own")
        agent = Agent(here.model("responses"), toolsets=[own], capabilities=[NativeTool(WebSearchTool())])

        @agent.tool_plain
        def think(thought: str) -> str:
            return thought

        @agent.tool_plain
        def pay_for_real(amount: int) -> str:
            raise AssertionError

        @own.tool_plain
        def mail(text: str) -> str:
            raise AssertionError

        async with attempt.session(PydanticAIAgent(agent, tools="replace", keep=["think"])) as session:
            await session.send(Message("Hi"))
        assert here.shown[0].offered == {"think", *(tool.name for tool in TOOLS)}
        assert [tool["type"] for tool in here.shown[0].body["tools"]] == ["function"] * 4

    async def test_an_unnamed_sub_agent_is_refused(self, lab):
        """A kept tool that is seen to run an agent that was not named is refused with the line that names it."""
        here = await lab(play)
        top, _ = team(here)
        with pytest.raises(UsageError, match=r"runs the agent 'cards'.*subagents=\[cards\]"):
            PydanticAIAgent(top, tools="replace", keep=["ask_cards"]).check(TOOLS)

    async def test_an_agent_that_would_have_no_suite_tool_is_refused(self, lab):
        """Kept tools alone leave nothing to be evaluated."""
        here = await lab(play)
        agent = Agent(here.model())

        @agent.tool_plain
        def think(thought: str) -> str:
            return thought

        with pytest.raises(UsageError, match=r"suite.tools\(\"pydantic-ai\"\)"):
            PydanticAIAgent(agent, keep=["think"]).check(TOOLS)

    async def test_tools_of_another_suite_are_refused(self, lab):
        """An agent that was built for another suite is refused by the names of its tools."""
        here = await lab(play)
        other = FRAMEWORK.tools([make_tool("book_flight", to="string")])
        with pytest.raises(ForeignTools, match="another suite: book_flight"):
            PydanticAIAgent(Agent(here.model(), tools=other)).check(TOOLS)

    async def test_missing_deps_are_refused(self, lab):
        """An agent that declares deps is refused without any, with the line that gives them."""
        here = await lab(play)
        with pytest.raises(UsageError, match=r"deps_factory=lambda brief: dict\(\.\.\.\)"):
            PydanticAIAgent(Agent(here.model(), deps_type=dict)).check(TOOLS)

    async def test_a_sub_agent_without_a_model_is_refused(self, lab):
        """A sub-agent whose model is chosen at each call could not be counted."""
        here = await lab(play)
        top, cards = team(here)
        with pytest.raises(UsageError, match="'lazy' has no model of its own"):
            PydanticAIAgent(top, keep=["ask_cards"], subagents=[cards, Agent(name="lazy")]).check(TOOLS)

    async def test_options_that_make_no_sense_are_refused(self, lab):
        """Contradictory options are refused when they are given."""
        here = await lab(play)
        with pytest.raises(InvalidOption, match="'check' or 'replace'"):
            PydanticAIAgent(Agent(here.model()), tools="all")
        with pytest.raises(InvalidOption, match="not both"):
            PydanticAIAgent(Agent(here.model()), deps=1, deps_factory=lambda brief: 1)
        with pytest.raises(InvalidOption, match=r"deps_factory\(brief\)"):
            PydanticAIAgent(Agent(name="a"), deps_factory=lambda: 1)


FAULTS = {
    "rate_limit": ("ProviderFault", "rate_limit"),
    "server_error": ("ProviderFault", "server_error"),
    "overloaded": ("ProviderFault", "server_error"),
    "request_timeout": ("ProviderFault", "timeout"),
    "conflict": ("ProviderFault", "conflict"),
    "timeout": ("ProviderFault", "timeout"),
    "cut_stream": ("ProviderFault", "connection"),
    "quota": ("AccessFault", "insufficient_quota"),
    "forbidden": ("AccessFault", "authentication"),
    "context_length": ("AgentFault", "context_length_exceeded"),
    "refusal": ("AgentFault", "content_filter"),
    "content_filter": ("AgentFault", "content_filter"),
    "malformed_json": ("AgentFault", "invalid_model_output"),
}
RECORDED = {kind for kind in FAULTS if kind not in ("refusal", "content_filter", "malformed_json")}


class TestFaults:
    @pytest.mark.parametrize("wire", pydantic_ai_lab.WIRES)
    @pytest.mark.parametrize("kind", FAULTS)
    async def test_each_fault_has_its_owner(self, lab, attempt, kind, wire):
        """Whatever goes wrong at a model endpoint is the fault of whoever owns it, and recorded where it happened."""
        reply = Reply(text="Long enough to be cut.", tool_calls=[BALANCE] if kind == "malformed_json" else ())
        timeout = 0.2 if kind == "timeout" else 10.0
        here = await lab(lambda turn: reply, faults=lambda number: kind, timeout=timeout)
        async with attempt.session(PydanticAIAgent(Agent(here.model(wire)))) as session:
            with pytest.raises(AgentFault if FAULTS[kind][0] == "AgentFault" else Exception) as raised:
                await session.send(Message("Hi"))
        assert (type(raised.value).__name__, raised.value.code) == FAULTS[kind]
        assert [fault.code for fault in attempt.faults] == ([FAULTS[kind][1]] if kind in RECORDED else [])
        assert attempt.usage == here.server.totals
        if kind == "rate_limit":
            assert raised.value.retry_after == 0.02

    async def test_malformed_arguments_may_be_mended(self, lab, attempt):
        """A model that sends arguments that are no JSON is told so by the framework and may try again."""

        def mending(turn: ModelTurn) -> Reply:
            return [Reply(tool_calls=[BALANCE], fault="malformed_json"), Reply(tool_calls=[BALANCE]), Reply("3.")][
                turn.replies
            ]

        here = await lab(mending)
        async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
            assert await session.send(Message("How much?")) == Said("3.")
        assert attempt.called == [BALANCE]

    async def test_an_error_in_the_authors_own_code_is_the_agents(self, lab, attempt):
        """An exception of the author's instructions fails the trial under its own name."""
        here = await lab(play)
        agent = Agent(here.model())

        @agent.instructions
        def broken() -> str:
            raise ZeroDivisionError("half a refund")

        async with attempt.session(PydanticAIAgent(agent)) as session:
            with pytest.raises(AgentFault, match="ZeroDivisionError: half a refund"):
                await session.send(Message("Hi"))

    async def test_a_fallback_to_another_model_is_recorded_attempt_by_attempt(self, lab, attempt):
        """With the ModelFallback capability the failed request and the one that served are both in the record."""
        here = await lab(lambda turn: Reply("Hi.", fault="overloaded" if turn.model == "first" else None))
        agent = Agent(here.model(name="first"), capabilities=[ModelFallback(here.model(name="second"))])
        async with attempt.session(PydanticAIAgent(agent)) as session:
            assert await session.send(Message("Hi")) == Said("Hi.")
        assert [(request.model, request.usage is None) for request in attempt.requests] == [
            ("first", True),
            ("second", False),
        ]
        assert attempt.usage == here.server.totals

    @pytest.mark.parametrize(
        ("faults", "owner"), [(("quota", "server_error"), "ProviderFault"), (("quota", "forbidden"), "AccessFault")]
    )
    async def test_a_fallback_of_which_all_fail_is_the_providers(self, lab, attempt, faults, owner):
        """Where all models of a fallback fail, another attempt is worth it if it can help one of them."""
        kinds = dict(zip(("first", "second"), faults, strict=True))
        here = await lab(lambda turn: Reply(fault=kinds[turn.model]))
        model = FallbackModel(here.model(name="first"), here.model(name="second"))
        async with attempt.session(PydanticAIAgent(Agent(model))) as session:
            with pytest.raises(ProviderFault) as raised:
                await session.send(Message("Hi"))
        assert type(raised.value).__name__ == owner


def test_arguments_that_are_no_object_are_sent_back_to_the_model():
    """A list where the arguments belong is invalid for the framework, which asks the model to try again."""
    (tool,) = FRAMEWORK.tools(TOOLS[:1])
    with pytest.raises(ValidationError):
        tool.function_schema.validator.validate_json("[1]")
