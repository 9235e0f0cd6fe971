"""The component homecoming: one more entry in the webhook configuration, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

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

PODS: Final = Path(__file__).parents[2] / "cases" / "pods"
RENDERED: Final = {
    "virt-launcher-typical": [Entry.VIRT_LAUNCHER.title],
    "virt-launcher-hotplug-and-ephemeral": [Entry.VIRT_LAUNCHER.title],
    "virt-launcher-migration-target": [Entry.MIGRATION_TARGET.title],
    "hotplug-attachment": [],
}


@pytest.mark.parametrize("install", INSTALLS)
def test_homecoming_adds_one_entry_to_the_webhook_configuration(install: str, tmp_path: Path) -> None:
    """The entry of migration targets is that of start pods, except for name, path, time and the label of a target."""
    before = {identity(item): item for item in installed(install)}
    after = {identity(item): item for item in kustomize(with_component(HOMECOMING, tmp_path, install))}
    configuration = ("MutatingWebhookConfiguration", "", NAME)
    assert after.keys() == before.keys()
    assert [key for key in before if before[key] != after[key]] == [configuration]
    *others, added = after[configuration]["webhooks"]
    assert others == before[configuration]["webhooks"]
    starts = others[0]
    label = starts["objectSelector"]["matchExpressions"][0]["key"]
    assert added == {
        **starts,
        "name": "migration-target.kubevirt-coschedule.io",
        "timeoutSeconds": 1,
        "clientConfig": {"service": {**starts["clientConfig"]["service"], "path": Entry.MIGRATION_TARGET.path}},
        "objectSelector": {
            "matchLabels": starts["objectSelector"]["matchLabels"],
            "matchExpressions": [{"key": label, "operator": "Exists"}],
        },
    }


def test_each_rendered_virt_launcher_pod_has_at_most_one_entry(tmp_path: Path) -> None:
    """With the component, migration targets have the new entry, and start pods the one that they have without it."""
    webhooks = the("MutatingWebhookConfiguration", kustomize(with_component(HOMECOMING, tmp_path)))["webhooks"]
    for pod, entries in RENDERED.items():
        labels = json.loads((PODS / f"{pod}.json").read_text(encoding="utf-8"))["metadata"]["labels"]
        sent = [webhook["name"].partition(".")[0] for webhook in webhooks if selects(webhook["objectSelector"], labels)]
        assert sent == entries, pod
