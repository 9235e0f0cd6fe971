"""What `kubectl apply -k` would apply: a directory rendered by the kustomize that is in kubectl."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml
from controlplane import build


def kustomize(directory: Path) -> list[dict[str, Any]]:
    """Every object that a directory with a kustomization stands for, in the order in which they are applied.

    Raises:
        NotBuilt: there is no kubectl; the message says what to do.
        AssertionError: it does not render; with kustomize's message.
    """
    asked = subprocess.run(  # noqa: S603 - a program that we have built
        [build.kubectl(), "kustomize", directory], capture_output=True, text=True, check=False
    )
    assert asked.returncode == 0, asked.stderr
    return [rendered for rendered in yaml.load_all(asked.stdout, yaml.CSafeLoader) if rendered]
