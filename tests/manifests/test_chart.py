"""manifests/ is what the real helm makes of the chart, and a line of its kustomization does what a value does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from controlplane.build import HELM_MAJORS
from support.control_plane.chart import CHART, ISSUER, OF_HELM, all_on, render, switch, without_helm
from support.control_plane.rendering import (
    AUDIT,
    CLIENT_VERIFICATION,
    DEFAULT,
    EVENTS,
    INSTALLS,
    MANIFESTS,
    NAME,
    OPT_IN_ALL,
    OPTIONS,
    identity,
    installed,
    kustomize,
    with_options,
)
from support.drivers.releasing import manifests

from webhook import __version__

NAMESPACE: Final = ("Namespace", "", NAME)  # `helm install --create-namespace` makes it
POLICY: Final = "ValidatingAdmissionPolicy"
Objects = Mapping[tuple[str, str, str], Mapping[str, Any]]

each_install = pytest.mark.parametrize("install", INSTALLS)


def by_identity(objects: Iterable[Mapping[str, Any]]) -> Objects:
    """The objects that both ways of install make, without what is known to differ: whose requests a policy confines."""
    kept = {identity(item): dict(item) for item in objects if identity(item) != NAMESPACE}
    for (kind, *_), item in kept.items():
        if kind == POLICY:
            item["spec"] = {**item["spec"], "matchConditions": None}
    return kept


def chart(install: str, *words: str, major: int = 3) -> Objects:
    """The objects of the chart, without the labels that only helm's objects have."""
    return by_identity(map(without_helm, render(ISSUER[install], *words, major=major)))


def test_the_files_are_rendered_from_the_chart() -> None:
    """Each is what `make manifests` writes, and says where it comes from."""
    made = manifests()
    assert {name: (MANIFESTS / name).read_text(encoding="utf-8") for name in made} == made
    assert {path.name for path in MANIFESTS.glob("*.yaml")} == {*made, "kustomization.yaml"}
    assert {text.splitlines()[0].partition(": ")[0] for text in made.values()} == {
        f"# From charts/{NAME} by `make manifests`"
    }


@each_install
@pytest.mark.parametrize("major", HELM_MAJORS)
def test_by_default_the_chart_is_the_manifests(install: str, major: int) -> None:
    """The same objects, field by field, by each helm. Only the namespace is not in the chart."""
    assert NAMESPACE in map(identity, installed(install))
    assert chart(install, major=major) == by_identity(installed(install))
    for item in render(major=major):
        assert item["metadata"]["labels"].keys() >= set(OF_HELM)


@each_install
def test_the_kustomization_is_the_install(install: str, tmp_path: Path) -> None:
    """And it needs nothing outside of its folder."""
    assert by_identity(kustomize(with_options(tmp_path, install=install))) == by_identity(installed(install))


@each_install
@pytest.mark.parametrize("option", OPTIONS)
def test_each_option_is_a_value(install: str, option: str, tmp_path: Path) -> None:
    """Switching it on makes the same of the chart as of the manifests."""
    expected = by_identity(kustomize(with_options(tmp_path, option, install=install)))
    assert expected != by_identity(installed(install))
    assert chart(install, switch(option)) == expected


def test_options_stand_together_as_in_the_manifests(tmp_path: Path) -> None:
    """The order of options and of the entries of the webhook configuration is the same."""
    several = (AUDIT, EVENTS, OPT_IN_ALL, CLIENT_VERIFICATION, "reunite")
    together = chart(DEFAULT, *map(switch, several))
    assert together == by_identity(kustomize(with_options(tmp_path, *several)))


def test_the_chart_has_this_version() -> None:
    """The version of the chart, of the program, and of the image."""
    described = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (described["version"], described["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize("value", ["", "namespaceOverride"])
@each_install
def test_the_namespace_is_the_release_s_or_another(install: str, value: str) -> None:
    """In another namespace the objects are the same, and none names the namespace of manifests/ any more."""
    words = (ISSUER[install], *all_on())
    given = {"namespace": "elsewhere"} if not value else {}
    here = yaml.dump_all(render(*words), Dumper=yaml.CSafeDumper)
    moved = render(*words, *([f"--set={value}=elsewhere"] if value else []), **given)
    there = yaml.dump_all(moved, Dumper=yaml.CSafeDumper)
    assert there.replace("elsewhere", NAME) == here
    left = (
        rf"namespace: {NAME}$",
        rf"[.]{NAME}\b(?![.]io)",
        rf"[ =]{NAME}/",
        rf"serviceaccount:{NAME}:",
        rf"(?:values|matchNames):\n +- {NAME}$",
    )
    assert [found for pattern in left for found in re.findall(pattern, there, re.MULTILINE)] == []
    assert all(re.search(pattern, here, re.MULTILINE) for pattern in left[:2])


@pytest.mark.parametrize("value", ["nameOverride", "fullnameOverride"])
@each_install
def test_every_object_has_another_name_if_asked(install: str, value: str) -> None:
    """Except for two that a cluster has once. What refers to an object follows, and no selector changes."""
    here, there = (
        {identity(item)[::2]: item for item in render(ISSUER[install], *all_on(), *words)}
        for words in ([], [f"--set={value}=other"])
    )
    fixed = {("MutatingWebhookConfiguration", NAME), ("PriorityClass", NAME)}
    assert there.keys() == {(kind, name.replace(NAME, "other")) for kind, name in here.keys() - fixed} | fixed
    text = yaml.dump_all(there.values(), Dumper=yaml.CSafeDumper)
    assert re.findall(rf"(?:serviceAccountName|secretName|policyName|key): {NAME}|{NAME}-(?:certs|tls)", text) == []


def test_the_namespace_of_longhorn_is_a_value() -> None:
    """Its Roles, the selector of its pods, and the option of both programs follow."""
    here, there = (
        yaml.dump_all(render(f"--set=longhorn.namespace={namespace}", *all_on()), Dumper=yaml.CSafeDumper)
        for namespace in ("longhorn-system", "storage-of-ours")
    )
    assert "longhorn-system" not in there
    assert there.replace("storage-of-ours", "longhorn-system") == here
