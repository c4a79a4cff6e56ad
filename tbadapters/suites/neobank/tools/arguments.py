"""The types of the tools' arguments: what an agent reads about each, and what the schema allows."""

from typing import Annotated, Literal

from pydantic import Field

_DAY = r"^\d{4}-\d{2}-\d{2}$"

CustomerId = Annotated[str, Field(description="Customer number, such as CUS-48213.")]
AccountId = Annotated[str, Field(description="Account id, such as ACC-30517.")]
CardId = Annotated[str, Field(description="Card id, such as CRD-71120.")]
TransactionId = Annotated[str, Field(description="Transaction id, such as TXN-55012.")]
FeeId = Annotated[str, Field(description="Fee id, such as FEE-20981.")]
PayeeId = Annotated[str, Field(description="Payee id, such as PAY-61403.")]
TransferId = Annotated[str, Field(description="Transfer id, such as TRF-83344.")]
OrderId = Annotated[str, Field(description="Standing order id, such as STO-40231.")]
DisputeId = Annotated[str, Field(description="Dispute id, such as DSP-9001.")]
HoldId = Annotated[str, Field(description="Fraud hold id, such as HLD-27755.")]
TicketId = Annotated[str, Field(description="Ticket id, such as TKT-34410.")]
Amount = Annotated[float, Field(gt=0, description="Amount in euros, such as 42.50.")]
DailyAmount = Annotated[float, Field(ge=0, description="New limit a day in euros.")]
BirthDate = Annotated[str, Field(pattern=_DAY, description="Date of birth as the customer states it, YYYY-MM-DD.")]
Summary = Annotated[str, Field(min_length=1, description="What happened, in your own words.")]
RelatedRecord = Annotated[str, Field(description="Id of the record that the ticket is about, as the policy says.")]

Country = Annotated[str, Field(pattern=r"^[A-Z]{2}$", description="Two-letter country code, such as DE.")]
Delivery = Annotated[Literal["standard", "express"], Field(description="How the card is sent.")]
FreezeBy = Annotated[Literal["customer", "third_party"], Field(description="Who asks for it.")]
BlockReason = Annotated[Literal["lost", "stolen", "fraud"], Field(description="Why the card is blocked.")]
DisputeReason = Annotated[
    Literal["unrecognised", "not_received", "wrong_amount", "atm_shortfall"],
    Field(description="Why the transaction is disputed."),
]
WaiverReason = Annotated[Literal["courtesy", "charged_in_error"], Field(description="Why the fee is waived.")]
RecallReason = Annotated[
    Literal["wrong_payee", "wrong_amount", "duplicate"], Field(description="Why the money should come back.")
]
Category = Annotated[
    Literal["third_party", "cards", "disputes", "fees", "transfers", "fraud", "details", "accounts", "complaints"],
    Field(description="The word in brackets after the title of the policy's section."),
]
Team = Annotated[
    Literal["card_security", "disputes", "fraud", "payments", "compliance", "credit", "complaints"],
    Field(description="The team that takes over."),
]
Priority = Annotated[Literal["normal", "high", "urgent"], Field(description="How soon it must be looked at.")]
RefusalReason = Annotated[
    Literal[
        "above_allowance",
        "above_payment_limit",
        "above_tier_limit",
        "account_too_new",
        "below_minimum",
        "card_in_delivery",
        "card_not_recoverable",
        "changed_recently",
        "country_restricted",
        "dispute_closed",
        "fee_correct",
        "fee_not_waivable",
        "fee_too_high",
        "fee_too_old",
        "identity_not_confirmed",
        "insufficient_funds",
        "legal_order",
        "merchant_not_contacted",
        "new_payee_cap",
        "not_authorised",
        "not_recallable",
        "overdrawn",
        "recall_window_passed",
        "standing_order_active",
        "still_pending",
        "term_locked",
        "too_close_to_execution",
        "too_early",
        "too_many_accounts",
        "transfers_pending",
        "waivers_used",
        "window_passed",
    ],
    Field(description="The reason that the policy names."),
]
