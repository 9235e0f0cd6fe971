"""An earlier commit is installed and upgraded to this checkout while pods are created: nobody notices.

What was installed are its manifests and its chart, with their rights, arguments and entries. Its image is not here: the
servers before the upgrade are this checkout's, too, with the arguments and rights of the commit. What its certificate
controller wrote is made by hand.
"""

from __future__ import annotations

import base64
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml
from support.control_plane import earlier
from support.control_plane.certs_process import AUTHORITY_SECRET, CONFIGURATION, SECRET
from support.control_plane.chart import CHART, Helm, render
from support.control_plane.chart import with_port as chart_with_port
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubectl import Identity, Kubectl, everything
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import MANIFESTS, NAME, identity
from support.control_plane.unattended import (
    Unattended,
    bundle_of,
    for_tests,
    free_service_port,
    without_us,
)
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
from support.waits import MAX_WAIT_SECONDS

from certs import pki, state

CLIENTS: Final = 4
BETWEEN: Final = 40  # pods, at least, before and after each step
QUICK: Final = ("--propagation-seconds", "2", "--retire-seconds", "6")  # in place of 2 minutes and an hour
LIFETIME: Final = timedelta(days=30)
DRAIN: Final = ("--drain-seconds", "5")  # in place of 15
NAMESPACE: Final[Object] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}
OF_OTHERS: Final = ("IPAddress", "Event", "VirtualMachineInstance")
"""What the API server makes for a Service, what anybody reports, and the VM of the pods that the test creates."""
OF_HELM: Final = "sh.helm.release."  # Secrets in which helm stores what it has installed


class Way(NamedTuple):
    """A way to install the last release and to upgrade it to this checkout: the objects of each, and the commands."""

    old: list[Object]
    new: list[Object]
    install: Callable[[], object]
    upgrade: Callable[[], object]


def by_kubectl(plane: ControlPlane, directory: Path) -> Way:
    """`kubectl apply -f install.yaml`, of the one and of the other."""
    kubectl, port = Kubectl(plane, directory), free_service_port()
    before = kustomize(earlier.checkout(directory / "earlier") / "manifests")
    old, new = (for_tests(objects, port) for objects in (before, kustomize(MANIFESTS)))

    def apply(name: str, objects: list[Object]) -> None:
        file = directory / name
        file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        kubectl("apply", "-f", file)

    def upgrade() -> None:
        apply("new.yaml", new)
        kubectl("delete", "clusterrole,clusterrolebinding", f"{NAME}-pods")

    return Way(old, new, lambda: apply("old.yaml", old), upgrade)


