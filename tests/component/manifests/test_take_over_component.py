"""manifests/components/take-over-scheduler: one flag, and one entry before the others for the same schedulers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import INSTALLS, TAKE_OVER, at, identity, installed, with_component
from support.drivers.command_lines import values

from webhook import cli
from webhook.core.admit import Entry

ARGUMENTS = "spec.template.spec.containers.0.args"


@pytest.mark.parametrize("install", INSTALLS)
def test_take_over_is_a_flag_and_an_entry(install: str, tmp_path: Path) -> None:
    """The other entries stay as they are. The API server sends the pods of the schedulers that the flag names."""
    before = {identity(item): item for item in installed(install)}
    after = {identity(item): item for item in kustomize(with_component(TAKE_OVER, tmp_path, install))}
    assert after.keys() == before.keys()
    changed = {key[0]: key for key in before if before[key] != after[key]}
    assert sorted(changed) == ["Deployment", "MutatingWebhookConfiguration"]
    chosen = values(cli.COMMANDS, *at(ARGUMENTS, after[changed["Deployment"]]))
    assert (chosen["take_over_scheduler"], chosen["take_over_to"]) == ({"kubevirt-scheduler"}, "default-scheduler")
    added, *others = after[changed["MutatingWebhookConfiguration"]]["webhooks"]
    assert others == before[changed["MutatingWebhookConfiguration"]]["webhooks"]
    starts = others[0]
    [condition] = added["matchConditions"]
    assert set(re.findall(r"'([^']+)'", condition["expression"])) == chosen["take_over_scheduler"]
    assert {**added, "matchConditions": starts["matchConditions"]} == {
        **starts,
        "name": "take-over.kubevirt-coschedule.io",
        "timeoutSeconds": 1,
        "reinvocationPolicy": "Never",
        "clientConfig": {
            **starts["clientConfig"],
            "service": {**starts["clientConfig"]["service"], "path": Entry.TAKE_OVER.path},
        },
        "objectSelector": {"matchLabels": starts["objectSelector"]["matchLabels"]},
    }
