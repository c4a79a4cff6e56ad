-- Tidewell Bank: the records of a digital bank, as its support desk sees them.
-- Amounts are euros with two decimals, dates are ISO 8601 (YYYY-MM-DD).

CREATE TABLE customers (
    customer_id        TEXT PRIMARY KEY,
    full_name          TEXT NOT NULL,
    date_of_birth      TEXT NOT NULL,
    email              TEXT NOT NULL UNIQUE,
    phone              TEXT NOT NULL,
    phone_changed_on   TEXT,
    street             TEXT NOT NULL,
    postcode           TEXT NOT NULL,
    city               TEXT NOT NULL,
    country            TEXT NOT NULL CHECK (length(country) = 2),
    address_changed_on TEXT,
    tier               TEXT NOT NULL CHECK (tier IN ('standard', 'plus', 'premium')),
    kyc_status         TEXT NOT NULL CHECK (kyc_status IN ('verified', 'expired')),
    authorised_person  TEXT,
    joined_on          TEXT NOT NULL
) STRICT;

CREATE TABLE accounts (
    account_id      TEXT PRIMARY KEY,
    customer_id     TEXT NOT NULL REFERENCES customers (customer_id),
    kind            TEXT NOT NULL CHECK (kind IN ('current', 'savings', 'term_savings')),
    name            TEXT NOT NULL,
    balance         REAL NOT NULL,
    overdraft_limit REAL NOT NULL DEFAULT 0 CHECK (overdraft_limit >= 0),
    status          TEXT NOT NULL CHECK (status IN ('open', 'closed')),
    opened_on       TEXT NOT NULL,
    matures_on      TEXT,
    CHECK ((kind = 'term_savings') = (matures_on IS NOT NULL)),
    CHECK (kind = 'current' OR overdraft_limit = 0),
    CHECK (status = 'open' OR balance = 0)
) STRICT;

CREATE TABLE cards (
    card_id          TEXT PRIMARY KEY,
    customer_id      TEXT NOT NULL REFERENCES customers (customer_id),
    account_id       TEXT NOT NULL REFERENCES accounts (account_id),
    kind             TEXT NOT NULL CHECK (kind IN ('debit', 'virtual')),
    last4            TEXT NOT NULL CHECK (length(last4) = 4),
    status           TEXT NOT NULL CHECK (status IN ('active', 'frozen', 'blocked', 'expired', 'shipped')),
    frozen_by        TEXT CHECK (frozen_by IN ('customer', 'bank', 'third_party')),
    block_reason     TEXT CHECK (block_reason IN ('lost', 'stolen', 'fraud', 'account_closed')),
    spend_limit      REAL NOT NULL CHECK (spend_limit >= 0),
    atm_limit        REAL NOT NULL CHECK (atm_limit >= 0),
    abroad_use       INTEGER NOT NULL CHECK (abroad_use IN (0, 1)),
    expires_on       TEXT NOT NULL,
    replaces_card_id TEXT REFERENCES cards (card_id),
    delivery         TEXT CHECK (delivery IN ('standard', 'express')),
    CHECK ((status = 'frozen') = (frozen_by IS NOT NULL)),
    CHECK ((status = 'blocked') = (block_reason IS NOT NULL))
) STRICT;

CREATE TABLE transactions (
    transaction_id TEXT PRIMARY KEY,
    account_id     TEXT NOT NULL REFERENCES accounts (account_id),
    card_id        TEXT REFERENCES cards (card_id),
    kind           TEXT NOT NULL CHECK (kind IN ('card_payment', 'atm_withdrawal', 'direct_debit', 'incoming')),
    counterparty   TEXT NOT NULL,
    amount         REAL NOT NULL CHECK (amount > 0),
    posted_on      TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('pending', 'posted', 'returned')),
    CHECK ((kind IN ('card_payment', 'atm_withdrawal')) = (card_id IS NOT NULL))
) STRICT;

CREATE TABLE fees (
    fee_id        TEXT PRIMARY KEY,
    account_id    TEXT NOT NULL REFERENCES accounts (account_id),
    card_id       TEXT REFERENCES cards (card_id),
    kind          TEXT NOT NULL CHECK (kind IN ('overdraft', 'foreign_use', 'returned_payment', 'card_replacement', 'monthly')),
    amount        REAL NOT NULL CHECK (amount > 0),
    charged_on    TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('charged', 'waived')),
    waived_on     TEXT,
    waiver_reason TEXT CHECK (waiver_reason IN ('courtesy', 'charged_in_error')),
    CHECK ((status = 'waived') = (waived_on IS NOT NULL)),
    CHECK ((status = 'waived') = (waiver_reason IS NOT NULL)),
    CHECK ((kind = 'card_replacement') = (card_id IS NOT NULL))
) STRICT;

