"""Which VMs ask for co-scheduling, as a run of `reunite` knows it."""

from __future__ import annotations

import json

import pytest
from support.objects.builders_pods import webhook_pod
from support.scenarios import vm_scenes
from support.scenarios.reunite_runs import KUBEVIRT, of, vmi, went

from webhook.component_base.errors import UserError
from webhook.core.observe.vm_status import State, VMStatus
from webhook.objects.kinds import WEBHOOK_CONFIGURATION
from webhook.objects.objects import BundleList, ClusterBundle
from webhook.reunite import reports
from webhook.reunite.vm import parts


def test_a_vm_whose_state_is_not_known_is_not_denied_to_be_apart() -> None:
    """Its count stands beside it."""
    rows = [VMStatus(namespace="vms", name=state, state=state) for state in (State.UNKNOWN, State.FREE)]
    told = "nothing to do: 2 VMs in any namespace, none known to be apart (1 unknown, 1 free)"
    assert reports.nothing_to_do(rows, " in any namespace") == told


@pytest.mark.parametrize(
    ("asks", "stated", "option", "told"),
    [
        (False, "--opt-in-all=true", None, ["moved"]),
        (False, "--opt-in-all=true", "off", []),
        (False, "--opt-in-all=off", "true", ["moved"]),
        (False, "--mode=required", None, []),
        (True, "--mode=off", None, []),
    ],
)
def test_the_settings_of_the_webhook_count_unless_the_option_does(
    asks: bool,  # noqa: FBT001 - a column
    stated: str,
    option: str | None,
    told: list[str],
) -> None:
    """`status` reads them, too, and advises this program. The CronJob has the option: a pod can be anybody's."""
    text = json.dumps(vm_scenes.scenes())
    objects = json.loads(text if asks else text.replace("kubevirt-scheduler/co-schedule", "another"))
    run = went(of(*objects, vmi(), KUBEVIRT, webhook_pod(stated)), opt_in_all=option)
    assert [each.row.name for each in run.reports] == told


def test_without_the_option_the_configuration_must_be_readable() -> None:
    """It says which pods are the webhook's: anybody may give their labels to a pod."""
    found = of(*vm_scenes.scenes(), vmi(), KUBEVIRT, webhook_pod("--opt-in-all=true"))
    denied = {WEBHOOK_CONFIGURATION: "403 Forbidden"}
    lists = [BundleList(resource=each.kind.title, problem=denied.get(each.kind, "")) for each in parts(of_webhook=True)]
    found.objects.bundle = ClusterBundle(
        cluster="c", at="2026-11-22T12:00:00Z", namespace="", longhorn_namespace="", lists=lists
    )
    with pytest.raises(UserError, match="403 Forbidden; expected to read it, or --opt-in-all"):
        went(found)
    assert went(found, opt_in_all="off").reports
