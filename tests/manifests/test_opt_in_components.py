"""Opting in by namespace and by cluster: each pod has one entry of the webhook configuration at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.control_plane.rendering import (
    OPT_IN_ALL,
    at,
    identity,
    installed,
    kustomize,
    the,
    with_options,
)
from support.drivers.command_lines import values

from webhook import cli


def webhooks_of(objects: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the entries of the webhook configuration."""
    found: Sequence[Mapping[str, Any]] = the("MutatingWebhookConfiguration", objects)["webhooks"]
    return found


def test_opt_in_all_is_a_flag_and_an_entry(tmp_path: Path) -> None:
    """The other entries stay as they are. The new one is that of the annotation, for Namespaces without the label."""
    before = {identity(item): item for item in installed()}
    after = {identity(item): item for item in kustomize(with_options(tmp_path, OPT_IN_ALL))}
    assert after.keys() == before.keys()
    changed = {key[0]: key for key in before if before[key] != after[key]}
    assert sorted(changed) == ["Deployment", "MutatingWebhookConfiguration"]
    arguments = at("spec.template.spec.containers.0.args", after[changed["Deployment"]])
    assert values(cli.COMMANDS, *arguments)["opt_in_all"] == "true"
    annotations = after[changed["MutatingWebhookConfiguration"]]["metadata"]["annotations"]
    assert annotations["kubevirt-scheduler/opt-in-all"] == "true"
    *others, added = after[changed["MutatingWebhookConfiguration"]]["webhooks"]
    assert others == before[changed["MutatingWebhookConfiguration"]]["webhooks"]
    labeled = others[2]
    rest = {"name", "namespaceSelector"}
    assert {key: added[key] for key in added.keys() - rest} == {key: labeled[key] for key in labeled.keys() - rest}


def test_the_entries_of_the_label_and_of_the_annotation_differ_in_whom_they_are_for() -> None:
    """Time, failure policy and path are the same."""
    annotated, _, labeled = webhooks_of(installed())
    rest = {"name", "namespaceSelector", "matchConditions"}
    assert {key: labeled[key] for key in labeled.keys() - rest} == {
        key: annotated[key] for key in annotated.keys() - rest
    }
