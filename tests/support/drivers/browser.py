"""A headless Chromium, driven over the DevTools protocol by a test's own event loop.

It reaches loopback only: every other name comes to nothing. What the page logs, what breaks its policy and what it asks
for is kept from the start.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
from controlplane.build import NotBuilt
from support.waits import MAX_WAIT_SECONDS

_POLL_SECONDS: Final = 0.02
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",  # CI is root in a container
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
)


# The middle of an element that has kept its place for a whole frame. A callback of requestAnimationFrame runs before
# the layout of its frame. Rows which that layout brings near the screen are laid out in the next frame. So it waits
# for three frames.
_STILL: Final = """async (selector) => {
  for (let last = null; ; ) {
    const found = document.querySelector(selector);
    found.scrollIntoView({ block: "center", behavior: "instant" });
    const { x, y, width, height } = found.getBoundingClientRect();
    const middle = { x: x + width / 2, y: y + height / 2 };
    const hit = found.contains(document.elementFromPoint(middle.x, middle.y));
    if (hit && last?.x === middle.x && last.y === middle.y) return middle;
    last = middle;
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  }
}"""


# The browser lays out a row (content-visibility: auto) in the first frame in which the row is near the screen. Before,
# the row has no innerText and its parts have no size. Rows far from the screen stay so: three frames suffice to know.
_LAID_OUT: Final = """async () => {
  const parts = [...document.querySelectorAll("tbody tr > :first-child")];
  const left = () => parts.some((part) => !part.checkVisibility({ contentVisibilityAuto: true }));
  for (let frame = 0; frame < 3 && left(); frame++) await new Promise(requestAnimationFrame);
}"""


class Size(NamedTuple):
    """The size of a window, in CSS pixels."""

    width: int
    height: int


WIDE: Final = Size(1440, 900)


class Tab:
    """One page of the browser. `said` has its errors and warnings; `asked` has the URLs that it requested."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self._socket = socket
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0

    async def listen(self) -> None:
        """Read messages until the browser ends."""
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._replies.pop(told["id"]).set_result(told)
            else:
                self._heard(told["method"], told["params"])

    def _heard(self, method: str, told: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(told["args"]))
        elif method in ("Log.entryAdded", "Audits.issueAdded"):
            self.said.append(json.dumps(told))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, and return the browser's answer."""
        self._number += 1
        reply = self._replies[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            told = await reply
        assert "error" not in told, (method, told["error"])
        result: dict[str, Any] = told["result"]
        return result

    async def value(self, script: str) -> Any:
        """Return the value of this expression on the page."""
        told = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def laid_out(self) -> None:
        """Wait until the browser has laid out the rows that are near the screen."""
        await self.value(f"({_LAID_OUT})()")

    async def text(self, selector: str) -> str:
        """The text of the first element of this selector."""
        return (await self.texts(selector))[0]

    async def texts(self, selector: str) -> list[str]:
        """The text of each element of this selector."""
        await self.laid_out()
        found: list[str] = await self.value(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)"
        )
        return found

    async def until(self, script: str, *, seconds: float = MAX_WAIT_SECONDS) -> Any:
        """Wait until this expression is true, and return its value."""
        try:
            async with asyncio.timeout(seconds):
                while not (found := await self.value(script)):  # noqa: ASYNC110 - it is the page that is asked
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise AssertionError(f"never became true: {script}; the page said {self.said}") from None
        return found

    async def until_text(self, selector: str, part: str) -> None:
        """Wait until the first element of this selector contains this text."""
        found = f"document.querySelector({json.dumps(selector)})?.innerText"
        await self.until(f"({found} ?? '').includes({json.dumps(part)})")

    async def open(self, url: str) -> None:
        """Open this URL."""
        await self.call("Page.navigate", url=url)

    async def press(self, key: str, code: int, *, shift: bool = False) -> None:
        """Press a key and release it."""
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        text = {"text": "\r"} if key == "Enter" else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **pressed, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **pressed)

    async def click(self, selector: str) -> None:
        """Click with the mouse on the middle of the first element of this selector, which is scrolled into view.

        Rows that come into view for the first time change the height of the list. So the click waits until the element
        has kept its place for a whole frame, and until the element is what the mouse would hit there.
        """
        box = await self.value(f"({_STILL})({json.dumps(selector)})")
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, **box, button="left", clickCount=1)

    async def size(self, size: Size) -> None:
        """Set the size of the window."""
        await self.call("Emulation.setDeviceMetricsOverride", **size._asdict(), deviceScaleFactor=1, mobile=False)

    async def media(self, **features: str) -> None:
        """Set media features of the reader's system, such as `prefers-color-scheme`."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        await self.call("Emulation.setEmulatedMedia", features=named)

    async def shoot(self, file: Path) -> Path:
        """Take a screenshot of the window."""
        told = await self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(told["data"]))  # noqa: ASYNC240 - a test's own
        return file


def program() -> str:
    """Return the path of Chromium."""
    for name in (os.environ.get("CHROMIUM", ""), *_NAMES):
        if found := shutil.which(name):
            return found
    raise NotBuilt("no Chromium here: apt-get install chromium, or name one in $CHROMIUM")


class Browser:
    """A running browser, by the port of its DevTools."""

    def __init__(self, port: str) -> None:
        self._url = f"http://127.0.0.1:{port}/json"

    @asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        """Open an empty page, and close it when the block ends."""
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{self._url}/new?about:blank") as answer:
                target = await answer.json()
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                listening = asyncio.create_task(tab.listen())
                for part in ("Page", "Runtime", "Log", "Network", "Audits", "Accessibility"):
                    await tab.call(f"{part}.enable")
                yield tab
                listening.cancel()
            async with session.get(f"{self._url}/close/{target['id']}") as answer:
                assert answer.status == HTTPStatus.OK


@contextmanager
def browsing(directory: Path) -> Iterator[Browser]:
    """Run a browser until the block ends. Its files go to `directory`."""
    profile = directory / "profile"
    said = profile / "DevToolsActivePort"
    words = [program(), *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    environment = {**os.environ, "HOME": str(directory), "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=quiet, stderr=quiet, env=environment) as process:  # noqa: S603 - the browser
        try:
            deadline = time.monotonic() + MAX_WAIT_SECONDS
            while not (said.exists() and "\n" in said.read_text()):
                assert process.poll() is None, f"the browser ended with {process.returncode}"
                assert time.monotonic() < deadline, f"the browser did not start in {MAX_WAIT_SECONDS} s"
                threading.Event().wait(_POLL_SECONDS)
            yield Browser(said.read_text().split("\n")[0])
        finally:
            process.kill()
