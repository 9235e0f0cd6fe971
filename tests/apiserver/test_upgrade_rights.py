"""A server of this checkout with fewer rights than it wants: its own without one.

That is what a cluster gives it whose image was changed alone, or first. It must answer, and strand no VM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pytest
from support.control_plane import rendering
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.drivers import serving
from support.scenarios.admitting import REJECTIONS, WEBHOOK, Counted, admitted

ROLE_KINDS: Final = ("ClusterRole", "Role")


def roles(objects: Iterable[Mapping[str, Any]]) -> list[Object]:
    """The rights of the webhook's account."""
    found = (dict(item) for item in objects if item["kind"] in ROLE_KINDS)
    return [item for item in found if item["metadata"]["name"] == rendering.NAME]


@pytest.fixture
def called(installed: Installed) -> Iterator[Installed]:
    """An install whose webhook is called, in a cluster with a claim for a pin; its rights are those of the checkout."""
    with ClusterState(installed.plane.api) as cluster:
        cluster.become(serving.cluster())
        installed.enable()
        yield installed
        installed.disable()
    for role in roles(rendering.installed()):
        installed.plane.api.apply(role)


def test_it_answers_without_any_one_of_its_rights(called: Installed) -> None:
    """Each rule is one that a next version may need and an installed one does not grant."""
    api = called.plane.api
    counted = Counted(api)
    tried = 0
    for role in roles(rendering.installed()):
        for index in range(len(role["rules"])):
            api.apply({**role, "rules": [*role["rules"][:index], *role["rules"][index + 1 :]]})
            with called.serving():
                called.until_called()
                assert admitted(api, "disk").decision, role["rules"][index]
            tried += 1
        api.apply(role)
    assert tried >= len(ROLE_KINDS)
    assert counted.more()(REJECTIONS, name=WEBHOOK) == 0
