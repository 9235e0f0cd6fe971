"""Which API server a program talks to, and as whom. The import of the client for it costs 66 MB."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from webhook.component_base.errors import UserError


class BadKubeconfig(UserError):
    """No way to an API server: the kubeconfig file or the service account can't be used."""


@dataclass(frozen=True, kw_only=True)  # no Struct: help and completion do without msgspec
class Kubeconfig:
    """What the user chose: a kubeconfig file, and a context of it. None for both is what kubectl would take."""

    file: Path | None = None
    context: str | None = None


@dataclass(frozen=True, kw_only=True)
class Context:
    """Where a kubeconfig leads: the name of its context and that context's namespace; None for what it does not name.

    `in_pod`: there is no kubeconfig file. It is the service account of the pod that this process runs in.
    """

    name: str | None = None
    namespace: str | None = None
    in_pod: bool = False
