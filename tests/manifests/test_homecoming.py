"""The component homecoming: two more entries in the webhook configuration, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import (
    HOMECOMING,
    INSTALLS,
    NAME,
    identity,
    installed,
    selects,
    the,
    with_component,
)

from webhook.core.admit import Entry

PODS: Final = Path(__file__).parents[1] / "cases" / "pods"
RENDERED: Final = {
    "virt-launcher-typical": [Entry.VIRT_LAUNCHER.title],
    "virt-launcher-hotplug-and-ephemeral": [Entry.VIRT_LAUNCHER.title],
    "virt-launcher-migration-target": [Entry.MIGRATION_TARGET.title],
    "hotplug-attachment": [],
}


def for_targets(starts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of migration targets that belongs to this entry of start pods."""
    label = starts["objectSelector"]["matchExpressions"][0]["key"]
    return {
        **starts,
        "name": starts["name"].replace("virt-launcher", "migration-target"),
        "timeoutSeconds": 1,
        "clientConfig": {"service": {**starts["clientConfig"]["service"], "path": Entry.MIGRATION_TARGET.path}},
        "objectSelector": {
            "matchLabels": starts["objectSelector"]["matchLabels"],
            "matchExpressions": [{"key": label, "operator": "Exists"}],
        },
    }


@pytest.mark.parametrize("install", INSTALLS)
def test_homecoming_adds_entries_to_the_webhook_configuration(install: str, tmp_path: Path) -> None:
    """The entries of migration targets are those of start pods, except for name, path, time and the label of a target.

    One is for VMs with the annotation, and one for VMs that the label of their Namespace opts in.
    """
    before = {identity(item): item for item in installed(install)}
    after = {identity(item): item for item in kustomize(with_component(HOMECOMING, tmp_path, install))}
    configuration = ("MutatingWebhookConfiguration", "", NAME)
    assert after.keys() == before.keys()
    assert [key for key in before if before[key] != after[key]] == [configuration]
    *others, added, in_namespace = after[configuration]["webhooks"]
    assert others == before[configuration]["webhooks"]
    annotated, _, labeled = others
    assert added == for_targets(annotated)
    assert in_namespace == for_targets(labeled)


def test_each_rendered_virt_launcher_pod_has_at_most_one_entry(tmp_path: Path) -> None:
    """With the component, migration targets have the new entries, and start pods those that they have without it.

    Of the two entries of a pod, one is for pods with the annotation, the other for pods without it.
    """
    webhooks = the("MutatingWebhookConfiguration", kustomize(with_component(HOMECOMING, tmp_path)))["webhooks"]
    for pod, entries in RENDERED.items():
        labels = json.loads((PODS / f"{pod}.json").read_text(encoding="utf-8"))["metadata"]["labels"]
        sent = [webhook["name"].partition(".")[0] for webhook in webhooks if selects(webhook["objectSelector"], labels)]
        assert sent == [name for entry in entries for name in (entry, f"{entry}-in-namespace")], pod
