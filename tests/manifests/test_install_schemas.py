"""What a user applies is what Kubernetes and cert-manager take: every object against their schemas, offline."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml
from controlplane import build
from support.control_plane import rendering
from support.control_plane.chart import ISSUER, all_on, render
from support.control_plane.custom_schemas import custom_schema_errors
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import CERT_MANAGER, MANIFESTS, OPTIONS, Object, installed
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
def with_every_option(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """The built-in objects of the install with every option."""
    folder = rendering.with_options(tmp_path_factory.mktemp("options"), *OPTIONS)
    return [item for item in kustomize(folder) if not item["apiVersion"].startswith(OF_OTHERS)]


@pytest.mark.parametrize("minor", MINORS)
def test_every_object_of_every_option_fits_the_schema(minor: str, with_every_option: list[Object]) -> None:
    """What the options add, and what they patch in."""
    assert len(with_every_option) > len(installed())
    assert schema_errors(with_every_option, minor) == []


@pytest.fixture(scope="module", params=ISSUER.values(), ids=ISSUER)
def of_the_chart(request: pytest.FixtureRequest) -> list[Object]:
    """The built-in objects of the chart with every component, and the pod of `helm test`."""
    return [
        item for item in render(request.param, *all_on(), test=True) if not item["apiVersion"].startswith(OF_OTHERS)
    ]


@pytest.mark.parametrize("minor", MINORS)
def test_every_object_of_the_chart_fits_the_schema(minor: str, of_the_chart: list[Object]) -> None:
    """Also those that no install by kubectl has."""
    assert "Pod" in {item["kind"] for item in of_the_chart}
    assert schema_errors(of_the_chart, minor) == []


def of_cert_manager(spoil: Callable[[Any], None] = lambda _: None) -> list[str]:
    """What cert-manager's schemas find wrong in its objects of our install, each of them spoilt first."""
    objects = [item for item in installed(CERT_MANAGER) if item["apiVersion"] == "cert-manager.io/v1"]
    return custom_schema_errors(build.cert_manager_crds(), objects, spoil)


def test_every_object_of_cert_manager_s_fits_its_schema() -> None:
    """By the CustomResourceDefinitions that are made from cert-manager's own API."""
    assert of_cert_manager() == []


CERT_MANAGER_SPOILERS: Final = {
    "a field that is misspelt": (lambda spec: spec.update(dnsName=["x"]), 4),
    "a value of the wrong type": (lambda spec: spec.update(isCA="yes"), 4),
    "a field that is required, and not there": (lambda spec: spec.pop("secretName", None), 2),
    "a word that is none": (lambda spec: spec.get("privateKey", {}).update(algorithm="EC"), 2),
}


@pytest.mark.parametrize(("spoil", "errors"), CERT_MANAGER_SPOILERS.values(), ids=CERT_MANAGER_SPOILERS)
def test_a_spoilt_object_of_cert_manager_s_does_not_fit(spoil: Callable[[Any], None], errors: int) -> None:
    """Else the test above would be satisfied with anything."""
    assert len(of_cert_manager(spoil)) == errors


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
