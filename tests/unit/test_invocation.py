"""The commands that messages suggest, for the cluster that the user named."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

from webhook.invocation import PROGRAM, Invocation


def _suggested(manifests: Path | None, context: str | None = None, longhorn: str = "longhorn-system") -> str:
    settings = SimpleNamespace(manifests=manifests, kubeconfig=None, context=context, longhorn_namespace=longhorn)
    return Invocation.of(settings).line("status")


def test_a_suggested_command_asks_the_same_cluster(tmp_path: Path) -> None:
    """With the options as the user types them; a pipe has no name to type again."""
    described, pipe = tmp_path / "a b.yaml", tmp_path / "pipe"
    described.touch()
    os.mkfifo(pipe)
    assert _suggested(None) == f"{PROGRAM} status"
    assert _suggested(None, "lab") == f"{PROGRAM} status --context lab"
    assert _suggested(None, longhorn="storage") == f"{PROGRAM} status --longhorn-namespace storage"
    assert _suggested(described) == f"{PROGRAM} status --manifests '{described}'"
    assert _suggested(pipe) == f"{PROGRAM} status --manifests FILE"


def test_a_command_of_kubectl_in_a_text_is_for_the_same_cluster() -> None:
    """With the options that kubectl and virtctl take, in a file's name as a shell takes it; without one as it is."""
    chosen = SimpleNamespace(manifests=None, kubeconfig=Path("my \\1"), context="lab", longhorn_namespace="storage")
    text = "kubectl get vm web; if it is Once: virtctl restart web"
    options = "--kubeconfig 'my \\1' --context lab"
    told = f"kubectl {options} get vm web; if it is Once: virtctl {options} restart web"
    assert Invocation.of(chosen).addressed(text) == told
    assert Invocation().addressed(text) == text
