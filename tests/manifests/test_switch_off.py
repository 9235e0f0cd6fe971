"""An option that is switched off: its line is a comment again, and one command deletes the objects of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.rendering import OPTIONS, ROOT, identity, installed, kustomize, with_options

PAGE: Final = ROOT / "docs/install/kustomize.md"
ADDS_OBJECTS: Final = ("events", "monitoring", "reunite")


@pytest.mark.parametrize("option", OPTIONS)
def test_the_command_deletes_what_the_option_adds(option: str, tmp_path: Path) -> None:
    """`kubectl delete -f` of the file names these objects and no other."""
    added = set(map(identity, kustomize(with_options(tmp_path, option)))) - set(map(identity, installed()))
    assert added == (set(map(identity, installed(f"{option}.yaml"))) if option in ADDS_OBJECTS else set())


def test_the_page_has_the_command_of_each_of_them() -> None:
    """And of no other."""
    named = re.findall(r"kubectl delete --ignore-not-found -f manifests/(\S+)[.]yaml", PAGE.read_text("utf-8"))
    assert sorted(named) == sorted(ADDS_OBJECTS)


def test_argo_cd_deletes_them_by_itself() -> None:
    """As Flux does."""
    text = PAGE.read_text(encoding="utf-8")
    assert re.search(r"automated: \{.*prune: true.*\}", text)
    assert re.search(r"^  prune: true$", text, re.MULTILINE)
