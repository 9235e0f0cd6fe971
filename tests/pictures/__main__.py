"""`make pictures`: the pictures of the page in docs/images, from a real `serve --manifests` in a real browser.

The cluster of 5,000 VMs takes two minutes to read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from pictures.vms import Plan, objects, pod_of, vms
from support.drivers import serving
from support.drivers.browser import Browser, Size, browsing
from support.drivers.http_calls import request
from support.drivers.serving import Client
from support.objects import builders

IMAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "images"
PLANS: Final[Mapping[int, Plan]] = {
    5: Plan(vms=5, nodes=4, apart=1, stuck=1),
    500: Plan(vms=500, nodes=20, apart=14, stuck=2),
    5000: Plan(vms=5000, nodes=200, apart=60, stuck=5),
}
_OPEN: Final = "document.querySelector('#rows .apart .opener').click()"
_SHOW_OPEN: Final = "document.querySelector('.open').scrollIntoView()"
_DECISIONS: Final = 6
_START_SECONDS: Final = 900  # 26 MB of JSON take 84 s to read on an idle machine


class Picture(NamedTuple):
    """One picture of the page."""

    name: str
    vms: int
    scheme: str
    size: Size
    first: str = ""  # what a reader does before


_SCREENS: Final = (("", Size(1400, 900), _OPEN), ("-phone", Size(390, 844), f"{_OPEN}; {_SHOW_OPEN}"))
PICTURES: Final = tuple(
    Picture(f"page-{count}-{scheme}{screen}", count, scheme, size, first if count == min(PLANS) else "")
    for count in PLANS
    for scheme in ("light", "dark")
    for screen, size, first in _SCREENS
)


async def take(browser: Browser, url: str, picture: Picture, file: Path) -> None:
    """Take one picture."""
    async with browser.tab() as tab:
        await tab.size(picture.size)
        await tab.media(prefers_color_scheme=picture.scheme, prefers_reduced_motion="reduce")
        await tab.open(url)
        await tab.until("document.querySelectorAll('#rows tr').length")
        await tab.value(picture.first or "0")
        await tab.value("new Promise((done) => setTimeout(done, 300))")
        assert tab.said == [], tab.said
        await tab.shoot(file)
    sys.stdout.write(f"{file.name}: {file.stat().st_size // 1024} KiB\n")  # noqa: ASYNC240 - nothing else runs


def decide(server: serving.Serving, pair: serving.Pair, plan: Plan) -> None:
    """Ask the webhook about the pods of some VMs, as an API server does, so that the page has decisions."""
    for vm in list(vms(plan))[plan.apart + plan.stuck : plan.vms][:_DECISIONS]:
        pod = pod_of(vm._replace(node=None), plan)
        pod["metadata"]["annotations"].pop(builders.WRITTEN, None)
        del pod["status"]
        with Client(server.port, pair.trust) as api_server:
            api_server.ask(request(json.dumps(builders.review(pod, namespace=vm.namespace)).encode()))


def pictures(directory: Path, browser: Browser, count: int, chosen: Sequence[Picture]) -> None:
    """Take the pictures of one cluster."""
    pair = serving.issue(directory)
    manifests = serving.write_cluster(directory / f"{count}.json", list(objects(PLANS[count])))
    words = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
    with serving.serving(*words, log=directory / f"{count}.log", seconds=_START_SECONDS) as server:
        decide(server, pair, PLANS[count])
        for picture in chosen:
            url = f"http://127.0.0.1:{server.health_port}/"
            asyncio.run(take(browser, url, picture, IMAGES / f"{picture.name}.png"))


def main() -> None:
    """Take all pictures, or those of some clusters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vms", type=int, choices=PLANS, action="append", help="only the clusters of so many VMs")
    asked = parser.parse_args().vms or PLANS
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(ignore_cleanup_errors=True) as name, browsing(Path(name)) as browser:
        for count in asked:
            pictures(Path(name), browser, count, [each for each in PICTURES if each.vms == count])


if __name__ == "__main__":
    main()
