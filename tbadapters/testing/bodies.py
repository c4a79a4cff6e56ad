"""HTTP answers of a scripted model server, the broken ones too."""

from __future__ import annotations

import json
from collections.abc import Sequence

import anyio
from starlette.types import Receive, Scope, Send


class Body:
    """An HTTP answer in pieces; ``cut`` ends the connection after half of it, ``stall`` seconds of silence before that.

    Args:
        pieces: The body's pieces, each sent by itself.
        status: The HTTP status.
        stream: Whether it is a stream of server-sent events.
        headers: Further headers.
        cut: Whether to end the connection in the middle of the body.
        stall: Seconds to keep silent before anything is sent; None: none.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        status: int = 200,
        stream: bool = False,
        headers: Sequence[tuple[str, str]] = (),
        cut: bool = False,
        stall: float | None = None,
    ) -> None:
        self._pieces = pieces
        self._status = status
        self._stream = stream
        self._headers = headers
        self._cut = cut
        self._stall = stall

    @classmethod
    def json(
        cls, data: object, status: int = 200, headers: Sequence[tuple[str, str]] = (), *, cut: bool = False
    ) -> Body:
        """Return a JSON answer."""
        return cls([json.dumps(data, separators=(",", ":")).encode()], status=status, headers=headers, cut=cut)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the ASGI signature
        """Send the answer, as an ASGI application."""
        if self._stall is not None:
            await anyio.sleep(self._stall)  # the server's end cancels it
        await send({"type": "http.response.start", "status": self._status, "headers": self._all_headers()})
        if self._cut:  # to return before the body is complete makes uvicorn close the connection
            await self._send_half(send)
            return
        last = len(self._pieces) - 1
        for place, piece in enumerate(self._pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": place < last})

    async def _send_half(self, send: Send) -> None:
        if len(self._pieces) > 1:
            half = b"".join(self._pieces[: len(self._pieces) // 2])
        else:
            half = self._pieces[0][: len(self._pieces[0]) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})

    def _all_headers(self) -> list[tuple[bytes, bytes]]:
        if self._stream:
            own = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")]
        else:
            own = [("content-type", "application/json"), ("content-length", str(sum(map(len, self._pieces))))]
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in (*own, *self._headers)]
