"""The settings of the installed webhook, as its pods and its configuration state them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.objects import builders
from support.objects.builders_pods import webhook_pod

from webhook.core.opt_in import Mode, Policy
from webhook.objects.cluster import Cluster
from webhook.objects.documents import Document
from webhook.objects.files import read_objects
from webhook.objects.installed import ServeContainer
from webhook.objects.unread import WebhookSettings, webhook_settings

Object = dict[str, Any]


def configuration(value: str | None, *called: str) -> Object:
    """The configuration of the webhook, with this value of its annotation. It calls Services in these namespaces."""
    annotations = {} if value is None else {"kubevirt-scheduler/opt-in-all": value}
    meta = {"name": "kubevirt-coschedule", "annotations": annotations}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": meta,
        "webhooks": [{"clientConfig": {"service": {"namespace": each}}} for each in called],
    }


def told(*objects: Object) -> WebhookSettings:
    """The settings of a cluster of these objects."""
    found = read_objects(Document("f", each) for each in [builders.node("n"), *objects])
    return webhook_settings(Cluster(found, longhorn_namespace="longhorn-system"))


ASSUMED = "mode required (assumed), opt-in-all off (assumed), audit off (assumed), shortlist auto (assumed)"
ALL_GIVEN = webhook_pod("--mode=preferred", "--audit", "on", "--opt-in-all=true", "--shortlist=off")
SAID: dict[str, tuple[list[Object], str]] = {
    "all of them": ([ALL_GIVEN], "mode preferred, opt-in-all true, audit on, shortlist off"),
    "a pod without options runs with the defaults": (
        [webhook_pod()],
        "mode required, opt-in-all off, audit off, shortlist auto",
    ),
    "no pod": ([], ASSUMED),
    "a pod that does not run": ([webhook_pod("--mode=preferred", phase="Pending")], ASSUMED),
    "no container that serves": ([{**webhook_pod(), "spec": {"containers": [{"name": "other"}]}}], ASSUMED),
    "the configuration alone": ([configuration("preferred")], ASSUMED.replace("off (assumed)", "preferred", 1)),
    "the configuration without the annotation": ([configuration(None)], ASSUMED.replace("off (assumed)", "off", 1)),
}


@pytest.mark.parametrize(("objects", "sentence"), SAID.values(), ids=SAID)
def test_what_nobody_states_is_assumed(objects: list[Object], sentence: str) -> None:
    """`explain` said `required` of a webhook that runs with --mode=preferred."""
    found = told(*objects)
    assert (found.sentence, found.notes) == (sentence, [])


def test_the_policy_is_the_pods() -> None:
    """Each option has its place."""
    assert told(ALL_GIVEN).policy == Policy(Mode.PREFERRED, audit=True, opt_in_all="true", shortlist=False)


PATCHED = [webhook_pod("--opt-in-all=required"), configuration(None)]
PATCHED_NOTE = (
    "the webhook's pods run with --opt-in-all=required, and the annotation kubevirt-scheduler/opt-in-all of its "
    "configuration stands for off: the pods count"
)
ROLLOUT = [webhook_pod("--mode=off"), webhook_pod("--mode=preferred", name="other")]
ELSEWHERE_NOTE = (
    "the webhook reads Longhorn's objects in namespace storage, and this command in longhorn-system: "
    "--longhorn-namespace storage"
)
NOTES: dict[str, tuple[list[Object], list[str]]] = {
    "somebody patched a Deployment": (PATCHED, [PATCHED_NOTE]),
    "pods and configuration agree": ([PATCHED[0], configuration("required")], []),
    "a rollout": (ROLLOUT, ["the webhook's pods differ in --mode"]),
    "the command looks elsewhere": ([webhook_pod("--longhorn-namespace=storage")], [ELSEWHERE_NOTE]),
}


@pytest.mark.parametrize(("objects", "notes"), NOTES.values(), ids=NOTES)
def test_what_contradicts_what_is_named(objects: list[Object], notes: list[str]) -> None:
    """Pods are what runs; pods that differ tell nothing."""
    assert told(*objects).notes == notes
    assert told(*PATCHED).policy.opt_in_all == "required"
    assert "mode" in told(*ROLLOUT).assumed


STRANGER = webhook_pod("--opt-in-all=true", "--mode=off", name="stranger", namespace="vms")


def test_a_pod_of_a_stranger_states_nothing() -> None:
    """Anybody may use the labels. A configuration that calls a URL names no namespace, and then all such pods count."""
    ours = webhook_pod("--mode=preferred")
    assert told(ours, STRANGER, configuration(None, "kubevirt-coschedule")) == told(ours, configuration(None))
    assert told(STRANGER, configuration(None, "kubevirt-coschedule")) == told(configuration(None))
    assert told(ours, STRANGER, configuration(None)).notes


VARIABLE = "KUBEVIRT_COSCHEDULE_MODE"
STATED: dict[str, tuple[Object, str]] = {
    "the environment": ({"env": [{"name": VARIABLE, "value": "off"}]}, "off"),
    "an argument before the environment": (
        {"args": ["serve", "--mode=preferred"], "env": [{"name": VARIABLE, "value": "off"}]},
        "preferred",
    ),
    "a value of another object": ({"env": [{"name": VARIABLE, "valueFrom": {"configMapKeyRef": {}}}]}, ""),
    "all values of another object": ({"envFrom": [{"configMapRef": {}}]}, ""),
    "an argument beside that": ({"args": ["serve", "--mode", "off"], "envFrom": [{"configMapRef": {}}]}, "off"),
    "a value that Kubernetes replaces": ({"args": ["serve", "--mode=$(MODE)"]}, ""),
    "a value that does not exist": ({"args": ["serve", "--mode=never"]}, ""),
    "an option without its value": ({"args": ["serve", "--mode"]}, ""),
    "a command": ({"command": ["/usr/bin/kubevirt-coschedule", "serve", "--mode=off"]}, "off"),
}


@pytest.mark.parametrize(("container", "mode"), STATED.values(), ids=STATED)
def test_a_value_from_elsewhere_is_not_known(container: Object, mode: str) -> None:
    """Empty: not known."""
    assert convert({"args": ["serve"], **container}, ServeContainer).options["mode"] == mode
