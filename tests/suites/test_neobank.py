"""Promises of the neobank suite: what its tasks are, and that they are what they say."""

import itertools
import re
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest

from tbadapters.core.grading import Evidence, Ref
from tbadapters.core.users import ScriptedUser
from tbadapters.suites import load_suite
from tbadapters.suites.neobank import load
from tbadapters.suites.neobank.rules import RULES, Rules, policy_text
from tbadapters.suites.neobank.tables import TABLE_RULES
from tbadapters.suites.neobank.tools import TOOLS
from tbadapters.suites.neobank.tools.arguments import Category, RefusalReason, Team
from tbadapters.suites.neobank.workflows import WORKFLOWS
from tbadapters.testing.checks import check_suite


@pytest.fixture(scope="module")
def suite():
    return load()


def share(tasks, *tags):
    return sum(any(tag in task.tags for tag in tags) for task in tasks) / len(tasks)


def choices(alias):
    """Return the words of an ``Annotated[Literal[...], Field(...)]``."""
    return set(get_args(get_args(alias)[0]))


def test_the_suite_is_as_large_as_promised(suite):
    """There are 25 workflows with at least 3 variations each, 104 tasks and 42 tools."""
    assert len(WORKFLOWS) == 25
    assert min(workflow.variations for workflow in WORKFLOWS) >= 3
    assert len(suite.tasks) == 104
    assert len(suite.tool_list) == 42
    assert Counter(task.id.split("/")[1] for task in suite.tasks) == {w.name: w.variations for w in WORKFLOWS}


def test_refusals_and_escalations_have_their_share(suite):
    """At least 15 % of the tasks end in a refusal or an escalation each, at least 40 % are settled."""
    assert share(suite.tasks, "refusal") >= 0.15
    assert share(suite.tasks, "escalation") >= 0.15
    assert share(suite.tasks, "settled") >= 0.4
    assert share(suite.tasks, "settled", "refusal", "escalation") == 1.0


def test_most_tasks_need_something_that_only_the_user_knows(suite):
    """At least 30 % of the tasks need a fact that must be asked for, and the user knows each of them."""
    assert share(suite.tasks, "needs_fact") >= 0.3
    for task in suite.tasks:
        assert set(task.needs_asking) <= {fact.topic for fact in task.user.facts}
        assert ("needs_fact" in task.tags) == bool(task.needs_asking)


def test_what_must_be_asked_is_not_in_the_opening(suite):
    """No answer that a good agent must ask for is given away by the opening message."""
    for task in suite.tasks:
        for fact in task.user.facts:
            if fact.topic in task.needs_asking:
                told = re.findall(r"\d+(?:\.\d+)?", fact.answer)
                assert not [number for number in told if re.search(rf"\b{re.escape(number)}\b", task.opening)], task.id
                assert fact.answer not in task.opening


def test_some_tasks_allow_several_end_states_and_some_need_a_fact_said(suite):
    """The suite exercises several end states and required facts."""
    assert sum(len(task.expectation.end_states) > 1 for task in suite.tasks) >= 3
    assert sum(bool(task.expectation.required_facts) for task in suite.tasks) >= 5


def test_the_same_seed_gives_the_same_tasks(suite):
    """Tasks are a function of the seed."""
    assert load().tasks == suite.tasks


def test_another_seed_gives_other_entities_of_equal_difficulty(suite):
    """Another seed keeps ids and branches, and shares no opening and no customer number with the published set."""
    fresh = suite.reseed(7)
    assert fresh.seed == 7
    assert [task.id for task in fresh.tasks] == [task.id for task in suite.tasks]
    assert [task.tags for task in fresh.tasks] == [task.tags for task in suite.tasks]
    assert not {task.opening for task in fresh.tasks} & {task.opening for task in suite.tasks}
    same = [a.id for a, b in zip(fresh.tasks, suite.tasks, strict=True) if a.world == b.world]
    assert same == []


@pytest.mark.parametrize("seed", range(4))
def test_openings_are_unique(seed):
    """No two tasks of a seed begin with the same words, so a task is known by its opening."""
    openings = [task.opening for task in load(suite_seed=seed).tasks]
    assert len(set(openings)) == len(openings)


