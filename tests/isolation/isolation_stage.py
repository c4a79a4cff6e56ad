"""What runs an agent's file in processes of its own."""

from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread

from tbadapters.isolation.agent import IsolatedAgent

ISOLATED = Path(__file__).parent.parent / "data" / "isolated"


@asynccontextmanager
async def running(spec):
    """Yield the running adapter of an agent in a file of ``tests/data/isolated``."""
    agent = await to_thread.run_sync(IsolatedAgent, f"{ISOLATED}/{spec}")
    async with agent.running():
        yield agent
