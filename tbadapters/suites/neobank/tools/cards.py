"""Tools: cards."""

from typing import Annotated, Any

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import (
    BlockReason,
    CardId,
    CustomerId,
    DailyAmount,
    Delivery,
    FreezeBy,
)
from tbadapters.suites.neobank.tools.ledger import money, today

_VALID_YEARS = 4
_REPLACEABLE = ("active", "frozen", "blocked", "expired")


@reads
async def list_cards(db: Records, customer_id: CustomerId) -> list[dict[str, Any]]:
    """List a customer's cards with last four digits, status, limits, use abroad and expiry."""
    db.get("customers", customer_id)
    return db.all("SELECT * FROM cards WHERE customer_id = ? ORDER BY card_id", customer_id)


@writes
async def freeze_card(db: Records, card_id: CardId, asked_by: FreezeBy) -> dict[str, Any]:
    """Freeze an active card for the time being; it can be unfrozen."""
    card = db.get("cards", card_id)
    if card["status"] != "active":
        raise ToolError(f"The card {card_id} is {card['status']}; only an active card can be frozen.")
    db.update("cards", card_id, status="frozen", frozen_by=asked_by)
    return {"card_id": card_id, "status": "frozen"}


@writes
async def unfreeze_card(db: Records, card_id: CardId) -> dict[str, Any]:
    """Make a frozen card work again."""
    card = db.get("cards", card_id)
    if card["status"] != "frozen":
        raise ToolError(f"The card {card_id} is {card['status']}; only a frozen card can be unfrozen.")
    db.update("cards", card_id, status="active", frozen_by=None)
    return {"card_id": card_id, "status": "active"}


@writes
async def block_card(db: Records, card_id: CardId, reason: BlockReason) -> dict[str, Any]:
    """Block a card for good. This can't be undone; order a replacement separately."""
    card = db.get("cards", card_id)
    if card["status"] == "blocked":
        raise ToolError(f"The card {card_id} is blocked already ({card['block_reason']}).")
    db.update("cards", card_id, status="blocked", frozen_by=None, block_reason=reason)
    return {"card_id": card_id, "status": "blocked", "block_reason": reason}


@writes
async def order_replacement_card(db: Records, card_id: CardId, delivery: Delivery) -> dict[str, Any]:
    """Order a new card in place of this one, with the same settings, sent to the customer's address."""
    card = db.get("cards", card_id)
    if card["status"] not in _REPLACEABLE:
        raise ToolError(f"The card {card_id} is {card['status']} and can't be replaced.")
    if db.one("SELECT 1 FROM cards WHERE replaces_card_id = ?", card_id):
        raise ToolError(f"A replacement for the card {card_id} was ordered already.")
    new_id = db.new_id("CRD")
    day = today(db)
    new = db.insert(
        "cards",
        **{
            name: card[name] for name in ("customer_id", "account_id", "kind", "spend_limit", "atm_limit", "abroad_use")
        },
        card_id=new_id,
        last4=new_id[-4:],
        status="shipped",
        expires_on=f"{int(day[:4]) + _VALID_YEARS}-{day[5:7]}-28",
        replaces_card_id=card_id,
        delivery=delivery,
    )
    return {name: new[name] for name in ("card_id", "replaces_card_id", "status", "delivery", "expires_on")}


@writes
async def set_spend_limit(db: Records, card_id: CardId, amount: DailyAmount) -> dict[str, Any]:
    """Set how much can be spent with a card a day."""
    return _set_limit(db, card_id, "spend_limit", amount)


@writes
async def set_atm_limit(db: Records, card_id: CardId, amount: DailyAmount) -> dict[str, Any]:
    """Set how much cash can be withdrawn with a card a day."""
    return _set_limit(db, card_id, "atm_limit", amount)


@writes
async def set_abroad_use(
    db: Records, card_id: CardId, enabled: Annotated[bool, Field(description="Whether the card works abroad.")]
) -> dict[str, Any]:
    """Switch the use of a card abroad, and of its replacement if one was ordered, on or off."""
    card = _usable(db, card_id)
    if bool(card["abroad_use"]) == enabled:
        raise ToolError(f"Use abroad of the card {card_id} is {'on' if enabled else 'off'} already.")
    # A replacement that was ordered takes its card's settings over, whichever was done first.
    db.run("UPDATE cards SET abroad_use = ? WHERE ? IN (card_id, replaces_card_id)", int(enabled), card_id)
    return {"card_id": card_id, "abroad_use": enabled}


def _set_limit(db: Records, card_id: str, column: str, amount: float) -> dict[str, Any]:
    if _usable(db, card_id)[column] == money(amount):
        raise ToolError(f"The {column} of {card_id} already is {amount:.2f}.")
    db.update("cards", card_id, **{column: money(amount)})
    return {"card_id": card_id, column: money(amount)}


def _usable(db: Records, card_id: str) -> dict[str, Any]:
    card = db.get("cards", card_id)
    if card["status"] not in ("active", "frozen", "shipped"):
        raise ToolError(f"The card {card_id} is {card['status']}: its settings can't be changed.")
    return card
