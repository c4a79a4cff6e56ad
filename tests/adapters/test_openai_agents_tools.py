"""OpenAI Agents SDK agents: which tools they have in a trial, and which are refused."""

from __future__ import annotations

import openai_agents_stage
import pytest
from agents import Agent, RunConfig, WebSearchTool, function_tool, handoff
from agents.mcp import MCPServerStdio
from agents.tool_context import ToolContext

from tbadapters.adapters.openai_agents import OpenAIAgentsAgent, tools
from tbadapters.core.agent import Said
from tbadapters.core.errors import ForeignTools, NoRunningTrial, UsageError
from tbadapters.core.messages import Message
from tbadapters.core.tools import Tool
from tbadapters.testing.turns import Reply

stage = openai_agents_stage.stage
BALANCE = ("get_balance", {"account": "A-1"})


@function_tool
def wire_money(amount: float) -> str:
    """Send real money."""
    raise AssertionError("the author's production tool was run")


async def test_tools_that_the_author_put_somewhere_stay_there(stage, attempt):
    """Where an agent was built with the suite's tools nothing is added to the others, and no agent is copied."""
    async with stage(
        a=[Reply(tool_calls=[("transfer_to_b", {})])], b=["?", Reply(tool_calls=[BALANCE]), "Done."]
    ) as on:
        root = on.agent("a", handoffs=[on.agent("b", tools=tools(attempt.tools))])
        async with attempt.session(OpenAIAgentsAgent(root)) as session:
            assert await session.send(Message("Hi.")) == Said("Done.")
        assert on.seen("a")[0].offered == {"transfer_to_b"}
        assert on.seen("b")[0].offered == {"get_balance", "transfer", "close_account"}
    assert attempt.called == [BALANCE]


async def test_with_the_word_suite_nothing_is_added(stage, attempt):
    """``tools="suite"`` leaves an agent without tools without tools."""
    async with stage(a=["Hi."]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("a"), tools="suite")) as session:
            await session.send(Message("Hi."))
        assert on.seen("a")[0].offered == frozenset()


@pytest.mark.parametrize("build", ["function", "hosted", "mcp", "handed"])
async def test_foreign_tools_are_refused_with_the_line_that_works(attempt, build):
    """Functions, hosted tools and MCP servers of the author, on any agent in sight, are named and refused."""
    server = MCPServerStdio({"command": "never-started"}, name="ledger")
    agent = {
        "function": Agent("a", tools=[*tools(attempt.tools), wire_money]),
        "hosted": Agent("a", tools=[WebSearchTool()]),
        "mcp": Agent("a", mcp_servers=[server]),
        "handed": Agent("b", handoffs=[Agent("a", tools=[wire_money])]),
    }[build]
    named = {"hosted": "web_search", "mcp": "ledger"}.get(build, "wire_money")
    with pytest.raises(ForeignTools, match=named) as refusal:
        OpenAIAgentsAgent(agent).check(attempt.tools)
    assert "'a'" in str(refusal.value)
    assert 'OpenAIAgentsAgent(agent, tools="replace")' in str(refusal.value)


async def test_tools_of_another_suite_are_refused(attempt):
    """A suite's tool that this suite does not have is foreign, with any word."""
    agent = Agent("a", tools=tools(attempt.tools))
    with pytest.raises(ForeignTools, match="close_account") as refusal:
        OpenAIAgentsAgent(agent, tools="replace", keep=["close_account"]).check(attempt.tools[:2])
    assert "keep=" not in str(refusal.value)


async def test_replace_puts_the_suites_tools_in_place_of_the_authors(stage, attempt):
    """With ``tools="replace"`` the author's tools are neither shown nor run, in handoffs too; his agents stay as built."""
    async with stage(
        a=[Reply(tool_calls=[("transfer_to_b", {})])], b=["?", Reply(tool_calls=[BALANCE]), "Done."]
    ) as on:
        b = on.agent("b", tools=[wire_money, WebSearchTool()])
        a = on.agent("a", handoffs=[handoff(b)])
        async with attempt.session(OpenAIAgentsAgent(a, tools="replace")) as session:
            assert await session.send(Message("Hi.")) == Said("Done.")
        assert on.seen("b")[0].offered == {"get_balance", "transfer", "close_account"}
    assert attempt.called == [BALANCE]
    assert [tool.name for tool in b.tools] == ["wire_money", "web_search"]


