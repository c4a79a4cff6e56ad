"""Tidewell Bank, a digital bank: customer support on accounts, cards, payments and customers' details."""

from importlib.resources import files

from tbadapters.core.suite import Suite
from tbadapters.sandboxes.sqlite import sqlite_suite
from tbadapters.suites.build import build_tasks, rule_of
from tbadapters.suites.neobank.rules import policy_text
from tbadapters.suites.neobank.tables import TABLE_RULES
from tbadapters.suites.neobank.tools import TOOLS
from tbadapters.suites.neobank.workflows import WORKFLOWS

_SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")


def load(*, suite_seed: int = 0) -> Suite:
    """Return the suite.

    Args:
        suite_seed: 0 is the published set; any other draws other entities, amounts and dates of equal difficulty.
    """
    return sqlite_suite(
        name="neobank",
        schema=_SCHEMA,
        policy=policy_text(),
        tools=TOOLS,
        tasks=build_tasks("neobank", WORKFLOWS, suite_seed),
        rules=TABLE_RULES,
        seed=suite_seed,
        reseed=lambda seed: load(suite_seed=seed),
        rule=rule_of(WORKFLOWS),
    )
