"""Runs a page's blocks of Python one after the other, as a reader would type them; a scripted model answers them.

python page_blocks.py PAGE, in an empty folder. What a page takes for granted ("your graph") is in ``given``.
"""
# ruff: noqa: T201  # what it prints is what the test looks at

import ast
import inspect
import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TypedDict

import tbadapters
from tbadapters.core.event_loop import run_kept
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer
from tbadapters.testing.checks import check_suite

SMALL = {"tasks": ["card_lost/0"], "trials": 1, "progress": "off"}
AGENTS = """
from langchain.agents import create_agent
from tbadapters import load_suite

desk = create_agent("openai:gpt-5-mini", load_suite("neobank").tools("langgraph"))
"""


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def small(function):
    """Return one of the doors so that it runs one trial of one task, whatever the page asks for."""
    return lambda *args, **options: function(*args, **options | SMALL)


class Service(BaseHTTPRequestHandler):
    """An agent behind HTTP: it looks the customer up once, then answers."""

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        call = {"tool": "get_customer", "arguments": {"customer_id": "CUS-32618"}}
        answer = (
            {"calls": [call], "text": ""} if said[-1]["role"] == "user" else {"calls": [], "text": "It is settled."}
        )
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Say nothing."""


def given(suite) -> dict[str, object]:
    """Return what the pages' readers have already."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langgraph.graph import START, StateGraph

    class State(TypedDict):
        question: str
        answer: str

    @tool
    async def ask_card_specialist(question: str) -> str:
        """Ask."""
        return question

    def build_my_graph(tools):
        return create_agent("openai:gpt-5-mini", tools)

    inner = build_my_graph(suite.tools("langgraph"))

    async def ask(state: State):
        return {"answer": (await inner.ainvoke({"messages": [("user", state["question"])]}))["messages"][-1].text}

    graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
    supervisor = build_my_graph([*suite.tools("langgraph"), ask_card_specialist])
    return {
        "build_my_graph": build_my_graph, "graph": graph, "supervisor": supervisor, "my_langgraph_agent": inner,
        "agent": inner, "evaluate": tbadapters.evaluate, "TrialContext": tbadapters.TrialContext,
    }  # fmt: skip


async def played(page: Path, suite) -> dict[str, object]:
    """Run the blocks, and the agents that they define without running them; return what they define."""
    names = given(suite)
    service = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    Thread(target=service.serve_forever, daemon=True).start()
    names["SERVICE"] = f"http://127.0.0.1:{service.server_port}"
    for number, block in enumerate(blocks_of(page)):
        code = compile(block, f"{page.name}, block {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, names)  # the page's own code
        if inspect.iscoroutine(running):
            await running
        for agent in ("agent", "make", "my_agent", "remote_desk"):
            if re.search(rf"^((async )?def {agent}\b|{agent} = )", block, re.MULTILINE):
                done = await tbadapters.evaluate(names[agent], suite=suite)
                assert done.coverage.missing == 0, done
                assert done.trials[0].fault is None, done
                print(agent, done.trials[0].passed, len(done.trials[0].tool_calls))
    service.shutdown()
    if "load" in names:
        assert (await check_suite(names["load"]())).ok
        print("checked")
    return names


def main() -> None:
    page = Path(sys.argv[1])
    Path("my_agents.py").write_text(AGENTS)
    suite = tbadapters.load_suite("neobank")
    for door in ("evaluate", "evaluate_sync", "compare"):
        setattr(tbadapters, door, small(getattr(tbadapters, door)))
    with ScriptedModelServer(GoldenPolicy(suite, outcomes=Outcomes(pass_rate=1.0))) as server:
        os.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "any"}
        names = run_kept(played(page, suite))  # the loop of evaluate_sync: LangChain's clients know one only
        for name in [name for name in names if name.startswith("test_")]:
            names[name](Path.cwd() / name)
            print(name)


if __name__ == "__main__":
    main()
