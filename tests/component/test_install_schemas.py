"""What a user applies is what Kubernetes takes: every built-in object against the published schemas, offline."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

import kubernetes_validate
import pytest
import rendering
import yaml
from rendering import MANIFESTS, Object

MINORS: Final = ("1.30", "1.32", "1.34", "1.36", "1.37")
"""From the first with matchConditions in its stable API on."""

OF_OTHERS: Final = ("longhorn.io/", "kubevirt.io/")  # their schemas are in no release of Kubernetes


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
        for item in yaml.safe_load_all(file.read_text(encoding="utf-8")):
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


@pytest.mark.parametrize("minor", MINORS)
def test_every_object_of_the_install_fits_the_schema(minor: str) -> None:
    """A misspelt field would be dropped without a word by an API server."""
    assert schema_errors(list(map(dict, rendering.installed())), minor) == []


@pytest.mark.parametrize("minor", [MINORS[0], MINORS[-1]])
def test_every_object_of_the_examples_fits_the_schema(minor: str) -> None:
    """They are copied from: what they show must be right."""
    found = list(examples())
    assert {item["kind"] for item in found} == {"Node", "PersistentVolume", "PersistentVolumeClaim", "Pod"}
    assert schema_errors(found, minor) == []


def without_image_policy(deployment: Any) -> None:
    """A field that is misspelt."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["imagePullPolice"] = container.pop("imagePullPolicy")


def with_text_for_a_number(deployment: Any) -> None:
    """A value of the wrong type."""
    deployment["spec"]["replicas"] = "two"


def without_selector(deployment: Any) -> None:
    """A field that is required, and not there."""
    del deployment["spec"]["selector"]


@pytest.mark.parametrize("spoil", [without_image_policy, with_text_for_a_number, without_selector])
def test_a_spoilt_object_does_not_fit(spoil: Any) -> None:
    """Else the tests above would be satisfied with anything."""
    spoilt = copy.deepcopy(dict(rendering.the("Deployment")))
    spoil(spoilt)
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
