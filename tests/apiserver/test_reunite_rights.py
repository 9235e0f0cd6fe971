"""reunite with the account of its component, on a real API server: its rights suffice, and it can do nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api
from support.scenarios.admitting import until
from support.scenarios.reunite_account import (
    ACCOUNT,
    NAMESPACE,
    forget,
    names,
    reunite_account,
)
from support.scenarios.vm_scenes import reasons_of

from webhook import cli


@pytest.fixture(scope="module")
def account(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the component's account."""
    with reunite_account(installed, tmp_path_factory.mktemp("account")) as kubeconfig:
        yield kubeconfig


@pytest.fixture(autouse=True)
def _no_migrations(account: Path, installed: Installed) -> Iterator[None]:
    """Each test ends without a migration, and without the Event that says that there was one."""
    assert account
    yield
    forget(installed.plane.api)


Once = Callable[..., tuple[int, str, str]]


@pytest.fixture
def once(account: Path, capsys: pytest.CaptureFixture[str]) -> Once:
    """One run that writes, with the account: its exit code and its output, with one space between words."""

    def run(*words: str) -> tuple[int, str, str]:
        options = ["-A", "--opt-in-all=off", "--dry-run=none", "--kubeconfig", str(account)]  # as the CronJob has
        code = cli.main(["reunite", *options, *words])
        return code, *(re.sub(" +", " ", text) for text in capsys.readouterr())

    return run


def test_the_rights_of_the_component_suffice(once: Once, installed: Installed) -> None:
    """A VM that is apart gets its migration and its Event, and the API server refuses no request."""
    api = installed.plane.api
    refusals = api.metric("apiserver_request_total", code="403")
    assert once()[0] == 0
    assert names(api) == ["moved-reunite-1"]
    assert "ReuniteStarted" in reasons_of(api, "moved")
    assert api.metric("apiserver_request_total", code="403") == refusals


NO_EVENTS: Final = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-events}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [events]}]
  validations: [{expression: "false", message: tenants cannot have Events}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-events}
spec: {policyName: no-events, validationActions: [Deny]}
"""


def takes_no_event(api: Api, why: str) -> bool:
    """Whether the API server refuses an Event in these words."""
    about = {"kind": "Pod", "namespace": NAMESPACE, "name": "none"}
    new = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "none", "namespace": NAMESPACE}}
    try:
        api.create({**new, "involvedObject": about}, dryRun="All")
    except ApiError as error:
        return why in str(error)
    return False


def test_a_policy_that_refuses_events_fails_no_run(once: Once, installed: Installed) -> None:
    """The run says so, and has done what it decided."""
    api = installed.plane.api
    policies = [*yaml.safe_load_all(NO_EVENTS)]
    try:
        for policy in policies:
            api.create(policy)
        until(lambda: takes_no_event(api, "tenants cannot"), "the policy is in force")
        code, out, err = once()
    finally:
        for policy in policies:
            api.delete(policy, missing_ok=True)
    until(lambda: not takes_no_event(api, "tenants cannot"), "the policy is gone")
    assert (code, err.count("\n")) == (0, 1)
    assert "moved migrate migration moved-reunite-1" in out
    assert "Events not written: 1; the first: " in err
    assert "tenants cannot have Events" in err
    assert names(api) == ["moved-reunite-1"]


LACKING: Final = {
    "list pods": ("", "pods", "list", 'cannot list resource "pods"'),
    "list migrations": (
        "kubevirt.io",
        "virtualmachineinstancemigrations",
        "list",
        'cannot list resource "virtualmachineinstancemigrations"',
    ),
}


@pytest.mark.parametrize(("group", "resource", "verb", "words"), LACKING.values(), ids=LACKING)
def test_a_right_that_is_missing_ends_it_with_one_sentence(  # noqa: PLR0917 - a row
    group: str, resource: str, verb: str, words: str, once: Once, installed: Installed
) -> None:
    """At once, with exit code 2: it names the verb, the resource and the ClusterRole. Nothing is written."""
    api = installed.plane.api
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT}}
    rules = api.get(role)["rules"]
    left = [
        {**rule, "verbs": [each for each in rule["verbs"] if each != verb]}
        if group in rule["apiGroups"] and resource in rule["resources"]
        else rule
        for rule in rules
    ]
    api.patch(role, {"rules": [rule for rule in left if rule["verbs"]]})
    try:
        until(lambda: words in (said := once())[2] and said[0] == 2, "the right is taken away")
        code, out, err = once()
    finally:
        api.patch(role, {"rules": rules})
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert f"ClusterRole {ACCOUNT}" in err
    until(lambda: once()[0] == 0, "the right is back")


def test_without_the_right_to_create_events_a_run_ends_with_2(once: Once, installed: Installed) -> None:
    """Unlike a policy's refusal, this is of the install. What the run has decided is done."""
    api = installed.plane.api
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT}}
    rules = api.get(role)["rules"]
    api.patch(
        role, {"rules": [{**rule, "verbs": ["list"]} if "events" in rule["resources"] else rule for rule in rules]}
    )
    user = installed.plane.as_user(installed.plane.service_account(NAME, ACCOUNT))
    try:
        until(lambda: takes_no_event(user, "cannot create resource"), "the right is taken away")
        code, out, err = once()
    finally:
        api.patch(role, {"rules": rules})
    until(lambda: once()[0] == 0, "the right is back")
    assert (code, err.count("\n")) == (2, 1)
    assert "moved migrate migration moved-reunite-1" in out
    assert f"expected to create Events: the ClusterRole {ACCOUNT} grants it" in err
