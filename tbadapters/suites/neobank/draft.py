"""A task while a workflow builds it: its world, what the user knows, and what the policy makes of it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from tbadapters.core.grading import EndState, Expectation, GoldenAction, Ref, RequiredFact
from tbadapters.core.suite import Task, UserBrief, UserFact
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import ASKS_BIRTH, ASKS_NAME, ASKS_NUMBER, day_forms, long_day
from tbadapters.suites.neobank.world import Client, Row, World

_DECLINED = {
    "replacement": ("replacement card", "new card", "replace the card", "replace your card"),
    "freeze": ("freeze the card", "freeze your card", "freeze it"),
    "block": ("block the card", "block your card", "block it"),
    "dispute": ("open a dispute", "dispute it", "file a dispute"),
    "close": ("close your account", "close the account"),
    "hold": ("place a hold", "put a hold"),
    "limit": ("lower limit", "smaller limit", "smaller amount", "lower amount"),
    "complaint": ("file a complaint", "complaint for you"),
    "savings": ("open a savings",),
}
"""What an agent may offer beside the request, and the phrases of such an offer."""

_TAGS = {"settled": "settled", "refused": "refusal", "escalated": "escalation"}


class Draft:
    """A task while it is built.

    Args:
        workflow: The workflow's name.
        rng: Where the task is drawn from.
        variation: Which variation it is.
    """

    def __init__(self, workflow: str, rng: random.Random, variation: int) -> None:
        self.workflow, self.rng, self.variation = workflow, rng, variation
        self.world = World(rng)
        self.end = "settled"
        self.tags: list[str] = []
        self._facts: list[UserFact] = []
        self._asked: list[str] = []
        self._actions: list[GoldenAction] = []
        self._required: list[RequiredFact] = []
        self._who = ""

    def meet(self, client: Client, *, speaker: str | None = None) -> None:
        """Let the customer name themselves (by number, by name or by both) and the agent look them up.

        Args:
            client: The customer whom the request is about.
            speaker: Who writes, where it is somebody else.
        """
        by_name = self.rng.random() < 0.3
        whose = "My" if speaker is None else "Their"
        self._who = self.rng.choice(
            (f"I'm {client.name}.", f"My name is {client.name}.")
            if by_name
            else (
                f"{whose} customer number is {client.id}.",
                f"Customer number {client.id}.",
                f"({client.name}, {client.id})",
            )
        )
        if speaker is not None and by_name:
            self._who = f"It's about {client.name}."
        if by_name:
            self.do("find_customers", name=client.name)
        self.do("get_customer", customer_id=client.id)
        self.know("customer number", f"{whose} customer number is {client.id}.", *ASKS_NUMBER)
        if speaker is None:
            self.know("full name", f"My full name is {client.name}.", *ASKS_NAME)
            self.know("date of birth", f"I was born on {long_day(client.row['date_of_birth'])}.", *ASKS_BIRTH)

    def know(self, topic: str, answer: str, *asked_by: str) -> None:
        """Let the user know something that need not be asked for."""
        self._facts.append(UserFact(topic, answer, asked_by))

    def ask(self, topic: str, answer: str, *asked_by: str) -> None:
        """Let the user know something that a good agent must ask for."""
        self.know(topic, answer, *asked_by)
        self._asked.append(topic)

    def do(self, tool: str, **arguments: Any) -> int:
        """Add a golden action and return its index."""
        self._actions.append(GoldenAction(tool, arguments))
        return len(self._actions) - 1

    def result(self, action: int, path: str) -> Ref:
        """Return a value out of an earlier golden action's result."""
        return Ref(action, path)

    def tell(self, name: str, *any_of: str) -> None:
        """Require a fact in the agent's answers."""
        self._required.append(RequiredFact(name, any_of))

    def tell_amount(self, name: str, amount: float) -> None:
        """Require an amount in the agent's answers."""
        self.tell(name, f"{amount:.2f}")

    def tell_day(self, name: str, day: str) -> None:
        """Require a date in the agent's answers."""
        self.tell(name, *day_forms(day))

    def verify(self, client: Client, *, wrong: bool = False) -> bool:
        """Ask for the date of birth and check it; return whether the check passes. If not, the request is refused.

        Args:
            client: The customer.
            wrong: Whether the writer does not know the right date.
        """
        born = str(client.row["date_of_birth"])
        stated = (date.fromisoformat(born) + timedelta(days=self.rng.randrange(32, 400))).isoformat() if wrong else born
        self._facts = [fact for fact in self._facts if fact.topic != "date of birth"]
        wording = ("I was born on {}.", "My date of birth is {}.", "It's {}.")
        self.ask("date of birth", self.rng.choice(wording).format(long_day(stated)), *ASKS_BIRTH)
        self.do("verify_identity", customer_id=client.id, date_of_birth=stated)
        return stated == born

    def refuse(self, client: Client, category: str, reason: str, record: str, summary: str) -> None:
        """Let the request end in a refusal."""
        self.end = "refused"
        self.do(
            "record_refusal",
            customer_id=client.id,
            category=category,
            reason=reason,
            related_record=record,
            summary=summary,
        )

    def escalate(
        self, client: Client, category: str, team: str, record: str, summary: str, *, priority: str = "normal"
    ) -> None:
        """Let the request end in an escalation."""
        self.end = "escalated"
        self.do(
            "escalate",
            customer_id=client.id,
            category=category,
            team=team,
            priority=priority,
            related_record=record,
            summary=summary,
        )

    def replace(self, client: Client, card: Row, category: str) -> None:
        """Replace a card as the policy's section on cards says."""
        moved = client.row["address_changed_on"]
        if moved and (self.world.today - date.fromisoformat(moved)).days <= RULES.address_quiet_days:
            why = "The address was changed days ago, so no card was sent."
            self.escalate(client, category, "card_security", card["card_id"], why, priority="high")
        else:
            delivery = "express" if client.row["tier"] == "premium" else "standard"
            self.do("order_replacement_card", card_id=card["card_id"], delivery=delivery)

    @property
    def actions(self) -> tuple[GoldenAction, ...]:
        """The golden actions so far."""
        return tuple(self._actions)

    def task(
        self,
        openings: Sequence[str],
        *,
        goal: str,
        declines: Sequence[str] = (),
        others: Mapping[str, Sequence[GoldenAction]] | None = None,
        **said: str,
    ) -> Task:
        """Return the finished task.

        Args:
            openings: Opening messages to choose from; ``{who}`` is where the customer names themselves.
            goal: What the user wants, in one sentence.
            declines: What the user does not want beside it: keys of ``_DECLINED`` or phrases.
            others: Golden actions of further end states that are right, by name.
            said: What else the openings name.
        """
        self.world.others()
        ends = [EndState(self.end, self.actions)]
        ends += [EndState(name, tuple(actions)) for name, actions in (others or {}).items()]
        phrases = tuple(phrase for key in declines for phrase in _DECLINED.get(key, (key,)))
        return Task(
            id=f"neobank/{self.workflow}/{self.variation}",
            opening=self.rng.choice(openings).format(who=self._who, **said),
            user=UserBrief(goal=goal, facts=tuple(self._facts), declines=phrases),
            expectation=Expectation(tuple(ends), tuple(self._required)),
            world=self.world.to_dict(),
            tags=(self.workflow, _TAGS[self.end], *(("needs_fact",) if self._asked else ()), *self.tags),
            needs_asking=tuple(self._asked),
        )
