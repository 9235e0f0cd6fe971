"""The settings of the installed webhook, as its pods and its configuration state them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.objects import builders

from webhook.core.opt_in import Policy
from webhook.objects.cluster import Cluster
from webhook.objects.documents import Document
from webhook.objects.files import read_objects
from webhook.objects.installed import ServeContainer
from webhook.objects.webhook_settings import WebhookSettings, webhook_settings

Object = dict[str, Any]
LABELS = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}


def webhook_pod(*args: str, name: str = "w", phase: str = "Running", **container: Any) -> Object:
    """A pod of the webhook with these arguments."""
    meta = {"name": name, "namespace": "kubevirt-coschedule", "labels": LABELS}
    spec = {"containers": [{"name": "proxy"}, {"name": "webhook", "args": ["serve", *args], **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


def configuration(value: str | None) -> Object:
    """The configuration of the webhook, with this value of its annotation."""
    annotations = {} if value is None else {"kubevirt-scheduler/opt-in-all": value}
    meta = {"name": "kubevirt-coschedule", "annotations": annotations}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": meta,
        "webhooks": [],
    }


def told(*objects: Object) -> WebhookSettings:
    """The settings of a cluster of these objects."""
    found = read_objects(Document("f", each) for each in [builders.node("n"), *objects])
    return webhook_settings(Cluster(found, longhorn_namespace="longhorn-system"))


def test_the_pods_tell_the_settings() -> None:
    """`explain` said `required` of a webhook that runs with --mode=preferred."""
    found = told(webhook_pod("--mode=preferred", "--audit", "on", "--opt-in-all=true", "--shortlist=off"))
    assert found.policy == Policy(mode="preferred", audit=True, opt_in_all="true", shortlist=False)  # type: ignore[arg-type]
    assert found.sentence == "mode preferred, opt-in-all true, audit on, shortlist off"
    assert not found.notes


def test_an_option_that_a_pod_does_not_have_is_the_default() -> None:
    """That is known: the pod runs without the option."""
    assert told(webhook_pod()).sentence == "mode required, opt-in-all off, audit off, shortlist auto"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="no pod"),
        pytest.param([webhook_pod("--mode=preferred", phase="Pending")], id="a pod that does not run"),
        pytest.param([{**webhook_pod(), "spec": {"containers": [{"name": "other"}]}}], id="no container that serves"),
    ],
)
def test_what_nobody_states_is_assumed(objects: list[Object]) -> None:
    """And is called so."""
    found = told(*objects)
    assert found.policy == Policy()
    expected = "mode required (assumed), opt-in-all off (assumed), audit off (assumed), shortlist auto (assumed)"
    assert found.sentence == expected


def test_the_configuration_tells_one_setting_without_a_pod() -> None:
    """Its annotation is written beside the option."""
    found = told(configuration("preferred"))
    assert (found.policy.opt_in_all, "opt-in-all" in found.assumed) == ("preferred", False)
    assert told(configuration(None)).sentence.startswith("mode required (assumed), opt-in-all off, ")


def test_pods_and_configuration_that_differ_are_named() -> None:
    """Somebody patched a Deployment. The pods are what runs."""
    found = told(webhook_pod("--opt-in-all=required"), configuration(None))
    (note,) = found.notes
    assert found.policy.opt_in_all == "required"
    assert note.startswith("the webhook's pods run with --opt-in-all=required, and the annotation ")
    assert not told(webhook_pod("--opt-in-all=required"), configuration("required")).notes


def test_pods_that_differ_tell_nothing() -> None:
    """As during a rollout."""
    found = told(webhook_pod("--mode=off"), webhook_pod("--mode=preferred", name="other"))
    assert "mode" in found.assumed
    assert found.notes == ["the webhook's pods differ in --mode"]


def test_another_namespace_of_longhorn_is_named() -> None:
    """The command looked where the webhook does not."""
    (note,) = told(webhook_pod("--longhorn-namespace=storage")).notes
    assert note.endswith("and this command in longhorn-system: --longhorn-namespace storage")


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
