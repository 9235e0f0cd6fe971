"""The Events that the program has written on a control plane, and what it counts of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Api, Object
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import EVENTS, with_component
from support.drivers.scraping import scrape
from support.drivers.serving import Serving
from support.objects.builders import NAMESPACE

_ROLE: Final = f"{NAME}-events"


@contextmanager
def granted(installed: Installed, directory: Path) -> Iterator[list[Object]]:
    """What the component adds to the install, beside an option; taken away afterwards: others have it exact."""
    rendered = kustomize(with_component(EVENTS, directory))
    added = [each for each in rendered if each["metadata"]["name"] == _ROLE]
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
