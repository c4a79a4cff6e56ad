"""A real Chromium, driven over its own debugging pipe: what a reader of the page sees and presses."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REQUIRED = "TBADAPTERS_BROWSER"  # "required": a test fails where it would be skipped for want of a browser
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and writes answers to descriptor 4, whatever the numbers are here.
LAUNCH = "import os, sys; [os.dup2(int(sys.argv[n]), n + 2) for n in (1, 2)]; os.execvp(sys.argv[3], sys.argv[3:])"
SPECIAL = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
           "Home": 36, "End": 35}  # fmt: skip

# What is out of sight has a guessed height until it is scrolled to (content-visibility): nothing stands still at once.
STILL = """(async () => {
  const node = document.querySelector(SELECTOR);
  for (let before = "";;) {
    node.scrollIntoView({ block: "center" });
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const { x, y, width, height } = node.getBoundingClientRect(), now = `${x} ${y}`;
    if (now === before && node.contains(document.elementFromPoint(x + width / 2, y + height / 2))) return [x + width / 2, y + height / 2];
    before = now;
  }
})()"""


def chromium_path() -> str | None:
    """Return where a Chromium is installed, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A running Chromium with one page."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers, self._buffer, self._number = commands, answers, b"", 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False, hash_: str = "") -> float:
        """Open a file in a fresh page and return the seconds until it was loaded and drawn."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.complaints, self.requests = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.resize(width, height)
        begin = time.monotonic()
        self.send("Page.navigate", url=path.resolve().as_uri() + hash_)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'", seconds=60)
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return time.monotonic() - begin

    def resize(self, width: int, height: int) -> None:
        """Show the page at a size; a narrow one is a phone's."""
        phone = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, mobile=phone, deviceScaleFactor=1 + phone
        )

    def run(self, script: str) -> Any:
        """Return what a JavaScript expression comes to; a promise is awaited."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, script: str, *, seconds: float = 30) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"

    def press(self, *keys: str) -> None:
        """Press keys one after the other; more than one character that names no key is typed."""
        for key in keys:
            code = SPECIAL.get(key)
            if code is None and len(key) > 1:
                self.press(*key)
                continue
            text = {"Enter": "\r"}.get(key, "" if code else key)
            what = {"key": key, "windowsVirtualKeyCode": code or ord(key.upper()), "text": text}
            self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **what)
            self.send("Input.dispatchKeyEvent", type="keyUp", **what)

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that a selector finds, once it is in sight and lies still."""
        x, y = self.run(STILL.replace("SELECTOR", json.dumps(selector)))
        where = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, **where)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save what is seen, or the whole page, as PNG."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command of the DevTools protocol and return its answer."""
        self._number += 1
        session = {"sessionId": self._session} if self._session and not method.startswith("Target.") else {}
        message = {"id": self._number, "method": method, "params": parameters, **session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def _note(self, event: Mapping[str, Any]) -> None:
        """Keep what a reader would never see: complaints of the console, and requests beside the page itself."""
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(parameters))
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], 60)
            part = os.read(self._answers, 1 << 20) if ready else b""
            assert part, "Chromium does not answer"
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a Chromium with a profile of its own, and end it."""
    path = chromium_path()
    assert path is not None
    theirs, commands = os.pipe()
    answers, their_answers = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = (sys.executable, "-c", LAUNCH, str(theirs), str(their_answers), path, *FLAGS)
        process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}"],
            pass_fds=(theirs, their_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(their_answers)
        try:
            browser = Browser(commands, answers)
            yield browser
            browser.send("Browser.close")
        finally:
            os.close(commands)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(answers)
