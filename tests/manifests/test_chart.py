"""The Helm chart, rendered by the real helm: the same objects as manifests/, component by component.

Components are found in manifests/components.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.control_plane.chart import (
    CHART,
    ISSUER,
    NO_SWITCH,
    OF_HELM,
    all_on,
    components,
    render,
    switch,
    value_of,
    without_helm,
)
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import (
    DEFAULT,
    INSTALLS,
    MANIFESTS,
    NAME,
    copied,
    identity,
    installed,
)

from webhook import __version__

NAMESPACE: Final = ("Namespace", "", NAME)  # `helm install --create-namespace` makes it
VALUES: Final[Mapping[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
Objects = Mapping[tuple[str, str, str], Mapping[str, Any]]

each_install = pytest.mark.parametrize("install", INSTALLS)


def switched(directory: Path, install: str, changed: Iterable[str]) -> Objects:
    """The install, after the lines of these components have become comments, or ceased to be comments."""
    folder = copied(directory) / install
    kustomization = folder / "kustomization.yaml"
    text = kustomization.read_text(encoding="utf-8")
    for component in changed:
        (line,) = re.findall(rf"^  (?:# )?- (?:\.\./)*components/{component}\b(?!-).*$", text, re.MULTILINE)
        text = text.replace(line, line.replace("# ", "", 1) if line.startswith("  #") else f"  # {line.strip()}")
    kustomization.write_text(text, encoding="utf-8")
    return by_identity(kustomize(folder))


def by_identity(objects: Iterable[Mapping[str, Any]]) -> Objects:
    """The objects that both ways of install make."""
    return {identity(item): item for item in objects if identity(item) != NAMESPACE}


def chart(install: str, *words: str) -> Objects:
    """The objects of the chart, without the labels that only helm's objects have."""
    return by_identity(map(without_helm, render(ISSUER[install], *words)))


@each_install
def test_by_default_the_chart_is_the_manifests(install: str) -> None:
    """The same objects, field by field. Only the namespace is not in the chart."""
    assert NAMESPACE in map(identity, installed(install))
    assert chart(install) == by_identity(installed(install))
    for item in render():
        assert item["metadata"]["labels"].keys() >= set(OF_HELM)


def test_each_component_is_in_the_kustomization() -> None:
    """So the next test knows of every component. The others have a test of their own."""
    folders = {folder.name for folder in (MANIFESTS / "components").iterdir()}
    assert folders == set(components(DEFAULT))


@pytest.mark.parametrize(
    ("install", "component"),
    [(install, component) for install in INSTALLS for component in components(install) if component not in NO_SWITCH],
)
def test_each_component_is_a_value(install: str, component: str, tmp_path: Path) -> None:
    """Switching it on, or off where it is on, makes the same of the chart as of the manifests."""
    is_on = components(install)[component]
    assert VALUES.get(value_of(component), {}).get("enabled") is is_on, (
        f"manifests/components/{component} has no value in the chart: values.yaml needs {value_of(component)}.enabled, "
        f"{str(is_on).lower()} as in manifests/kustomization.yaml, and values.schema.json and the templates need it too"
    )
    expected = switched(tmp_path, install, [component])
    assert expected != by_identity(installed(install))
    assert chart(install, switch(component, on=not is_on)) == expected


def test_components_stand_together_as_in_the_manifests(tmp_path: Path) -> None:
    """The order of options and of the entries of the webhook configuration is the same."""
    several = (
        "audit",
        "events",
        "reunite",
        "client-verification",
    )
    together = chart(DEFAULT, *(switch(each, on=True) for each in several))
    assert together == switched(tmp_path, DEFAULT, several)


def test_the_chart_has_this_version() -> None:
    """The version of the chart, of the program, and of the image."""
    described = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (described["version"], described["appVersion"]) == (__version__, __version__)


@each_install
def test_the_namespace_is_the_release_s(install: str) -> None:
    """In another namespace the objects are the same, and none names the namespace of manifests/ any more."""
    words = (ISSUER[install], *all_on())
    here, there = (
        yaml.dump_all(render(*words, namespace=namespace), Dumper=yaml.CSafeDumper) for namespace in (NAME, "elsewhere")
    )
    assert there.replace("elsewhere", NAME) == here
    left = (
        rf"namespace: {NAME}$",
        rf"[.]{NAME}\b(?![.]io)",
        rf"[ =]{NAME}/",
        rf"(?:values|matchNames):\n +- {NAME}$",
    )
    assert [found for pattern in left for found in re.findall(pattern, there, re.MULTILINE)] == []
    assert all(re.search(pattern, here, re.MULTILINE) for pattern in left[:2])


def test_the_namespace_of_longhorn_is_a_value() -> None:
    """Its Roles, the selector of its pods, and the option of both programs follow."""
    here, there = (
        yaml.dump_all(render(f"--set=longhorn.namespace={namespace}", *all_on()), Dumper=yaml.CSafeDumper)
        for namespace in ("longhorn-system", "storage-of-ours")
    )
    assert "longhorn-system" not in there
    assert there.replace("storage-of-ours", "longhorn-system") == here
