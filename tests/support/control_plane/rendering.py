"""The objects that the installs' kustomizations render to, and lookups in them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from support.control_plane.kustomizing import kustomize

Object = dict[str, Any]

ROOT: Final = Path(__file__).resolve().parents[3]
MANIFESTS: Final = ROOT / "manifests"
NAME: Final = "kubevirt-coschedule"
SHARED: Final = ROOT / "charts" / NAME / "files"
"""What manifests/ and the chart both have."""
CERTS: Final = f"{NAME}-certs"
TLS: Final = f"{NAME}-tls"
AUTHORITY: Final = f"{NAME}-certs-ca"  # the Secret of the authority
DEFAULT: Final = "."
CERT_MANAGER: Final = "overlays/cert-manager"
INSTALLS: Final = (DEFAULT, CERT_MANAGER)
"""What can be applied, as folders of manifests/."""

AUDIT: Final = "components/audit"
CLIENT_VERIFICATION: Final = "components/client-verification"
EVENTS: Final = "components/events"
HOST_NETWORK: Final = "components/host-network"
MONITORING: Final = "components/monitoring"
OPT_IN_ALL: Final = "components/opt-in-all"
REUNITE: Final = "components/reunite"


@cache
def installed(install: str = DEFAULT) -> Sequence[Mapping[str, Any]]:
    """The objects of an install. One list for all tests: change a copy."""
    return tuple(kustomize(MANIFESTS / install))


def copied(directory: Path) -> Path:
    """A copy of manifests/ to change, in a directory of its own, beside what it shares with the chart."""
    shutil.copytree(SHARED, directory / SHARED.relative_to(ROOT), dirs_exist_ok=True)
    return shutil.copytree(MANIFESTS, directory / "manifests")


def with_client_verification(directory: Path, install: str = DEFAULT) -> Path:
    """An install where only the API server may call."""
    return with_component(CLIENT_VERIFICATION, directory, install)


def with_component(component: str, directory: Path, install: str = DEFAULT) -> Path:
    """An install with a component, as a user gets it: from a copy in which its line is no comment any more."""
    folder = copied(directory) / install
    kustomization = folder / "kustomization.yaml"
    text = kustomization.read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if component in line)
    kustomization.write_text(text.replace(line, line.replace("# ", "", 1)), encoding="utf-8")
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
