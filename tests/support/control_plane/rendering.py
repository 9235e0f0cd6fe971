"""The objects of the installs in manifests/, as they are there or as kustomize renders them, and lookups in them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from controlplane import build

Object = dict[str, Any]

ROOT: Final = Path(__file__).resolve().parents[3]
MANIFESTS: Final = ROOT / "manifests"
NAME: Final = "kubevirt-coschedule"
CERTS: Final = f"{NAME}-certs"
TLS: Final = f"{NAME}-tls"
AUTHORITY: Final = f"{NAME}-certs-ca"  # the Secret of the authority
DEFAULT: Final = "install.yaml"
CERT_MANAGER: Final = "install-cert-manager.yaml"
INSTALLS: Final = (DEFAULT, CERT_MANAGER)
"""What can be applied, as files of manifests/."""

AUDIT: Final = "audit"
CLIENT_VERIFICATION: Final = "client-verification"
EVENTS: Final = "events"
HOST_NETWORK: Final = "host-network"
MONITORING: Final = "monitoring"
OPT_IN_ALL: Final = "opt-in-all"
REUNITE: Final = "reunite"
OPTIONS: Final = (AUDIT, CLIENT_VERIFICATION, EVENTS, HOST_NETWORK, MONITORING, OPT_IN_ALL, REUNITE)
"""What a line of the kustomization switches on: a file, a component, or both for Events."""


@cache
def installed(install: str = DEFAULT) -> Sequence[Mapping[str, Any]]:
    """The objects of an install. One list for all tests: change a copy."""
    return tuple(yaml.load_all((MANIFESTS / install).read_text(encoding="utf-8"), yaml.CSafeLoader))


def copied(directory: Path) -> Path:
    """A copy of manifests/ to change, in a directory of its own."""
    return shutil.copytree(MANIFESTS, directory / "manifests")


def with_options(directory: Path, *options: str, install: str = DEFAULT) -> Path:
    """An install with options, as a user gets it: from a copy in which their lines are no comments any more."""
    folder = copied(directory)
    kustomization = folder / "kustomization.yaml"
    text = kustomization.read_text(encoding="utf-8").replace(f"  - {DEFAULT}\n", f"  - {install}\n")
    for option in options:
        text, count = re.subn(rf"^  # (- (?:components/{option}|{option}\.yaml) )", r"  \1", text, flags=re.MULTILINE)
        assert count, option
    kustomization.write_text(text, encoding="utf-8")
    return folder


def the(kind: str, objects: Iterable[Mapping[str, Any]] | None = None, name: str = NAME) -> Mapping[str, Any]:
    """The only object of this kind and name."""
    among = installed() if objects is None else objects
    (found,) = (item for item in among if (item["kind"], item["metadata"]["name"]) == (kind, name))
    return found


def identity(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """(kind, namespace, name)."""
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def at(path: str, item: Any) -> Any:
    """The value at `a.b.0.c`, None where there is none."""
    for step in path.split("."):
        if isinstance(item, list):
            item = item[int(step)] if int(step) < len(item) else None
        elif isinstance(item, Mapping):
            item = item.get(step)
        else:
            return None
    return item


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches; as in apimachinery, NotIn matches a key that is absent."""
    has = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        has[term["operator"]](term["key"], term.get("values", ())) for term in selector.get("matchExpressions", ())
    )


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