def test_worlds_are_small_and_full_of_other_records(suite):
    """Each world holds several customers, cards and transactions to choose from, in at most 150 rows."""
    for task in suite.tasks:
        tables = task.world["tables"]
        assert sum(map(len, tables.values())) <= 150
        assert len(tables["customers"]) >= 4
        assert len(tables["cards"]) >= 6
        assert len(tables["transactions"]) >= 8


def test_the_suite_is_found_by_its_name_with_its_option(suite):
    """``load_suite("neobank", suite_seed=...)`` is the door."""
    assert load_suite("neobank").tasks == suite.tasks
    assert load_suite("neobank", suite_seed=3).seed == 3


@pytest.mark.parametrize("name", [field.name for field in fields(Rules)])
def test_the_policy_says_every_threshold(name):
    """A threshold that decides a task is one that the agent reads: changing it changes the policy's text."""
    value = getattr(RULES, name)
    other = (*value[:-1], 987_654 if isinstance(value[0], int) else "AX") if isinstance(value, tuple) else value + 1
    changed = policy_text(replace(RULES, **{name: other}))
    assert changed != policy_text()
    assert "{" not in changed


def test_the_policy_and_the_tools_name_the_same_reasons_and_teams():
    """Each reason, team and category of the tools is in the policy, and the policy names no other."""
    said = set(re.findall(r"`([a-z_]+)`", policy_text()))
    assert choices(RefusalReason) <= said
    assert choices(Team) <= said
    refused = set(re.findall(r"refused? with\s+`([a-z_]+)`", policy_text()))
    assert refused
    assert refused <= choices(RefusalReason)
    titled = set(re.findall(r"^## .*\[([a-z_]+)\]$", policy_text(), re.MULTILINE))
    assert titled == choices(Category)


def test_every_reason_and_team_is_used(suite):
    """No reason is offered that no task needs: all but two reasons and one team occur in golden actions."""
    used = Counter()
    for task in suite.tasks:
        for end in task.expectation.end_states:
            for action in end.actions:
                used.update(str(action.arguments.get(name)) for name in ("reason", "team") if name in action.arguments)
    assert choices(RefusalReason) - set(used) <= {"fee_not_waivable", "fee_too_high"}
    assert choices(Team) - set(used) <= {"complaints"}


def test_every_writing_tool_is_needed(suite):
    """The writing tools are there for the tasks: each is used by a golden action of some seed."""
    needed = {
        action.tool
        for seed in range(3)
        for task in load(suite_seed=seed).tasks
        for end in task.expectation.end_states
        for action in end.actions
    }
    assert {tool.name for tool in suite.tool_list if tool.writes} - needed == set()


async def test_no_reading_tool_gives_a_date_of_birth_away(suite):
    """The identity check can't be passed from the records: no reading tool shows a date of birth."""
    task = suite.task("address_change/0")
    customer = task.world["tables"]["customers"][0]
    async with suite.backend.open(task) as sandbox:
        found = await sandbox.call("find_customers", {"name": customer["full_name"]})
        shown = await sandbox.call("get_customer", {"customer_id": customer["customer_id"]})
    assert customer["customer_id"] in found.text
    assert customer["city"] in shown.text
    assert customer["date_of_birth"] not in found.text + shown.text


@pytest.mark.parametrize("tool", [tool.tool for tool in TOOLS], ids=lambda tool: tool.name)
async def test_errors_of_every_tool_can_be_read(suite, tool):
    """Ids that do not exist give an error that is one sentence and names the id, and change nothing."""
    arguments = {}
    for name, schema in tool.parameters["properties"].items():
        arguments[name] = schema["enum"][0] if "enum" in schema else schema.get("const", _unknown(name, schema))
    async with suite.backend.open(suite.tasks[0]) as sandbox:
        before = await sandbox.state()
        result = await sandbox.call(tool.name, arguments)
        assert await sandbox.state() == before
    if tool.name == "find_customers":
        assert result.value == []
    else:
        assert result.is_error
        assert re.fullmatch(r"There is no \w[\w ]* '[A-Z]{3}-00000'\.", result.text)


