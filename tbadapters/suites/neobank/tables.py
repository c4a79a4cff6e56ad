"""How the bank's tables are compared when an attempt is graded."""

from collections.abc import Mapping

from tbadapters.core.state import TableRules

TABLE_RULES: Mapping[str, TableRules] = {
    "customers": TableRules(),
    "accounts": TableRules(
        natural_key=("customer_id", "kind"),
        references={"customer_id": "customers"},
        money=frozenset({"balance", "overdraft_limit"}),
    ),
    "cards": TableRules(
        natural_key=("replaces_card_id",),
        volatile=frozenset({"last4"}),
        references={"customer_id": "customers", "account_id": "accounts", "replaces_card_id": "cards"},
        money=frozenset({"spend_limit", "atm_limit"}),
    ),
    "transactions": TableRules(
        references={"account_id": "accounts", "card_id": "cards"},
        money=frozenset({"amount"}),
    ),
    "fees": TableRules(references={"account_id": "accounts", "card_id": "cards"}, money=frozenset({"amount"})),
    "payees": TableRules(references={"customer_id": "customers"}),
    "transfers": TableRules(
        natural_key=("from_account_id", "to_account_id", "payee_id"),
        free_text=frozenset({"reference"}),
        references={"from_account_id": "accounts", "to_account_id": "accounts", "payee_id": "payees"},
        money=frozenset({"amount"}),
    ),
    "standing_orders": TableRules(
        references={"account_id": "accounts", "payee_id": "payees"},
        money=frozenset({"amount"}),
    ),
    "disputes": TableRules(
        natural_key=("transaction_id",),
        free_text=frozenset({"statement"}),
        references={"transaction_id": "transactions"},
        money=frozenset({"amount", "provisional_credit"}),
    ),
    "identity_checks": TableRules(natural_key=("customer_id",), references={"customer_id": "customers"}),
    "fraud_holds": TableRules(
        natural_key=("account_id",),
        references={"account_id": "accounts", "transaction_id": "transactions"},
    ),
    "tickets": TableRules(
        natural_key=("customer_id", "related_record"),
        free_text=frozenset({"summary"}),
        references={"customer_id": "customers"},
    ),
    "ticket_notes": TableRules(
        natural_key=("ticket_id",),
        free_text=frozenset({"body"}),
        references={"ticket_id": "tickets"},
    ),
}
