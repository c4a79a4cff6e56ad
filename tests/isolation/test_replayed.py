"""What another process's requests are told to this one's hooks."""

from contextlib import suppress

import pytest

from tbadapters.core.errors import AgentFault
from tbadapters.core.transport import ProviderFaults, TransportHook, observe_transport
from tbadapters.isolation.replayed import Replay
from tbadapters.isolation.wire import Seen

BODY = '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
URL = "https://api.example:8443/v1/chat/completions"


def seen(event, number=0, **what):
    return Seen(type="seen", id=number, event=event, **what)


def asks(number=0, **what):
    return seen("request", number, **{"method": "POST", "url": URL, "body": BODY} | what)


class Told(TransportHook):
    """Keeps what it is told, and holds as often as it is asked to."""

    reads_answers = True

    def __init__(self, holds=0):
        self.events, self.holds = [], holds

    def may_hold(self):
        return self.holds > 0

    def hold(self, request):
        self.holds -= 1
        return 0.001 if self.holds >= 0 else 0.0

    def request(self, request):
        self.events.append(("request", request.url.host, request.url.port, request.url.path, request.content))

    def response(self, request, status, headers):
        self.events.append(("response", status, dict(headers)))

    def ended(self, request, status, body):
        self.events.append(("ended", status, body))

    def failed(self, request, error):
        self.events.append(("failed", [base.__name__ for base in type(error).__mro__][:2]))


def test_hooks_hear_of_a_request_as_if_it_had_been_made_here():
    """Address, body, status, headers and answer of a request come to the hooks in their order."""
    hook, replay = Told(), Replay()
    with observe_transport(hook):
        replay.tell(asks())
        replay.tell(seen("response", status=429, headers={"retry-after": "3"}))
        replay.tell(seen("ended", status=429, body="no"))
    assert hook.events == [
        ("request", "api.example", 8443, "/v1/chat/completions", BODY.encode()),
        ("response", 429, {"retry-after": "3"}),
        ("ended", 429, b"no"),
    ]


def test_errors_keep_the_names_by_which_they_are_known():
    """A failed request comes with an exception whose bases have the original's names."""
    hook, replay = Told(), Replay()
    with observe_transport(hook):
        replay.tell(asks())
        replay.tell(seen("failed", error="ReadTimeout,TimeoutException,TransportError,Exception,object", body="slow"))
    assert hook.events[1] == ("failed", ["ReadTimeout", "TimeoutException"])


def test_what_is_under_way_when_the_process_ends_was_cancelled():
    """Hooks hear of the end of every request, also of those whose process was ended; of each once."""
    hook, replay = Told(), Replay()
    with observe_transport(hook):
        for number in range(3):
            replay.tell(asks(number))
        replay.close()
        replay.close()
    assert hook.events[3:] == [("failed", ["CancelledError", "BaseException"])] * 3


async def test_a_request_waits_until_every_hook_lets_it_go():
    """A request is held as long as a hook says, and its process is told then."""
    hook, replay, gone = Told(holds=3), Replay(), []

    async def go():
        gone.append(hook.holds)

    with observe_transport(hook):
        assert replay.holds()
        await replay.held(seen("hold", url=URL, method="POST"), go)
        replay.tell(asks())
    assert gone == [-1]
    assert hook.events[0][4] == BODY.encode()


@pytest.mark.parametrize("body", ["[" * 10_000, '{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}"])
def test_a_body_that_is_made_to_be_read_for_ever(body):
    """A nested body harms nobody but its agent."""
    replay, faults = Replay(), ProviderFaults()
    with faults.observe():
        with suppress(AgentFault):
            replay.tell(asks(body=body))
            replay.tell(seen("response", status=429))
        replay.close()
    assert faults.unrecovered() is None or faults.unrecovered().code == "rate_limit"


def test_no_more_than_so_many_at_once():
    """Requests that never end are refused at a thousand."""
    replay = Replay()
    for number in range(1000):
        replay.tell(asks(number))
    with pytest.raises(AgentFault, match="1000"):
        replay.tell(asks(1000))


def test_cancelled_requests_are_nobodys_fault():
    """What was under way when its process was ended leaves no fault of the provider's, but the time that it waited."""
    replay, faults = Replay(), ProviderFaults()
    with faults.observe():
        replay.tell(asks())
        replay.close()
    assert faults.seen == ()
    assert faults.waiting_seconds() > 0
