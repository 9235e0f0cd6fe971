"""What the API server refuses the account of `reunite`, by its policy and by RBAC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.scenarios.admitting import refused, until
from support.scenarios.reunite_account import (
    ACCOUNT,
    NAMESPACE,
    reunite_account,
)

from webhook.core.api.migration import migration_object


@pytest.fixture(scope="module")
def account(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the component's account."""
    with reunite_account(installed, tmp_path_factory.mktemp("account")) as kubeconfig:
        yield kubeconfig


SPECS: Final[dict[str, tuple[Object, str]]] = {
    "another cluster": ({"spec": {"sendTo": {"connectURL": "x", "migrationID": "x"}}}, "only migrations with vmiName"),
    "a target": ({"spec": {"receive": {"migrationID": "x"}}}, "only migrations with vmiName"),
    "a priority": ({"spec": {"priority": "system-critical"}}, "only migrations with vmiName"),
    "any node": ({"spec": {"addedNodeSelector": None}}, "only migrations with vmiName"),
    "another label of the node": ({"spec": {"addedNodeSelector": {"disk": "ssd"}}}, "only migrations with vmiName"),
    "another image": (
        {"metadata": {"annotations": {"kubevirt.io/func-test-migration-target-image-override": "x"}}},
        "only migrations with one annotation",
    ),
    "an owner": (
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]}},
        "only migrations without ownerReferences",
    ),
    "another finalizer": (
        {"metadata": {"finalizers": ["example.invalid/x"]}},
        "only migrations without ownerReferences",
    ),
    "no label": ({"metadata": {"labels": {"kubevirt-scheduler/reunite": None}}}, "only migrations with the label"),
    "another label of KubeVirt's": (
        {"metadata": {"labels": {"kubevirt.io/nodeName": "x"}}},
        "only migrations with the label",
    ),
}
"""What is added to a migration that the account may create, and the message of the policy."""


def merged(one: Object, change: Object) -> Object:
    """A JSON merge patch."""
    found = dict(one)
    for key, value in change.items():
        found[key] = merged(found.get(key) or {}, value) if isinstance(value, dict) else value
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize(("change", "reason"), SPECS.values(), ids=SPECS)
def test_the_account_may_create_only_what_the_program_creates(
    change: Object, reason: str, account: Path, installed: Installed
) -> None:
    """The API server takes the migration of the program, and any of an admin, and refuses the account the rest."""
    assert account
    made = migration_object(NAMESPACE, "moved", "host-node-a", name="moved-reunite-9")
    made["metadata"]["labels"]["kubevirt.io/vmi-name"] = "moved"  # KubeVirt's own webhook adds it, and a finalizer
    made["metadata"]["finalizers"] = ["kubevirt.io/migrationJobFinalize"]
    plane = installed.plane
    api = plane.as_user(plane.service_account(NAME, ACCOUNT))

    until(lambda: reason in refused(api, merged(made, change)), lambda: refused(api, merged(made, change)))
    assert refused(api, made) == ""
    assert refused(plane.api, merged(made, change)) == ""
