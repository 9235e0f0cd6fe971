"""manifests/components/audit: one line of the kustomization switches it on, and off again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import AUDIT, INSTALLS, at, identity, installed, with_component
from support.drivers.command_lines import values

from webhook import cli

ARGUMENTS = "spec.template.spec.containers.0.args"


@pytest.mark.parametrize("install", INSTALLS)
def test_audit_is_one_flag(install: str, tmp_path: Path) -> None:
    """No right and no other object changes. Without the component the webhook acts."""
    before = {identity(item): item for item in installed(install)}
    after = {identity(item): item for item in kustomize(with_component(AUDIT, tmp_path, install))}
    assert after.keys() == before.keys()
    [changed] = [key for key in before if before[key] != after[key]]
    assert at(ARGUMENTS, after[changed]) == [*at(ARGUMENTS, before[changed]), "--audit=on"]
    assert [values(cli.COMMANDS, *at(ARGUMENTS, each[changed]))["audit"] for each in (before, after)] == [False, True]
