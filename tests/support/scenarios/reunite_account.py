"""The account of reunite.yaml, in a cluster with a VM that is apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.control_plane import rendering
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import crd
from support.drivers.status_runs import instance
from support.objects import builders
from support.scenarios.admitting import until
from support.scenarios.vm_scenes import scenes

ACCOUNT: Final = f"{NAME}-reunite"
NAMESPACE: Final = builders.NAMESPACE
KINDS: Final = ("VirtualMachineInstance", "VirtualMachineInstanceMigration", "VirtualMachine", "KubeVirt")
MIGRATIONS: Final = ("kubevirt.io/v1", "VirtualMachineInstanceMigration", NAMESPACE)
KUBEVIRT: Final = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "KubeVirt",
    "metadata": {"name": "kubevirt", "namespace": "default"},
    "status": {"phase": "Deployed", "observedKubeVirtVersion": "v1.8.0"},
}


@contextmanager
def reunite_account(installed: Installed, directory: Path) -> Iterator[Path]:
    """A cluster with a VM that is apart, the component, and the kubeconfig of the component's account."""
    plane = installed.plane
    component = [dict(each) for each in rendering.installed("reunite.yaml")]
    plane.install([*map(crd, KINDS), *component])
    vmi = instance("moved")
    vmi["status"]["phase"] = "Running"
    try:
        with ClusterState(plane.api) as state:
            state.become(scenes())
            for each in (vmi, KUBEVIRT):
                plane.api.apply(each)
            user = plane.service_account(NAME, ACCOUNT)
            until(lambda: has_rights(plane.as_user(user)), "the API server to know the rights")
            yield plane.kubeconfig(directory / "kubeconfig", user)
    finally:
        for each in (*map(crd, KINDS), *component):
            plane.api.delete(each, missing_ok=True)
        plane.install_kubevirt()


def has_rights(api: Api) -> bool:
    """Whether the API server has both roles."""
    try:
        api.items(*MIGRATIONS)
        api.items("longhorn.io/v1beta2", "ShareManager", builders.LONGHORN_NAMESPACE)
    except ApiError:
        return False
    return True


def forget(api: Api) -> None:
    """Delete all migrations, and the Events that tell of them: an Event without its migration means a cancelled one."""
    for each in (*api.items(*MIGRATIONS), *api.items("v1", "Event", NAMESPACE, fieldSelector="reason=ReuniteStarted")):
        api.delete(each)


def names(api: Api) -> list[str]:
    """The names of all migrations."""
    return [each["metadata"]["name"] for each in api.items(*MIGRATIONS)]


def migration(name: str) -> Object:
    """A migration of the VM."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": MIGRATIONS[0], "kind": MIGRATIONS[1], "metadata": metadata, "spec": {"vmiName": "moved"}}