def by_helm(plane: ControlPlane, directory: Path) -> Way:
    """`helm install` of the one chart, `helm upgrade` to the other."""
    port = free_service_port()
    old = chart_with_port(earlier.checkout(directory / "earlier") / "charts" / NAME, port)
    new = chart_with_port(shutil.copytree(CHART, directory / "new" / NAME), port)
    return Way(
        [NAMESPACE, *render(chart=old)],
        [NAMESPACE, *render(chart=new)],
        Helm(plane, directory, old).install,
        lambda: Helm(plane, directory, new).upgrade("--reset-then-reuse-values"),
    )


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, with a claim for a pin and nothing of ours."""
    with without_us(tmp_path_factory.mktemp("own")) as own:
        yield own


def ours(plane: ControlPlane, before: set[Identity]) -> set[Identity]:
    """What there is more than before: the install, and what it made."""
    more = everything(plane.api).keys() - before
    return {key for key in more if key[0] not in OF_OTHERS and not key[2].startswith(OF_HELM)}


def ca_of(api: Api) -> str:
    """The certificate of the authority, in base64."""
    certificate: str = api.get(AUTHORITY_SECRET)["data"]["tls.crt"]
    return certificate


def roll_out(install: Unattended) -> list[int]:
    """The rollout of both Deployments: a new process, then SIGTERM for the old server. Returns the exit codes.

    The certificate controller of the release is not here, and its last write was before.
    """
    codes = []
    for index, old in enumerate(install.servers):
        leaving = install.endpoints[index]
        install.serving[index] = install.start_server(index, *DRAIN).until_serving()
        until_watched(install.serving[index])
        install.proxy.targets = (*install.endpoints, leaving)
        old.process.send_signal(signal.SIGTERM)
        install.proxy.targets = tuple(install.endpoints)
        codes.append(old.process.wait(MAX_WAIT_SECONDS))
    install.start_keeper(*QUICK).until_logged("keeping")
    return codes


def as_the_release_left_it(api: Api) -> str:
    """A pair in the Secret, and its authority in the bundle beside another one. Nobody has the keys of the two.

    Returns the bundle.
    """
    now, names = datetime.now(UTC), pki.service_names(NAME, NAME, "cluster.local")
    pair, other = (
        pki.issue(pki.new_authority(now=now, lifetime=LIFETIME), names, now=now, lifetime=LIFETIME) for _ in range(2)
    )
    api.create({**SECRET, "data": state.new_secret("/namespaces/x/secrets/y", pair)["data"]})
    bundle = base64.b64encode(pair.authority + other.authority).decode()
    hooks = api.get(CONFIGURATION)["webhooks"]
    for hook in hooks:
        hook["clientConfig"]["caBundle"] = bundle
    marks = {"metadata": {"annotations": {"kubevirt-coschedule.io/ca-bundle-marks": "{}"}}}
    api.patch(CONFIGURATION, {**marks, "webhooks": hooks})
    return bundle


@pytest.mark.parametrize("way", [by_kubectl, by_helm])
def test_no_call_is_lost_and_nothing_is_left_behind(
    way: Callable[[ControlPlane, Path], Way], plane: ControlPlane, tmp_path: Path
) -> None:
    """Every pod gets a decision, also while the first authority that stays replaces those of the release.

    It gets its pin once the servers, which are of this checkout, have the rights of this checkout. Then the cluster has
    what a new install has, and no more.
    """
    before = set(everything(plane.api))
    old, new, install_old, upgrade = way(plane, tmp_path)
    with Unattended(plane, tmp_path, objects=old, apply=install_old) as install:
        old_bundle = as_the_release_left_it(plane.api)
        install.start_servers(*DRAIN)
        install.until_serving()
        until(lambda: admitted(plane.api, "disk").decision, "a pod with a decision")
        counted = Counted(plane.api)
        with Admitting(plane.api, "disk", clients=CLIENTS) as admitting:
            admitting.until(more=BETWEEN)
            upgrade()
            for serving in install.serving:
                until_watched(serving)
            admitting.until(more=CLIENTS)  # whose calls may have begun before
            known = len(admitting.admissions)
            admitting.until(more=BETWEEN)
            codes = roll_out(install)
            until(lambda: bundle_of(plane.api.get(CONFIGURATION)) not in ("", old_bundle), "a new authority")
            until(lambda: plane.api.get(SECRET)["data"]["ca.crt"] == ca_of(plane.api), "a certificate of it")
            until(lambda: bundle_of(plane.api.get(CONFIGURATION)) == ca_of(plane.api), "its authority alone")
            admitting.until(more=BETWEEN)
        more = counted.more()
        assert (admitting.refused, admitting.away) == ([], [])
        assert (more(FAIL_OPEN, name=WEBHOOK), more(REJECTIONS, name=WEBHOOK)) == (0, 0)
        assert [pod for pod in admitting.admissions if not pod.decision] == []
        assert [pod.decision for pod in admitting.admissions[known:] if pod.required != ["node-a"]] == []
        assert set(codes) == {0}
        assert ours(plane, before) == set(map(identity, [*new, SECRET, AUTHORITY_SECRET]))
    for each in new:  # what the release did not have
        plane.api.delete(each, missing_ok=True)
    print(f"{len(admitting.admissions)} pods")  # noqa: T201 - by pytest -rP
