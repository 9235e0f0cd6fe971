"""The Events that the program has written on a control plane, and what it counts of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.control_plane import rendering
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Api, Object
from support.drivers.scraping import scrape
from support.drivers.serving import Serving
from support.objects.builders import NAMESPACE


@contextmanager
def granted(installed: Installed) -> Iterator[list[Object]]:
    """What events.yaml adds to the install; taken away afterwards: others have it exact."""
    added = [dict(each) for each in rendering.installed("events.yaml")]
    installed.plane.install(added)
    yield added
    for each in added:
        installed.plane.api.delete(each)


def events(api: Api) -> list[Object]:
    """Ours, in the order in which they were made."""
    found = [each for each in api.items("v1", "Event", NAMESPACE) if each.get("reportingComponent") == NAME]
    return sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))


def clear(api: Api) -> None:
    """Have none of ours."""
    for each in events(api):
        api.delete(each)


def written(server: Serving, outcome: str) -> float:
    """How many Events of a server came to this."""
    return scrape(server.health_port).value("kubevirt_coschedule_events_total", outcome=outcome)