@pytest.mark.parametrize("built", ["with the suite's", "without", "replaced"])
async def test_tools_that_are_named_to_be_kept_are_run_beside_the_suites(stage, attempt, built):
    """``keep`` leaves a tool of the author's where it is, executes it, and gives the suite's to an agent without them."""
    ran = []
    add = function_tool(lambda: ran.append("add") or "3", name_override="add", description_override="Add.")
    own = {"with the suite's": [add, *tools(attempt.tools)], "without": [add], "replaced": [add, wire_money]}[built]
    async with stage(a=[Reply(tool_calls=[("add", {})]), Reply(tool_calls=[BALANCE]), "Done."]) as on:
        agent = on.agent("a", tools=own)
        words = "replace" if built == "replaced" else "check"
        adapter = OpenAIAgentsAgent(agent, keep=["add"], tools=words)
        adapter.check(attempt.tools)
        async with attempt.session(adapter) as session:
            assert await session.send(Message("Hi.")) == Said("Done.")
        assert on.seen("a")[0].offered == {"add", "get_balance", "transfer", "close_account"}
    assert ran == ["add"]
    assert attempt.called == [BALANCE]
    with pytest.raises(ForeignTools, match=r"keep=\['wire_money'\]"):
        OpenAIAgentsAgent(Agent("a", tools=[add, wire_money]), keep=["add"]).check(attempt.tools)


@pytest.mark.parametrize("words", ["check", "replace", "suite"])
async def test_a_sub_agents_foreign_tools_are_refused_before_it_acts(stage, attempt, words):
    """Behind ``as_tool()`` an author's tool is refused when the sub-agent first acts, before its model is asked."""
    async with stage(
        boss=[Reply(tool_calls=[("ask_clerk", {"input": "x"})]), "Polite."],
        clerk=[Reply(tool_calls=[("wire_money", {"amount": 1})]), "Sent."],
    ) as on:
        boss = on.agent("boss", tools=[on.agent("clerk", tools=[wire_money]).as_tool("ask_clerk", "Ask.")])
        async with attempt.session(OpenAIAgentsAgent(boss, tools=words)) as session:
            with pytest.raises(ForeignTools, match=r"'clerk'.*wire_money"):
                await session.send(Message("Hi."))
        assert on.seen("clerk") == []


async def test_a_sub_agent_that_cant_be_looked_at_runs_no_tool(stage, attempt):
    """``as_tool(run_config=...)`` hides a sub-agent: it is refused before any tool that its model asks for is run."""
    ran = []
    spy = function_tool(lambda: ran.append("ran"), name_override="spy", description_override="Spy.")
    async with stage(
        boss=[Reply(tool_calls=[("ask_clerk", {"input": "x"})]), "Polite."],
        clerk=[Reply(tool_calls=[("spy", {})]), "."],
    ) as on:
        clerk = on.agent("clerk", tools=[spy])
        own = RunConfig(tracing_disabled=True)
        boss = on.agent("boss", tools=[clerk.as_tool("ask_clerk", "Ask.", run_config=own)])
        async with attempt.session(OpenAIAgentsAgent(boss)) as session:
            with pytest.raises(UsageError, match="leave run_config out"):
                await session.send(Message("Hi."))
        assert len(on.seen("clerk")) == 1
    assert ran == []


async def test_replace_leaves_a_router_without_tools(stage, attempt):
    """With ``tools="replace"`` an agent that its author gave no tools gets none where another one's are replaced."""
    async with stage(
        a=[Reply(tool_calls=[("transfer_to_b", {})])], b=["?", Reply(tool_calls=[BALANCE]), "Done."]
    ) as on:
        a = on.agent("a", handoffs=[on.agent("b", tools=[wire_money])])
        async with attempt.session(OpenAIAgentsAgent(a, tools="replace")) as session:
            assert await session.send(Message("Hi.")) == Said("Done.")
        assert on.seen("a")[0].offered == {"transfer_to_b"}
    assert attempt.notes == ["b was given the suite's tools instead of wire_money.", "a handed off to b."]


async def test_a_tools_schema_is_sent_as_it_is(stage, attempt):
    """Optional arguments stay optional and open objects open on the wire; the suite's own schema is not shared."""
    schema = {
        "type": "object",
        "properties": {"note": {"type": "string"}, "extra": {"type": "object", "additionalProperties": True}},
        "required": ["note"],
    }
    attempt.tools = [Tool("annotate", "Annotate.", schema)]
    async with stage(a=["Hi."]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("a"))) as session:
            await session.send(Message("Hi."))
        (offered,) = on.seen("a")[0].tools
    assert (offered.name, offered.description, offered.parameters) == ("annotate", "Annotate.", schema)
    assert tools(attempt.tools)[0].params_json_schema["properties"] is not schema["properties"]


async def test_a_suites_tool_works_only_inside_a_trial(attempt):
    """Arguments that are no JSON object are answered as an error; outside a trial a call is refused."""
    tool = tools(attempt.tools)[0]
    context = ToolContext(None, tool_name=tool.name, tool_call_id="1", tool_arguments="")
    assert await tool.on_invoke_tool(context, "[1]") == "The arguments of get_balance must be a JSON object."
    with pytest.raises(NoRunningTrial, match="get_balance"):
        await tool.on_invoke_tool(context, '{"account": "A-1"}')
