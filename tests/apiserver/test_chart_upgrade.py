"""The chart is installed, upgraded and rolled back while pods are created: nobody notices."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from typing import Final

import pytest
from controlplane.build import HELM_MAJORS
from support.control_plane.certs_process import CONFIGURATION
from support.control_plane.chart import CHART, Helm, switch, with_port
from support.control_plane.rendering import NAME
from support.control_plane.unattended import Unattended, without_us
from support.scenarios.admitting import (
    FAIL_OPEN,
    REJECTIONS,
    WEBHOOK,
    Admitting,
    Counted,
    admitted,
    until,
    until_watched,
)
from support.sizes import size

CREATES: Final = size("ROLLING_CREATES")
CLIENTS: Final = 4
ROUNDS: Final = 2  # at least
BETWEEN: Final = 20  # pods, at least, between two commands of helm

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", params=HELM_MAJORS)
def major(request: pytest.FixtureRequest) -> int:
    """The major version of helm."""
    return int(request.param)


@pytest.fixture(scope="module")
def install(major: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unattended]:
    """The install by kubectl on a control plane of its own for each helm, with servers and certificate controller."""
    assert major in HELM_MAJORS
    with (
        without_us(tmp_path_factory.mktemp("own")) as plane,
        Unattended(plane, tmp_path_factory.mktemp("upgrade")) as install,
    ):
        install.start_servers()
        install.start_keeper()
        install.until_serving()
        until(lambda: admitted(plane.api, "disk").decision, "a pod with a decision")
        for serving in install.serving:
            until_watched(serving)
        yield install


@pytest.fixture(scope="module")
def helm(install: Unattended, major: int, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """helm, with a copy of the chart that has the free port of the install."""
    directory = tmp_path_factory.mktemp("chart")
    entry, *_ = install.plane.api.get(CONFIGURATION)["webhooks"]
    copy = shutil.copytree(CHART, directory / NAME)
    return Helm(install.plane, directory, with_port(copy, entry["clientConfig"]["service"]["port"]), major)


def test_no_call_is_lost(install: Unattended, helm: Helm) -> None:
    """Helm takes the install over, changes programs and entries, and takes that back. Every pod gets its pin."""
    api = install.plane.api
    counted = Counted(api)
    revisions = 0
    with Admitting(api, "disk", clients=CLIENTS) as admitting:
        admitting.until(more=BETWEEN)
        helm.take_over()
        while len(admitting.admissions) < CREATES or revisions < ROUNDS:
            admitting.until(more=BETWEEN)
            helm.upgrade(*(switch(each, on=True) for each in ("opt-in-all", "events")))
            admitting.until(more=BETWEEN)
            helm("rollback", NAME)
            revisions += 1
        admitting.until(more=BETWEEN)
    more = counted.more()
    assert (admitting.refused, admitting.away) == ([], [])
    assert (more(FAIL_OPEN, name=WEBHOOK), more(REJECTIONS, name=WEBHOOK)) == (0, 0)
    assert [pod.decision for pod in admitting.admissions if pod.required != ["node-a"]] == []
    print(f"{len(admitting.admissions)} pods, {2 * revisions} upgrades and rollbacks")  # noqa: T201 - by pytest -rP


def test_a_lost_trust_is_noticed(install: Unattended, helm: Helm) -> None:
    """With --force helm replaces the configuration. Calls fail open until the certificate controller repairs it."""
    api = install.plane.api
    counted = Counted(api)
    controller = install.keepers[-1].process
    controller.send_signal(signal.SIGSTOP)
    with Admitting(api, "disk", clients=CLIENTS) as admitting:
        helm.upgrade("--force" if helm.major == HELM_MAJORS[0] else "--force-replace")
        until(lambda: [pod for pod in admitting.admissions if not pod.decision], "a pod without a decision")
        controller.send_signal(signal.SIGCONT)
        until(lambda: admitted(api, "disk").decision, "a pod with a decision")
    unseen = [pod for pod in admitting.admissions if not pod.decision]
    assert len(unseen) <= counted.more()(FAIL_OPEN, name=WEBHOOK)
    assert (admitting.refused, admitting.away) == ([], [])
