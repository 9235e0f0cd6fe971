"""An option that is switched off: its line is a comment again, and one command deletes the objects of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.chart import NO_SWITCH, components
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import DEFAULT, MANIFESTS, ROOT, copied, identity

PAGE: Final = ROOT / "docs/install/kustomize.md"
ADDS_OBJECTS: Final = ("events", "monitoring", "network-policy", "reunite")
Identities = set[tuple[str, str, str]]


def of_install(directory: Path, component: str, *, on: bool) -> Identities:
    """The objects of the default install with or without this component."""
    kustomization = copied(directory) / "kustomization.yaml"
    text = kustomization.read_text(encoding="utf-8")
    (line,) = re.findall(rf"^  (?:# )?- components/{component}\b(?!-).*$", text, re.MULTILINE)
    plain = line.strip().removeprefix("# ")
    changed = f"  {plain}" if on else f"  # {plain}"
    kustomization.write_text(text.replace(line, changed), encoding="utf-8")
    return set(map(identity, kustomize(kustomization.parent)))


@pytest.mark.parametrize("component", [each for each in components(DEFAULT) if each not in NO_SWITCH])
def test_the_command_deletes_what_the_component_adds(component: str, tmp_path: Path) -> None:
    """`kubectl delete -k` of the component names these objects and no other."""
    on, off = (of_install(tmp_path / str(state), component, on=state) for state in (True, False))
    added = on - off
    assert bool(added) is (component in ADDS_OBJECTS)
    if added:
        assert set(map(identity, kustomize(MANIFESTS / "components" / component))) == added


def test_the_page_has_the_command_of_each_of_them() -> None:
    """And of no other."""
    named = re.findall(r"kubectl delete --ignore-not-found -k manifests/components/(\S+)", PAGE.read_text("utf-8"))
    assert sorted(named) == sorted(ADDS_OBJECTS)


def test_argo_cd_deletes_them_by_itself() -> None:
    """As Flux does."""
    text = PAGE.read_text(encoding="utf-8")
    assert re.search(r"automated: \{.*prune: true.*\}", text)
    assert re.search(r"^  prune: true$", text, re.MULTILINE)
