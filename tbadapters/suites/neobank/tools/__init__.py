"""The tools of the bank's support desk, by noun."""

from typing import Any

from tbadapters.sandboxes.sqlite import DatabaseTool
from tbadapters.suites.neobank.tools import accounts, cards, customers, disputes, fees, holds, tickets, transfers

TOOLS: tuple[DatabaseTool[..., Any], ...] = tuple(
    tool
    for module in (customers, accounts, cards, disputes, fees, transfers, holds, tickets)
    for tool in vars(module).values()
    if isinstance(tool, DatabaseTool)
)
