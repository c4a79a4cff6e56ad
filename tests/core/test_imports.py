"""The core and the whole package work where no agent framework is installed."""

import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
BLOCKED = ("langgraph", "langchain", "langchain_core", "langchain_openai", "agents", "openai", "pydantic_ai")
PROLOGUE = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run(code):
    """Run code in a process in which no agent framework can be imported."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROLOGUE + code], capture_output=True, text=True, timeout=50, check=False
    )


def test_every_module_of_the_core_imports():
    """Each module of the core can be imported with every framework blocked."""
    done = run("""
import importlib, pkgutil, tbadapters.core
for module in pkgutil.iter_modules(tbadapters.core.__path__, "tbadapters.core."):
    importlib.import_module(module.name)
print("imported")
""")
    assert done.stdout == "imported\n", done.stderr


def test_a_custom_agent_is_evaluated(tmp_path):
    """A custom agent is evaluated without any framework, and nothing of one was imported."""
    done = run(f"""
from tbadapters import evaluate_sync
result = evaluate_sync({str(DATA / "agents.py:good")!r}, suite={str(DATA / "desk.py")!r}, trials=2,
                       out={str(tmp_path)!r}, progress="off")
print(result.pass_at_1, [name for name in {BLOCKED!r} if name in sys.modules])
""")
    assert done.stdout == "1.0 []\n", done.stderr


def test_a_missing_framework_is_named_with_its_extra():
    """Asking for a framework that is not installed is one sentence with the line that installs it."""
    done = run("""
from tbadapters import load_suite, UsageError
for name in ("langgraph", "openai-agents", "pydantic-ai"):
    try:
        load_suite("neobank").tools(name)
    except UsageError as error:
        print(error)
""")
    assert done.stdout.count("pip install 'tbadapters[") == 3, done.stderr