CREATE TABLE payees (
    payee_id    TEXT PRIMARY KEY,
    customer_id TEXT NOT NULL REFERENCES customers (customer_id),
    name        TEXT NOT NULL,
    iban        TEXT NOT NULL,
    added_on    TEXT NOT NULL,
    UNIQUE (customer_id, iban)
) STRICT;

CREATE TABLE transfers (
    transfer_id     TEXT PRIMARY KEY,
    from_account_id TEXT NOT NULL REFERENCES accounts (account_id),
    to_account_id   TEXT REFERENCES accounts (account_id),
    payee_id        TEXT REFERENCES payees (payee_id),
    amount          REAL NOT NULL CHECK (amount > 0),
    reference       TEXT NOT NULL DEFAULT '',
    status          TEXT NOT NULL
        CHECK (status IN ('scheduled', 'held', 'completed', 'cancelled', 'recall_requested')),
    execute_on      TEXT NOT NULL,
    recall_reason   TEXT CHECK (recall_reason IN ('wrong_payee', 'wrong_amount', 'duplicate')),
    CHECK ((to_account_id IS NULL) <> (payee_id IS NULL)),
    CHECK ((status = 'recall_requested') = (recall_reason IS NOT NULL))
) STRICT;

CREATE TABLE standing_orders (
    order_id   TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (account_id),
    payee_id   TEXT NOT NULL REFERENCES payees (payee_id),
    amount     REAL NOT NULL CHECK (amount > 0),
    next_on    TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('active', 'cancelled'))
) STRICT;

CREATE TABLE disputes (
    dispute_id         TEXT PRIMARY KEY,
    transaction_id     TEXT NOT NULL REFERENCES transactions (transaction_id),
    reason             TEXT NOT NULL CHECK (reason IN ('unrecognised', 'not_received', 'wrong_amount', 'atm_shortfall')),
    amount             REAL NOT NULL CHECK (amount > 0),
    statement          TEXT NOT NULL,
    status             TEXT NOT NULL CHECK (status IN ('open', 'withdrawn', 'won', 'lost')),
    provisional_credit REAL NOT NULL DEFAULT 0 CHECK (provisional_credit BETWEEN 0 AND amount),
    opened_on          TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX one_open_dispute ON disputes (transaction_id) WHERE status = 'open';

CREATE TABLE identity_checks (
    check_id     TEXT PRIMARY KEY,
    customer_id  TEXT NOT NULL REFERENCES customers (customer_id),
    stated_value TEXT NOT NULL,
    result       TEXT NOT NULL CHECK (result IN ('passed', 'failed')),
    checked_on   TEXT NOT NULL
) STRICT;

CREATE TABLE fraud_holds (
    hold_id        TEXT PRIMARY KEY,
    account_id     TEXT NOT NULL REFERENCES accounts (account_id),
    reason         TEXT NOT NULL CHECK (reason IN ('unusual_payment', 'account_takeover', 'legal_order')),
    transaction_id TEXT REFERENCES transactions (transaction_id),
    status         TEXT NOT NULL CHECK (status IN ('active', 'released')),
    placed_on      TEXT NOT NULL,
    CHECK ((reason = 'unusual_payment') = (transaction_id IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX one_active_hold ON fraud_holds (account_id) WHERE status = 'active';

CREATE TABLE tickets (
    ticket_id      TEXT PRIMARY KEY,
    customer_id    TEXT NOT NULL REFERENCES customers (customer_id),
    category       TEXT NOT NULL CHECK (category IN
        ('third_party', 'cards', 'disputes', 'fees', 'transfers', 'fraud', 'details', 'accounts', 'complaints')),
    status         TEXT NOT NULL CHECK (status IN ('open', 'closed')),
    resolution     TEXT NOT NULL CHECK (resolution IN ('refused', 'escalated', 'answered')),
    reason         TEXT,
    team           TEXT CHECK (team IN ('card_security', 'disputes', 'fraud', 'payments', 'compliance', 'credit', 'complaints')),
    priority       TEXT CHECK (priority IN ('normal', 'high', 'urgent')),
    related_record TEXT NOT NULL,
    summary        TEXT NOT NULL,
    opened_on      TEXT NOT NULL,
    CHECK ((resolution = 'refused') = (reason IS NOT NULL)),
    CHECK ((resolution = 'escalated') = (team IS NOT NULL)),
    CHECK ((team IS NULL) = (priority IS NULL))
) STRICT;

CREATE TABLE ticket_notes (
    note_id    TEXT PRIMARY KEY,
    ticket_id  TEXT NOT NULL REFERENCES tickets (ticket_id),
    body       TEXT NOT NULL,
    written_on TEXT NOT NULL
) STRICT;
