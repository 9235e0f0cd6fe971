"""`make bench BENCH=page`: the page of a large fleet: its first paint, an update, and what both take of the server.

The server, the scripted API server behind it and the driver of the browser are one process; headless Chromium is on the
same machine. README.md beside this file has the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from support.drivers.browser import WIDE, Tab, browsing  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.drivers.paging import Object, Paged, paged, vm  # noqa: E402
from support.objects.fleets import LATEST, served  # noqa: E402

from webhook.page.feed import Cursor  # noqa: E402


class Plan(NamedTuple):
    """How many of each."""

    vms: int
    nodes: int
    apart: int
    rounds: int


FULL: Final = Plan(vms=5000, nodes=200, apart=40, rounds=5)
QUICK: Final = Plan(vms=60, nodes=5, apart=3, rounds=1)

# When the first row was on the screen, and the longest that the page kept the reader waiting since.
_WATCH: Final = """
  globalThis.longest = 0;
  new PerformanceObserver((seen) => {
    for (const each of seen.getEntries()) longest = Math.max(longest, each.duration);
  }).observe({ type: "longtask" });
  const look = () => requestAnimationFrame(() => {
    if (document.querySelector("#rows tr")) requestAnimationFrame(() => (globalThis.shown = performance.now()));
    else look();
  });
  look();
"""


# Scrolls from the top for 2 s, 120 px a frame, and returns the longest frame, and how many of them took over 50 ms.
_SCROLL: Final = """
  new Promise((done) => {
    let last = performance.now(), longest = 0, slow = 0;
    const end = last + 2000;
    scrollTo(0, 0);
    const step = (now) => {
      longest = Math.max(longest, now - last);
      slow += now - last > 50;
      last = now;
      scrollBy(0, 120);
      if (now < end) requestAnimationFrame(step); else done([longest, slow]);
    };
    requestAnimationFrame((now) => { last = now; requestAnimationFrame(step); });
  })
"""
_MORE: Final = "for (let n = 0; n < 10; n++) document.getElementById('more').click()"


def fleet(plan: Plan) -> list[Object]:
    """VMs spread over nodes; the first ones are apart."""
    objects = []
    for number in range(plan.vms):
        node = f"node-{number % plan.nodes:03}"
        other = f"node-{(number * 7 + 13) % plan.nodes:03}" if number < plan.apart else node
        objects += vm(f"vm-{number:05}", node, other)
    return objects


class Stalls:
    """How long others had to wait for the event loop, at most."""

    def __init__(self) -> None:
        self.longest = 0.0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """While this is open."""
        task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            await asyncio.sleep(0)
            task.cancel()

    async def _tick(self) -> None:
        before = perf_counter()
        while True:
            await asyncio.sleep(0)
            now = perf_counter()
            self.longest, before = max(self.longest, now - before), now


async def bodies(page: Paged, rounds: int) -> list[tuple[str, float]]:
    """What the server pays for a page without a cursor, and for a page that lacks one VM."""
    whole, stalls, one = [], [], []
    for number in range(rounds):
        page.feed._whole = None  # or the second within the second is free
        stall = Stalls()
        async with stall.watched():
            seconds, size = await timed(page.feed.body(None))
        whole.append(seconds)
        stalls.append(stall.longest)
        cursor = Cursor(page.feed._process, page.fleet.snapshot.version, page.decisions.total)
        await page.put(served("vm-00050-root", f"node-00{number % 4}", LATEST)[1])
        one.append(await timed(page.feed.body(cursor)))
    return [
        ("all VMs as a body, median, ms", statistics.median(whole) * 1e3),
        ("the same, KiB", size / 1024),
        ("its longest stall of the event loop, median, ms", statistics.median(stalls) * 1e3),
        ("one VM's change as a body, median, ms", statistics.median(seconds for seconds, _ in one) * 1e3),
        ("the same, KiB", one[-1][1] / 1024),
    ]


async def timed(making: Awaitable[bytes]) -> tuple[float, int]:
    """(seconds, bytes)."""
    began = perf_counter()
    body = await making
    return perf_counter() - began, len(body)


async def shown(page: Paged, tab: Tab, rounds: int) -> list[tuple[str, float]]:
    """What a reader waits for."""
    paints, rows, loads, updates, tasks = [], [], [], [], []
    await tab.size(WIDE)
    await tab.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
    for number in range(rounds):
        await tab.open(page.url)
        rows.append(await tab.until("globalThis.shown"))
        paints.append(await tab.value("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        loads.append(await tab.value("longest"))
        await tab.value("new Promise((r) => setTimeout(r, 1500)).then(() => (longest = 0))")
        name, node = f"vm-{number + 1000:05}" if rounds > 1 else "vm-00050", "node-050"
        began = perf_counter()
        await page.put(served(f"{name}-root", node, LATEST)[1])
        began = perf_counter()
        await tab.until(
            f"[...document.querySelectorAll('#rows tr.apart th')].some((e) => e.textContent.includes('{name}'))"
        )
        updates.append(perf_counter() - began)
        await tab.value("new Promise((r) => setTimeout(r, 300))")
        tasks.append(await tab.value("longest"))
    top = await tab.value("scrollTo(0, 0), document.getElementById('rows').getBoundingClientRect().top")
    first = await tab.value(_SCROLL)
    began = perf_counter()
    await tab.value(_MORE)
    more = perf_counter() - began
    many = await tab.value(_SCROLL)
    assert tab.said == [], tab.said
    return [
        ("the list begins below the top of the page, px", top),
        ("scrolling for 2 s: the longest frame, ms", first[0]),
        ("the same: frames over 50 ms", first[1]),
        ("1,000 more rows by the button, ms", more * 1e3),
        ("scrolling over them for 2 s: the longest frame, ms", many[0]),
        ("the same: frames over 50 ms", many[1]),
        ("first contentful paint, median, ms", statistics.median(paints)),
        ("all VMs there: the first rows on the screen, median, ms", statistics.median(rows)),
        ("the page's longest task until then, median, ms", statistics.median(loads)),
        ("an update: from the fleet's pass to the page, median, ms", statistics.median(updates) * 1e3),
        ("the page's longest task for it (0: under 50), median, ms", statistics.median(tasks)),
    ]


async def measured(directory: Path, plan: Plan) -> list[tuple[str, float]]:
    """All of it."""
    with browsing(directory) as browser:
        async with paged(directory, fleet(plan)) as page, browser.tab() as tab:
            gc.collect()
            gc.freeze()  # the scripted API server's objects are not there where this is served
            return [*await bodies(page, plan.rounds), *await shown(page, tab, plan.rounds)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    with TemporaryDirectory() as name:
        figures = asyncio.run(measured(Path(name), plan))
    sys.stdout.write(f"{plan.vms} VMs on {plan.nodes} nodes, {plan.apart} apart, {plan.rounds} rounds\n\n")
    for title, value in figures:
        sys.stdout.write(f"{title:66}{value:10.2f}\n")


if __name__ == "__main__":
    main()
