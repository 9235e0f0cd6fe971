"""components/restart-stuck: an option of `reunite`, the right to delete pods, and the policy that confines it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import DEFAULT, INSTALLS, NAME, at, copied, identity
from support.drivers.command_lines import command_defaults, values

from webhook import cli
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH

RESTART_STUCK: Final = f"{NAME}-restart-stuck"
ACCOUNT: Final = f"{NAME}-reunite"
CRON_JOB: Final = ("CronJob", NAME, ACCOUNT)
POD: Final = "spec.jobTemplate.spec.template.spec"
_POLICY_KINDS: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
Rendered = dict[tuple[str, str, str], Any]


def rendered(directory: Path, install: str, *components: str) -> Rendered:
    """An install with these components, as a user gets it: their lines are no comments any more."""
    kustomization = copied(directory) / install / "kustomization.yaml"
    text = kustomization.read_text(encoding="utf-8")
    for each in components:
        (line,) = (line for line in text.splitlines() if each in line)
        text = text.replace(line, line.replace("# ", "", 1))
    kustomization.write_text(text, encoding="utf-8")
    return {identity(item): item for item in kustomize(kustomization.parent)}


@pytest.mark.parametrize("install", INSTALLS)
def test_it_switches_the_option_on_and_grants_one_right(install: str, tmp_path: Path) -> None:
    """To the account of `reunite`, everywhere: to delete one pod by its name. Nothing else is added or changed."""
    before = rendered(tmp_path / "before", install, "components/reunite")
    found = rendered(tmp_path / "after", install, "components/reunite", "components/restart-stuck")
    role, binding = ("ClusterRole", "", RESTART_STUCK), ("ClusterRoleBinding", "", RESTART_STUCK)
    policies = {(kind, "", RESTART_STUCK) for kind in _POLICY_KINDS}
    assert found.keys() - before.keys() == {role, binding, *policies}
    assert [key for key in before if before[key] != found[key]] == [CRON_JOB]
    assert found[role]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]
    assert found[binding]["roleRef"]["name"] == RESTART_STUCK
    assert found[binding]["subjects"] == [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAME}]
    arguments = at(f"{POD}.containers.0.args", found[CRON_JOB])
    assert {ACCOUNT} == {at(f"{POD}.serviceAccountName", each[CRON_JOB]) for each in (before, found)}
    assert command_defaults("reunite")["--restart-stuck"] == "off"
    assert values(cli.COMMANDS, *arguments)["restart_stuck"] is True


def test_the_policy_names_what_the_code_names(tmp_path: Path) -> None:
    """The account that has the right, the label of virt-launcher pods, and the record of what the webhook wrote."""
    found = rendered(tmp_path, DEFAULT, "components/restart-stuck")
    policy, binding = (found[kind, "", RESTART_STUCK]["spec"] for kind in _POLICY_KINDS)
    (condition,) = policy["matchConditions"]
    assert f"'^system:serviceaccount:[^:]+:{ACCOUNT}$'" in condition["expression"]
    expressions = " ".join(each["expression"] for each in policy["validations"])
    assert f"?labels[?'{LABEL_APP}'].orValue('') == '{VIRT_LAUNCHER}'" in expressions
    assert f"?annotations[?'{ANNOTATION_APPLIED_PATCH}'].orValue('').contains('\"nodes\":')" in expressions
    assert policy["failurePolicy"] == "Fail"
    assert binding == {"policyName": RESTART_STUCK, "validationActions": ["Deny"]}
