"""How customers word things: dates, amounts, and the phrases by which an agent asks for them."""

from datetime import date

MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905  one line
)

ASKS_CARD = (
    "which card",
    "what card",
    "which of your cards",
    "which one of your cards",
    "which debit card",
    "last four",
    "last 4",
    "four digits",
    "4 digits",
    "card number",
    "card ending",
    "card details",
    "identify the card",
)
ASKS_PAYMENT = (
    "which payment",
    "which transaction",
    "which charge",
    "which purchase",
    "which order",
    "which one",
    "what payment",
    "what transaction",
    "what charge",
    "what purchase",
    "transaction id",
    "transaction details",
    "details of the transaction",
    "details of the payment",
    "details of the purchase",
    "merchant",
    "name of the shop",
    "date of the payment",
    "date of the transaction",
    "date and amount",
    "amount and date",
    "date and the amount",
    "amount and the date",
)
ASKS_BIRTH = (
    "date of birth",
    "birth date",
    "birthdate",
    "birthday",
    "dob",
    "were you born",
    "verify your identity",
    "confirm your identity",
    "identity check",
    "verify who you are",
)
ASKS_NUMBER = ("customer number", "customer id", "client number", "customer no", "your number with us")
ASKS_NAME = ("your name", "full name", "who am i speaking", "who i am speaking")


def long_day(day: str) -> str:
    """Return an ISO date as ``3 March 2026``."""
    when = date.fromisoformat(day)
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


def short_day(day: str) -> str:
    """Return an ISO date as ``3 March``."""
    return long_day(day).rsplit(" ", 1)[0]


def day_forms(day: str) -> tuple[str, ...]:
    """Return the forms in which an agent may name a date."""
    when = date.fromisoformat(day)
    month = MONTHS[when.month - 1]
    suffix = "th" if 10 <= when.day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(when.day % 10, "th")
    named = [f"{when.day} {name}" for name in (month, month[:3])] + [
        f"{name} {when.day}" for name in (month, month[:3])
    ]
    ordinal = [f"{when.day}{suffix} {month}", f"{when.day}{suffix} of {month}", f"{month} {when.day}{suffix}"]
    return (long_day(day), day, *named, *ordinal, when.strftime("%d.%m.%Y"), when.strftime("%d/%m/%Y"))


def euros(amount: float) -> str:
    """Return an amount as a customer says it: ``1250 euros``, ``23.40 euros``."""
    return f"{amount:.0f} euros" if amount == int(amount) else f"{amount:.2f} euros"
