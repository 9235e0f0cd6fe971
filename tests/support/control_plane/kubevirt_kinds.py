"""KubeVirt's kinds at a real API server that has no KubeVirt: with any fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

Object = dict[str, Any]

VMS: Final = ("VirtualMachine", "VirtualMachineInstance")
OF_VMS: Final = frozenset(("kubevirt.io/v1", kind) for kind in VMS)
"""The kinds with their apiVersion. They have no subresource `status` here."""


def crd(kind: str) -> Object:
    """A kind of KubeVirt's, with any fields."""
    short = {"VirtualMachine": ["vm"], "VirtualMachineInstance": ["vmi"]}.get(kind, [])
    return with_any_fields(kind, "kubevirt.io", "v1", short)


def with_any_fields(
    kind: str, group: str, version: str, short: Sequence[str] = (), *, scope: str = "Namespaced"
) -> Object:
    """The definition of a kind whose objects may have any fields."""
    plural, schema = f"{kind.lower()}s", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "shortNames": list(short)},
            "scope": scope,
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
