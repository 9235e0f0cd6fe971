"""Every value of the chart, rendered by each helm and taken by a real API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from controlplane import build
from support.control_plane.chart import CHART, render
from support.control_plane.control_plane import ControlPlane

FILES: Final = sorted((CHART / "ci").glob("*.yaml"))
NAMESPACES: Final = ("kubevirt-coschedule", "longhorn-system", "observability", "other", "storage", "12", "1e3", "07")
ONLY_STATIC: Final = {("creator",)}  # of `make manifests`


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, with the kinds of cert-manager and of the Prometheus operator."""
    with ControlPlane(tmp_path_factory.mktemp("own"), scheduler=False) as own:
        crds = [*build.cert_manager_crds(), *build.prometheus_operator_crds()]
        wanted = ("certificates.", "issuers.", "servicemonitors.", "prometheusrules.")
        loaded = (yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader) for file in crds)
        own.install(crd for crd in loaded if crd["metadata"]["name"].startswith(wanted))
        for name in NAMESPACES:
            own.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield own


@pytest.mark.parametrize("major", build.HELM_MAJORS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_api_server_takes_each_object(file: Path, major: int, plane: ControlPlane) -> None:
    """With every field known; nothing of it is kept."""
    objects = render("-f", str(file), major=major)
    assert len(objects) > 8
    for item in objects:
        assert plane.api.create(item, dryRun="All", fieldValidation="Strict")["kind"] == item["kind"]


ODD: Final = """
nameOverride: "off"
namespaceOverride: "12"
longhorn: {namespace: "1e3"}
image: {registry: "[::1]:5000"}
priorityClassName: "7"
webhook: {serviceAccount: {name: "0"}}
certificates: {existing: {secret: "1"}, controller: {serviceAccount: {name: "2"}}}
events: {enabled: true}
monitoring: {enabled: true, namespace: "07", vmApartSeconds: 1000000}
reunite: {enabled: true, serviceAccount: {name: "3"}, startingDeadlineSeconds: 1000000, activeDeadlineSeconds: 1000000}
clientVerification: {enabled: true, configMap: "4", clientName: "a: b #c"}
"""


@pytest.mark.parametrize("major", build.HELM_MAJORS)
@pytest.mark.parametrize("issuer", ["controller", "cert-manager", "existing"])
def test_words_stay_words_and_numbers_numbers(issuer: str, major: int, plane: ControlPlane, tmp_path: Path) -> None:
    """YAML reads a word of digits as a number, and some words as true. Helm writes a million as 1e+06."""
    (tmp_path / "odd.yaml").write_text(ODD, encoding="utf-8")
    for item in render("-f", str(tmp_path / "odd.yaml"), f"--set=certificates.issuer={issuer}", major=major):
        assert plane.api.create(item, dryRun="All", fieldValidation="Strict")["kind"] == item["kind"]


def test_each_value_has_another_value_in_one_of_the_files() -> None:
    """A new value without one makes this fail."""
    defaults = dict(leaves(values(CHART / "values.yaml")))
    changed = {path for file in FILES for path, value in leaves(values(file)) if defaults.get(path) != value}
    missing = {path for path in defaults if not any(path == each[: len(path)] for each in changed)}
    assert missing == ONLY_STATIC


def values(file: Path) -> Mapping[str, Any]:
    """What a file of values says."""
    found: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def leaves(node: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each value that has no values below it, by its path."""
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value