def _unknown(name, schema):
    prefixes = {"customer": "CUS", "account": "ACC", "card": "CRD", "transaction": "TXN", "fee": "FEE", "payee": "PAY"}
    prefixes |= {"transfer": "TRF", "order": "STO", "dispute": "DSP", "hold": "HLD", "ticket": "TKT"}
    if name.endswith("_id"):
        return f"{prefixes[name.removesuffix('_id').split('_')[-1]]}-00000"
    known = {"number": 5, "boolean": True}.get(schema.get("type"))
    return known or {"date_of_birth": "1980-01-01", "country": "DE", "phone": "+4915100000000"}.get(
        name, "Nobody Atall"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("freeze_card", {"card": "frozen", "asked_by": "customer"}, "only an active card can be frozen"),
        ("unfreeze_card", {"card": "active"}, "only a frozen card can be unfrozen"),
        ("set_spend_limit", {"card": "active", "amount": 500}, "already is 500.00"),
        ("set_atm_limit", {"card": "active", "amount": 10.123}, "more than two decimals"),
        ("set_abroad_use", {"card": "active", "enabled": False}, "is off already"),
        ("set_abroad_use", {"card": "active", "enabled": "no"}, "Invalid arguments for set_abroad_use: enabled"),
        ("block_card", {"card": "active", "reason": "bored"}, "Invalid arguments for block_card: reason"),
    ],
)
async def test_what_changes_nothing_is_an_error(suite, tool, arguments, sentence):
    """A call that would change nothing, or that makes no sense, is answered by a sentence that says why."""
    task = suite.task("card_unfreeze/0")
    wanted = arguments.pop("card")
    card = next(row for row in task.world["tables"]["cards"] if row["status"] == wanted)
    async with suite.backend.open(task) as sandbox:
        result = await sandbox.call(tool, {"card_id": card["card_id"], **arguments})
    assert result.is_error
    assert sentence in result.text
    arguments["card"] = wanted


async def test_a_ticket_is_about_a_record_of_its_customer(suite):
    """A ticket can't be about a record that does not exist, or that is another customer's."""
    task = suite.task("card_lost/0")
    first, second = (row["customer_id"] for row in task.world["tables"]["customers"][:2])
    arguments = {"customer_id": first, "category": "cards", "reason": "too_early", "summary": "No."}
    async with suite.backend.open(task) as sandbox:
        unknown = await sandbox.call("record_refusal", {**arguments, "related_record": "XYZ-1"})
        foreign = await sandbox.call("record_refusal", {**arguments, "related_record": second})
    assert unknown.text == "There is no record 'XYZ-1' that a ticket can be about."
    assert foreign.text == f"The record '{second}' is not one of {first}."


QUESTIONS = {
    "which card": ("Which card is it?", "Please give me the last 4 digits of the card."),
    "date of birth": ("For security, I need your date of birth.", "To verify your identity, what is your birth date?"),
    "lost or stolen": ("Was the card lost or stolen?", "Did you lose it, or was it stolen?"),
    "new limit": ("What should the new daily limit be?", "What would you like the new limit to be?"),
    "destination": ("Which country are you travelling to?", "What is your destination?"),
    "day of return": ("When will you return?", "When do you come back?"),
    "which payment": ("Which transaction is it?", "Could you tell me the merchant, amount and date of the payment?"),
    "merchant contacted": ("Have you contacted the merchant?", "Did you reach out to the shop?"),
    "right amount": ("What was the correct amount?", "How much should you have been charged?"),
    "which withdrawal": ("Which withdrawal was it?", "Could you tell me the date of the withdrawal?"),
    "cash received": ("How much cash did you actually receive?", "How much did the machine pay out?"),
    "which dispute": ("Which dispute would you like to withdraw?", "Which of your disputes do you mean?"),
    "which direct debit": ("Which direct debit is it?", "Could you tell me its date and amount?"),
    "ever authorised": ("Did you ever authorise them to collect?", "Have you given them permission?"),
    "which fee": ("I see two fees. Which one would you like waived?", "What date was the fee charged?"),
    "which transfer": ("There are two transfers. Which one is it?", "What was the amount of the transfer?"),
    "why": ("Why would you like it back?", "What is the reason for the recall?"),
    "amount": ("How much should it be?", "What is the amount?"),
    "which savings account": ("From which savings account should I take it?", "Which account should the money leave?"),
    "which standing order": ("Which standing order do you mean?", "There are two of them. Which one is it?"),
    "new amount": ("What should the new amount be?", "To which amount should I change it?"),
    "payment made": ("Did you make this payment?", "Do you recognise the transaction?"),
    "what was given away": ("What information did you share with them?", "Did you enter any details?"),
    "new address": ("What is your new address?", "Please provide the street, postcode and city."),
    "new phone number": ("What is your new phone number?", "Please give me the new number."),
    "where the money goes": ("Where should the remaining money go?", "Which account should I move the balance to?"),
    "account name": ("What should the account be called?", "How would you like to name it?"),
    "first deposit": ("How much would you like to deposit?", "What amount should I pay in?"),
    "who writes": ("May I have your name, please?", "Who am I speaking with?"),
}


