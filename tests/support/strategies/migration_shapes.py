"""Admissions of migration targets: the scenarios of start pods, with what KubeVirt adds to a target, and its source."""

from __future__ import annotations

import copy
import dataclasses
from typing import Final

from hypothesis import strategies as st
from support.objects.builders import OWNER_UID, vm_pod
from support.strategies.affinity_shapes import NODES, odds, some
from support.strategies.strategies import NAMESPACE, Scenario, scenarios

from webhook.core.admit import Entry

SELECTOR: Final = {"kubernetes.io/hostname": "somewhere"}
OWNERS: Final = [{"kind": "VirtualMachineInstance", "name": "db01", "uid": OWNER_UID}]
_JOB: Final = "kubevirt.io/migrationJobUID"


@st.composite
def migrations(draw: st.DrawFn) -> Scenario:
    """A pod that is mostly the target of a migration, and the pod in which its VM runs, on a node or not known."""
    scenario = draw(scenarios())
    pod, source = copy.deepcopy(scenario.pod), draw(some(*NODES, "ghost"))
    meta = pod["metadata"]
    own = meta.get("labels") or {}
    meta["labels"] = {**own, _JOB: "job", "kubevirt.io/nodeName": source}
    meta["ownerReferences"] = OWNERS
    if draw(odds(8)):
        del meta["labels"][draw(some(_JOB, "kubevirt.io/nodeName"))]
    if draw(odds(8)):
        pod["spec"]["nodeSelector"] = SELECTOR
    running = vm_pod("running", vm="db01", uid=OWNER_UID, node=source, claims=["c0"], namespace=NAMESPACE)
    if draw(odds(4)):
        running["spec"]["nodeSelector"] = SELECTOR
    if draw(odds(8)):
        running["spec"]["nodeName"] = draw(some(*NODES))
    objects = scenario.objects if draw(odds(8)) else (*scenario.objects, running)
    return dataclasses.replace(scenario, pod=pod, objects=objects, entry=Entry.MIGRATION_TARGET)
