"""Keys and passwords reach nothing that is recorded, logged or said."""

import io
import json
import logging

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbadapters import evaluate
from tbadapters.core import redaction
from tbadapters.core.errors import AccessFault, AgentFault, describe
from tbadapters.core.logs import get_logger
from tbadapters.core.redaction import REDACTED, learn_keys, redacted, redacted_data

KEYS = [
    "sk-proj-4f9aBcD0eFgHiJkLmNoPqRsTuVwXyZ",
    "sk-ant-api03-4f9aBcD0eFgHiJkLmNoPqRsTuV_wXyZ-AA",
    "sk-or-v1-0123456789abcdef0123456789abcdef",
    "AIza" + "SyB4f9aBcD0eFgHiJkLmNoPqRsTuVwXyZ12",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_4f9aBcD0eFgHiJkLmNoPqRsTuVwXyZ123456",
    "xoxb-123456789012-abcdefABCDEF",
    "hf_4f9aBcDeFgHiJkLmNoPqRsTuVwXyZ",
    "gsk_4f9aBcD0eFgHiJkLmNoPqRsTuVwXyZ12",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
]
NAMED = [
    "Authorization: Bearer abcdef0123456789xyz",
    '{"x-api-key": "abcdef0123456789xyz"}',
    '{\\"api_key\\": \\"abcdef0123456789xyz\\"}',
    "OPENAI_API_KEY=abcdef0123456789xyz",
    "https://me:abcdef0123456789xyz@proxy.example/v1",
    "api-key=abcdef0123456789xyz&x=1",
]
PLANTED = 'Zq7!planted value"9'  # of no known shape


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Forget what was learned, before and after."""
    monkeypatch.setattr(redaction, "_learned", {})


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:10])
def test_shapes_of_keys(key):
    """A text of the shape of a key is redacted, and what stands around it stays."""
    assert redacted(f"the key ({key}), it says") == f"the key ({REDACTED}), it says"


@pytest.mark.parametrize("text", NAMED)
def test_what_is_named_like_a_key(text):
    """What follows the name of a header, a variable or a field of a key is redacted, whatever its shape."""
    assert "abcdef0123456789xyz" not in redacted(text)
    assert REDACTED in redacted(text)


@pytest.mark.parametrize("name", ["MY_API_KEY", "my_token", "CLIENT_SECRET", "DB_PASSWORD"])
def test_values_of_the_environment(monkeypatch, name):
    """The value of a variable that is named like a key is redacted, plain and as JSON writes it."""
    monkeypatch.setenv(name, PLANTED)
    for text in (f"it is {PLANTED}.", json.dumps({"said": PLANTED})):
        assert REDACTED in redacted(text)
        assert "planted value" not in redacted(text)


def test_short_values_of_the_environment_stay(monkeypatch):
    """A value that is too short for a key takes no word out of a text."""
    monkeypatch.setenv("SORT_KEY", "card")
    assert redacted("the card is frozen") == "the card is frozen"


@pytest.mark.parametrize(("header", "value"), [("authorization", "Bearer {}"), ("x-api-key", "{}"), ("api-key", "{}")])
def test_keys_in_headers(header, value):
    """A key that a model request carried is redacted from then on, whatever its shape."""
    key = "plantedkeyofnoshape"
    learn_keys(httpx2.Headers({header: value.format(key)}))
    assert redacted(f"Incorrect key {key} given") == f"Incorrect key {REDACTED} given"


@pytest.mark.parametrize(
    "text",
    [
        "Your ticket T-12 is on hold; the task-2024-approval is done.",
        "The key is under the mat, the token of thanks is $25.00, https://example.com/a@b",
        "card CARD-9001, IBAN DE89 3704 0044 0532 0130 00, e-mail a.b@example.com",
        "Ask-me-anything-2024-edition and desk-0123456789-abcdefgh",
        "password: none was set",
    ],
)
def test_ordinary_text_stays(text):
    """What is no key is left as it is."""
    assert redacted(text) == text


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=5), x),
    )
)
def test_data_without_keys_is_the_same(value):
    """JSON-like data without a key in it comes out as it went in."""
    assert redacted_data(value) == value


def test_data_is_redacted_at_any_depth():
    """Values and keys of nested data are redacted; the plain words by which data is read are not."""
    data = {"text": [{"a": (f"x {KEYS[0]}",)}], KEYS[1]: 1}
    assert redacted_data(data) == {"text": [{"a": [f"x {REDACTED}"]}], REDACTED: 1}


def test_faults_and_descriptions():
    """No fault and no description of an exception holds a key."""
    assert KEYS[0] not in str(AgentFault(f"bad {KEYS[0]}"))
    assert KEYS[0] not in describe(ValueError(f"bad {KEYS[0]}"))


def test_logs():
    """No log line holds a key, whichever value brings it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("tbadapters.test_redaction")
    logger.addHandler(handler)
    try:
        get_logger("tbadapters.test_redaction").warning("failed", error=f"bad {KEYS[0]}", data={"k": [KEYS[1]]})
    finally:
        logger.removeHandler(handler)
    assert "failed" in stream.getvalue()
    assert not [key for key in KEYS if key in stream.getvalue()]


async def test_nothing_in_a_run_folder_holds_a_key(desk, tmp_path, monkeypatch):
    """Keys in the agent's name, answers, arguments, notes and exceptions are in no file of the run and no figure."""
    monkeypatch.setenv("PLANTED_SECRET", PLANTED)
    planted = [*KEYS[:4], PLANTED]

    async def agent(message, ctx):
        if ctx.history:
            raise ValueError(" ".join(planted))
        for key in planted:
            with pytest.raises(Exception, match="no tool"):
                await ctx.call(key, note=key, **{key: [key]})
        await ctx.call("book_call", ticket_id="T-1", day=f"day {PLANTED} {KEYS[0]}")
        ctx.record_usage(KEYS[1])
        return " ".join(planted) + "?"

    agent.__name__ = f"agent {KEYS[0]}"
    result = await evaluate(agent, suite=desk, trials=2, out=tmp_path, progress="off")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"manifest.json", "run.db", "report.html", "results.json", "junit.xml"}
    assert _holding(files, planted) == []
    assert not [key for key in planted if key in str(tmp_path / next(tmp_path.iterdir()).name) or key in str(result)]
    assert REDACTED in result.records[0].fault.message
    assert result.records[0].tool_calls[0].name == REDACTED
    assert result.by_task["desk/hold/1"].rate == 0.0


async def test_a_stopped_run_holds_no_key(desk, tmp_path):
    """The sentence by which a provider refuses a key, which quotes it, comes without it: in the error, in the folder."""

    async def agent(message, ctx):
        raise AccessFault(f"Incorrect API key provided: {KEYS[0]}", code="authentication")

    with pytest.raises(Exception, match="Incorrect API key provided") as caught:
        await evaluate(agent, suite=desk, trials=1, out=tmp_path, progress="off")
    assert KEYS[0] not in str(caught.value)
    assert _holding([path for path in tmp_path.rglob("*") if path.is_file()], KEYS[:1]) == []


def _holding(files, keys):
    return [(path.name, key) for path in files for key in keys if key.encode() in path.read_bytes()]
