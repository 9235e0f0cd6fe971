"""The environment of the user who runs the tests, without the variables that the programs read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

from webhook.component_base.options import Option

CLUSTER: Final = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")


def remove_settings(monkeypatch: pytest.MonkeyPatch, options: Iterable[Option], *others: str) -> None:
    """Remove the environment variables of these options, and the others that are named."""
    for name in (*(str(option.envvar) for option in options), *others):
        monkeypatch.delenv(name, raising=False)
