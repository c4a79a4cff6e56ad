"""The bank's rules as numbers: the one place where a threshold of the policy is written down.

``policy.md`` names each of them in braces, so what the agent reads and what decides a task can't differ.
"""

from dataclasses import asdict, dataclass
from importlib.resources import files

_POLICY = files(__package__).joinpath("policy.md").read_text(encoding="utf-8")
TIERS = ("standard", "plus", "premium")


@dataclass(frozen=True, slots=True)
class Rules:
    """Thresholds of the policy: amounts in euros, spans in calendar days (a limit itself is still allowed).

    Attributes:
        address_quiet_days: So long after a change of address no card is sent out.
        new_account_days: Accounts younger than this get no higher card limits.
        spend_max: Highest daily spend limit by tier.
        atm_max: Highest daily cash limit by tier.
        restricted_countries: Where cards are never enabled.
        dispute_days: How old a disputed card payment may be.
        quick_credit_max: Unrecognised payments up to this are credited provisionally.
        delivery_days: A merchant has this long to deliver before a dispute.
        difference_min: Smaller wrong amounts are not disputed.
        difference_max: Larger wrong amounts go to the disputes team.
        atm_days: How old a disputed withdrawal may be.
        atm_credit_max: Shortfalls at our own machines up to this are credited provisionally.
        debit_return_days: Direct debits are returned without a reason for so long.
        debit_unauthorised_days: And for so long where the customer never authorised them.
        fee_max: Courtesy waivers only up to this amount.
        fee_days: Courtesy waivers only for fees so recent.
        waiver_year_days: The span over which courtesy waivers are counted.
        waivers: Courtesy waivers in that span by tier.
        recall_days: How old a transfer may be to be recalled.
        payment_max: Largest payment to a payee by tier.
        new_payee_days: So long after being added a payee is new.
        new_payee_max: Largest payment to a new payee.
        order_notice_days: A standing order due within so many days is left alone.
        order_check_above: A standing order raised above this needs an identity check.
        hold_release_max: Holds on larger payments are released by the fraud team only.
        phone_quiet_days: So long after a change of phone number there is no other.
        pending_transfer_max: A phone change while more than this is scheduled to leave goes to the fraud team.
        residence_countries: Where customers may live.
        overdraft_max: The highest arranged overdraft.
        overdraft_months: Salaries of so many days are averaged over three months.
        overdraft_share: The arranged overdraft as a percentage of the average monthly salary.
        clean_days: A returned-payment fee within so many days sends the overdraft request to the credit team.
        savings_max: How many open savings accounts a customer may have.
        answer_days: The complaints team has this long to answer.
        overdue_days: So long after the complaint was opened it is urgent.
    """

    address_quiet_days: int = 14
    new_account_days: int = 90
    spend_max: tuple[int, int, int] = (1000, 2500, 5000)
    atm_max: tuple[int, int, int] = (300, 600, 1000)
    restricted_countries: tuple[str, ...] = ("Belarus", "Iran", "Myanmar", "North Korea", "Russia", "Syria")
    dispute_days: int = 120
    quick_credit_max: int = 100
    delivery_days: int = 15
    difference_min: int = 5
    difference_max: int = 500
    atm_days: int = 30
    atm_credit_max: int = 250
    debit_return_days: int = 56
    debit_unauthorised_days: int = 395
    fee_max: int = 25
    fee_days: int = 60
    waiver_year_days: int = 365
    waivers: tuple[int, int, int] = (1, 2, 3)
    recall_days: int = 10
    payment_max: tuple[int, int, int] = (2000, 4000, 8000)
    new_payee_days: int = 3
    new_payee_max: int = 500
    order_notice_days: int = 2
    order_check_above: int = 750
    hold_release_max: int = 1500
    phone_quiet_days: int = 28
    pending_transfer_max: int = 1200
    residence_countries: tuple[str, ...] = ("AT", "BE", "DE", "ES", "FR", "IE", "IT", "NL", "PT")
    overdraft_max: int = 1800
    overdraft_months: int = 92
    overdraft_share: int = 40
    clean_days: int = 180
    savings_max: int = 3
    answer_days: int = 21
    overdue_days: int = 35


RULES = Rules()


def by_tier(values: tuple[int, int, int], tier: str) -> int:
    """Return the value that holds for a customer's tier."""
    return values[TIERS.index(tier)]


def policy_text(rules: Rules = RULES) -> str:
    """Return what the agent is told: ``policy.md`` with the numbers of ``rules`` filled in."""
    words: dict[str, str] = {}
    for name, value in asdict(rules).items():
        if isinstance(value, tuple) and isinstance(value[0], int):
            words |= {f"{name}_{tier}": f"{number:,}" for tier, number in zip(TIERS, value, strict=True)}
        else:
            words[name] = ", ".join(value) if isinstance(value, tuple) else f"{value:,}"
    return _POLICY.format_map(words)
