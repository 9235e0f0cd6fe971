"""The monitoring component at a real API server that has the Prometheus operator's definitions."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Final

import pytest
import yaml
from controlplane import build
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Object
from support.control_plane.rendering import installed as rendered

KINDS: Final = ("ServiceMonitor", "PrometheusRule")


@pytest.fixture(scope="module")
def operated(installed: Installed) -> Iterator[ControlPlane]:
    """A control plane that takes the operator's objects, and has our namespace."""
    plane = installed.plane
    crds = [yaml.load(file.read_text("utf-8"), yaml.CSafeLoader) for file in build.prometheus_operator_crds()]
    wanted = [crd for crd in crds if crd["spec"]["names"]["kind"] in KINDS]
    assert len(wanted) == len(KINDS)
    plane.install(wanted)
    yield plane
    for crd in wanted:
        plane.api.delete(crd)


def added() -> list[Object]:
    """What monitoring.yaml adds to an install."""
    return [copy.deepcopy(dict(item)) for item in rendered("monitoring.yaml")]


def test_the_component_is_taken_as_it_is(operated: ControlPlane) -> None:
    """With every field known, and every rule of the definitions kept; nothing of it is kept here."""
    objects = added()
    assert {item["kind"] for item in objects} == {*KINDS, "Service", "ConfigMap"}
    for item in objects:
        created = operated.api.create(item, dryRun="All", fieldValidation="Strict")
        assert created["metadata"]["name"] == item["metadata"]["name"]


def test_a_field_that_is_none_is_refused(operated: ControlPlane) -> None:
    """Else the test above would be satisfied with anything."""
    (rule,) = [item for item in added() if item["kind"] == "PrometheusRule"]
    rule["spec"]["groups"][0]["rules"][0]["fore"] = "5m"
    with pytest.raises(ApiError, match="unknown field"):
        operated.api.create(rule, dryRun="All", fieldValidation="Strict")