@pytest.mark.parametrize("topic", QUESTIONS)
async def test_the_user_understands_how_agents_ask(suite, topic):
    """Each fact that must be asked for is told when an agent asks for it in its own way."""
    asked = [task for task in suite.tasks if topic in task.needs_asking]
    assert asked
    for task in asked:
        (answer,) = [fact.answer for fact in task.user.facts if fact.topic == topic]
        for question in QUESTIONS[topic]:
            assert answer in (await ScriptedUser(task.user).reply(question)).text, (task.id, question)


def test_the_documentation_names_every_workflow_tool_and_table(suite):
    """The page about the suite leaves out none of what it describes, and gives the right counts."""
    page = (Path(__file__).parents[2] / "docs" / "suites" / "neobank.md").read_text(encoding="utf-8")
    names = [w.name for w in WORKFLOWS] + [tool.name for tool in suite.tool_list] + list(TABLE_RULES)
    assert [name for name in names if f"`{name}`" not in page] == []
    ends = Counter(tag for task in suite.tasks for tag in task.tags if tag in {"settled", "refusal", "escalation"})
    assert f"{ends['settled']} settled, {ends['refusal']} refused, {ends['escalation']} escalated" in page
    assert f"{sum('needs_fact' in task.tags for task in suite.tasks)} need a fact" in page


def test_every_fact_that_must_be_asked_for_has_questions(suite):
    """The questions above leave no topic out."""
    assert {topic for task in suite.tasks for topic in task.needs_asking} == set(QUESTIONS)


async def test_every_order_that_the_tools_accept_is_right(suite):
    """The policy prescribes no order: writing actions in any order that works end in the same graded state."""
    tried = 0
    for task in suite.tasks:
        actions = task.expectation.end_states[0].actions
        writing = [a for a in actions if next(t for t in suite.tool_list if t.name == a.tool).writes]
        if any(isinstance(value, Ref) for action in writing for value in action.arguments.values()):
            continue
        for order in itertools.permutations(writing):
            async with suite.backend.open(task) as sandbox:
                initial = await sandbox.state()
                results = [await sandbox.call(action.tool, action.arguments) for action in order]
                final = await sandbox.state()
            if not any(result.is_error for result in results):
                verdict = await suite.backend.grader(task).grade(Evidence(initial, final, (), ()))
                assert verdict.effects == (), (task.id, [action.tool for action in order])
                tried += 1
    assert tried > 150


@pytest.mark.timeout(240)
async def test_the_published_tasks_hold_every_check(suite):
    """All checks of a suite hold on the published tasks: mutations are caught and the floor is zero."""
    report = await check_suite(suite, seeds=())
    assert [row for row in report.rows() if not row.ok] == []
    assert report.mutation_score >= 0.99
    assert set(report.floor.values()) == {0.0}


@pytest.mark.timeout(240)
async def test_a_fresh_seed_holds_every_check():
    """All checks hold on tasks that nobody has seen."""
    report = await check_suite(replace(load(suite_seed=20260), reseed=None), seeds=())
    assert [row for row in report.rows() if not row.ok] == []
