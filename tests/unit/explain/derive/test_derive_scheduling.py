"""derive_virt_launcher: the fields of the pod of a VM that restrict its nodes."""

from __future__ import annotations

from typing import Any

import pytest
from support.objects.deriving import a_vm, a_vmi, derived

OBSOLETE = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
PASSTHROUGH = {"domain": {"cpu": {"model": "host-passthrough"}}}


SELECTOR_ROWS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "always": ({}, {}),
    "the machine's own": ({"nodeSelector": {"disk": "ssd"}}, {"disk": "ssd"}),
    "its own over KubeVirt's": ({"nodeSelector": {"kubevirt.io/schedulable": "no"}}, {"kubevirt.io/schedulable": "no"}),
    "architecture": ({"architecture": "AMD64"}, {"kubernetes.io/arch": "amd64"}),
    "machine type": ({"domain": {"machine": {"type": "q35"}}}, {"machine-type.node.kubevirt.io/q35": "true"}),
    "machine without a type": ({"domain": {"machine": {}}}, {}),
    "named CPU model": ({"domain": {"cpu": {"model": "Haswell"}}}, {"cpu-model.node.kubevirt.io/Haswell": "true"}),
    "host-model": ({"domain": {"cpu": {"model": "host-model"}}}, {}),
    "host-passthrough": (PASSTHROUGH, {}),
    "CPU without a model": ({"domain": {"cpu": {}}}, {}),
}


@pytest.mark.parametrize(("spec", "selector"), SELECTOR_ROWS.values(), ids=SELECTOR_ROWS)
def test_what_the_node_selector_asks_for(spec: dict[str, Any], selector: dict[str, str]) -> None:
    """KubeVirt's own label, the VM's selector, and the labels for architecture, CPU model and machine type."""
    assert derived(a_vm(spec)).pod["spec"]["nodeSelector"] == {"kubevirt.io/schedulable": "true", **selector}


@pytest.mark.parametrize(("status", "type_"), [({"type": "pc-q35"}, "pc-q35"), ({}, "q35"), (None, "q35")])
def test_a_running_vmi_has_its_machine_type_in_the_status(status: Any, type_: str) -> None:
    """The status of a VMI has the exact machine type with which it was started."""
    vmi = a_vmi({"domain": {"machine": {"type": "q35"}}}, status={"machine": status})
    keys = [key for key in derived(vmi).pod["spec"]["nodeSelector"] if key.startswith("machine-type")]
    assert keys == [f"machine-type.node.kubevirt.io/{type_}"]


def terms(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required node affinity of these terms."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


INTER_POD = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}}
WISH = {PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]}
OBSOLETE_TERMS = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [OBSOLETE]}]}}
AFFINITY_ROWS: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
    "none": (None, {"nodeAffinity": OBSOLETE_TERMS}),
    "empty": ({}, {"nodeAffinity": OBSOLETE_TERMS}),
    "other than of nodes": (INTER_POD, {**INTER_POD, "nodeAffinity": OBSOLETE_TERMS}),
    "preferred only": ({"nodeAffinity": WISH}, {"nodeAffinity": {**WISH, **OBSOLETE_TERMS}}),
    "one term": (terms({"matchExpressions": [ZONE]}), terms({"matchExpressions": [ZONE, OBSOLETE]})),
    "two terms": (
        terms({"matchExpressions": [ZONE]}, {"matchFields": [ZONE]}),
        terms({"matchExpressions": [ZONE, OBSOLETE]}, {"matchFields": [ZONE], "matchExpressions": [OBSOLETE]}),
    ),
    "an empty term": (terms({}), terms({"matchExpressions": [OBSOLETE]})),
    "no terms": (terms(), terms()),
    "no list of terms": ({"nodeAffinity": {REQUIRED: {}}}, terms()),
}


@pytest.mark.parametrize("cpu", [None, {"model": "host-model"}], ids=["unset", "host-model"])
@pytest.mark.parametrize(("own", "affinity"), AFFINITY_ROWS.values(), ids=AFFINITY_ROWS)
def test_a_host_model_cpu_keeps_away_from_obsolete_host_models(own: Any, affinity: Any, cpu: Any) -> None:
    """Each required term gets the exclusion, or it is the only term; the rest of the affinity stays."""
    vm = a_vm({"affinity": own, "domain": {"cpu": cpu}})
    assert derived(vm).pod["spec"]["affinity"] == affinity


@pytest.mark.parametrize("model", ["host-passthrough", "Haswell"])
def test_other_cpu_models_leave_the_affinity_as_it_is(model: str) -> None:
    """A named model or host-passthrough adds no term, and no affinity to a VM without one."""
    domain = {"cpu": {"model": model}}
    own = terms({"matchExpressions": [ZONE]})
    assert derived(a_vm({"domain": domain, "affinity": own})).pod["spec"]["affinity"] == own
    assert "affinity" not in derived(a_vm({"domain": domain})).pod["spec"]


CARRIED = {
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}],
    "resourceClaims": [{"name": "gpu"}],
}


@pytest.mark.parametrize("field", CARRIED)
def test_a_field_is_carried_over_untouched(field: str) -> None:
    """Tolerations, spread constraints and resource claims reach the pod unchanged; unset fields stay absent."""
    value = CARRIED[field]
    assert derived(a_vm({field: value})).pod["spec"][field] == value
    assert field not in derived(a_vm({field: None})).pod["spec"]
