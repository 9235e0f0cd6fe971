"""The environment of the user who runs the tests, without the variables that the programs read."""

from __future__ import annotations

import os
from typing import Final

import pytest

from webhook.cluster_options import ENVIRONMENT_PREFIX

CLUSTER: Final = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")


def remove_settings(monkeypatch: pytest.MonkeyPatch, *others: str) -> None:
    """Remove the variables of all options, and the others that are named."""
    for name in (*(name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)), *others):
        monkeypatch.delenv(name, raising=False)
