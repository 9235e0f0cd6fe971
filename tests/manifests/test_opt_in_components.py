"""Opting in by namespace and by cluster: each pod has one entry of the webhook configuration at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import (
    INSTALLS,
    OPT_IN_ALL,
    REUNITE,
    at,
    identity,
    installed,
    selects,
    the,
    with_options,
)
from support.drivers.command_lines import values

from webhook import cli
from webhook.core.admit import Entry
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, ANNOTATION_DECISION

LABEL: Final = "kubevirt-scheduler/co-schedule"
ANNOTATION: Final = "object.metadata.annotations"
HAS: Final = f"'{LABEL}' in {ANNOTATION}"
ANNOTATIONS: Final = (None, "false", "true")
WRITTEN: Final = f"'{ANNOTATION_APPLIED_PATCH}' in {ANNOTATION}"
DECIDED: Final = f"'{ANNOTATION_DECISION}' in {ANNOTATION}"
ASKS: Final = f"has({ANNOTATION}) && ({DECIDED} || {WRITTEN} || {HAS} && {ANNOTATION}['{LABEL}'] != 'false')"
WRITTEN_FOR_OTHERS: Final = f"{WRITTEN} && {ANNOTATION}['{ANNOTATION_APPLIED_PATCH}'].contains('\"by\":')"
LETS: Final = {ASKS: ["true"], f"!(has({ANNOTATION}) && {HAS}) || {WRITTEN_FOR_OTHERS}": [None]}
"""Expression -> the values of the annotation of the pods that it lets through, if we did not write into the pod."""
START: Final = {"kubevirt.io": "virt-launcher"}
TARGET: Final = {"kubevirt.io": "virt-launcher", "kubevirt.io/migrationJobUID": "u"}
Webhooks = Sequence[Mapping[str, Any]]


def sent(
    webhooks: Webhooks,
    pod: Mapping[str, str],
    label: str | None,
    *,
    annotation: str | None,
    namespace: str = "vms",
) -> list[str]:
    """Return the paths to which the API server sends such a pod of a Namespace with this label."""
    labels = {"kubernetes.io/metadata.name": namespace} | ({} if label is None else {LABEL: label})
    return [
        each["clientConfig"]["service"]["path"]
        for each in webhooks
        if selects(each["objectSelector"], pod)
        and selects(each["namespaceSelector"], labels)
        and all(annotation in LETS[condition["expression"]] for condition in each.get("matchConditions", ()))
    ]


def webhooks_of(objects: Sequence[Mapping[str, Any]]) -> Webhooks:
    """Return the entries of the webhook configuration."""
    found: Webhooks = the("MutatingWebhookConfiguration", objects)["webhooks"]
    return found


def with_all(directory: Path) -> Webhooks:
    """Return the entries of an install with the component that opts in all VMs."""
    return webhooks_of(kustomize(with_options(directory, OPT_IN_ALL)))


LABELS: Final = (None, "true", "preferred", "required", "yes", "", "false")


@pytest.mark.parametrize(("label", "annotation"), list(product(LABELS, ANNOTATIONS)))
def test_a_pod_is_sent_once_or_not_at_all(label: str | None, annotation: str | None, tmp_path: Path) -> None:
    """By the annotation, else by the label, else only where all VMs are opted in. "false" is no call."""
    labeled = label not in (None, "false")
    by_default, by_all = (
        {"true": True, "false": False, None: asked}[annotation] for asked in (labeled, label != "false")
    )
    base, everybody = webhooks_of(installed()), with_all(tmp_path)
    path = Entry.VIRT_LAUNCHER.path
    assert sent(base, START, label, annotation=annotation) == [path] * by_default
    assert sent(everybody, START, label, annotation=annotation) == [path] * by_all
    for webhooks in (base, everybody):
        assert sent(webhooks, TARGET, label, annotation=annotation) == []
    for own in ("kubevirt-coschedule", "kube-system"):
        assert sent(everybody, START, label, annotation=annotation, namespace=own) == []


@pytest.mark.parametrize("install", INSTALLS)
def test_opt_in_all_is_a_flag_and_an_entry(install: str, tmp_path: Path) -> None:
    """The other entries stay as they are. The new one is that of the annotation, for Namespaces without the label."""
    before = {identity(item): item for item in installed(install)}
    after = {identity(item): item for item in kustomize(with_options(tmp_path, OPT_IN_ALL, install=install))}
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


def test_reunite_gets_the_option_too(tmp_path: Path) -> None:
    """It then moves the same VMs that the webhook places."""
    cron_job = the("CronJob", kustomize(with_options(tmp_path, REUNITE, OPT_IN_ALL)), "kubevirt-coschedule-reunite")
    words = at("spec.jobTemplate.spec.template.spec.containers.0.args", cron_job)
    assert values(cli.COMMANDS, *words)["opt_in_all"] == "true"
