"""What a user applies is what each Kubernetes takes: every built-in object against its schemas, offline."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml
from support.control_plane import rendering
from support.control_plane.chart import ISSUER, all_on, render
from support.control_plane.rendering import MANIFESTS, Object
from support.tested_versions import MINORS

OF_OTHERS: Final = ("longhorn.io/", "kubevirt.io/", "cert-manager.io/", "monitoring.coreos.com/")
"""API groups that are not in a release of Kubernetes."""


def schema_errors(objects: list[Object], minor: str) -> list[str]:
    """A line for each object that the schemas of this minor refuse; unknown fields count."""
    errors = []
    for item in objects:
        try:
            used = kubernetes_validate.validate(item, minor, strict=True)
        except kubernetes_validate.ValidationError as error:
            errors.append(f"{item['kind']} {item['metadata']['name']}: {list(error.path)}: {error.message}")
        else:
            assert used == minor, "the schemas of this minor are not there; older ones were taken"
    return errors


def examples() -> Iterator[Object]:
    """The built-in objects of manifests/examples, the pods in the reviews too."""
    for file in sorted(MANIFESTS.glob("examples/**/*.yaml")):
        for item in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
            if "apiVersion" not in item or item["apiVersion"].startswith(OF_OTHERS):
                continue
            yield named(item["request"]["object"]) if item["kind"] == "AdmissionReview" else completed(item)


def named(pod: Object) -> Object:
    """A pod as it is stored: at admission it has no name yet."""
    return pod | {"metadata": {"name": "x", **pod["metadata"]}}


def completed(item: Object) -> Object:
    """An object of the example cluster, which leaves out what no rule reads, with what a pod can't be without."""
    if item["kind"] != "Pod":
        return item
    return item | {"spec": {"containers": [{"name": "x", "image": "x"}], **item["spec"]}}


@pytest.fixture(scope="module")
def of_the_chart() -> list[Object]:
    """The built-in objects of the chart with every component, of either issuer, and the pod of `helm test`."""
    made = [item for issuer in ISSUER.values() for item in render(issuer, *all_on(), test=True)]
    once = {json.dumps(item): item for item in made if not item["apiVersion"].startswith(OF_OTHERS)}
    return list(once.values())


@pytest.mark.parametrize("minor", MINORS)
def test_every_object_of_the_chart_fits_the_schema(minor: str, of_the_chart: list[Object]) -> None:
    """With every component. Those of an install by kubectl are among them (test_chart.py)."""
    assert "Pod" in {item["kind"] for item in of_the_chart}
    assert schema_errors(of_the_chart, minor) == []


@pytest.mark.parametrize("minor", MINORS)
def test_every_object_of_the_examples_fits_the_schema(minor: str) -> None:
    """They are copied from: what they show must be right."""
    found = list(examples())
    assert {item["kind"] for item in found} == {
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
    }
    assert schema_errors(found, minor) == []


SPOILERS: Final[dict[str, Callable[[Any], object]]] = {
    "a field that is misspelt": lambda spec: spec.update(replica=2),
    "a value of the wrong type": lambda spec: spec.update(replicas="two"),
    "a field that is required, and not there": lambda spec: spec.pop("selector"),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_a_spoilt_object_does_not_fit(spoil: Callable[[Any], object]) -> None:
    """Else the tests above would be satisfied with anything."""
    spoilt = copy.deepcopy(dict(rendering.the("Deployment")))
    spoil(spoilt["spec"])
    assert len(schema_errors([spoilt], MINORS[-1])) == 1


def test_the_example_vm_comes_with_its_claim() -> None:
    """The VM names a claim of the same file and namespace, ReadWriteMany and not Block, and asks in its template."""
    text = (MANIFESTS / "examples" / "virtual-machine.yaml").read_text(encoding="utf-8")
    objects: dict[str, Mapping[str, Any]] = {item["kind"]: item for item in yaml.safe_load_all(text)}
    claim, vm = objects["PersistentVolumeClaim"], objects["VirtualMachine"]
    volume = "spec.template.spec.volumes.0.persistentVolumeClaim.claimName"
    assert rendering.at(volume, vm) == claim["metadata"]["name"]
    assert vm["metadata"]["namespace"] == claim["metadata"]["namespace"]
    assert (claim["spec"]["accessModes"], claim["spec"]["volumeMode"]) == (["ReadWriteMany"], "Filesystem")
    assert vm["spec"]["template"]["metadata"]["annotations"] == {"kubevirt-scheduler/co-schedule": "true"}
