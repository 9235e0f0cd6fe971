"""KubeVirt's kinds at a real API server that has no KubeVirt: with any fields."""

from __future__ import annotations

from typing import Any, Final

Object = dict[str, Any]

VMS: Final = ("VirtualMachine", "VirtualMachineInstance")
OF_VMS: Final = frozenset(("kubevirt.io/v1", kind) for kind in VMS)
"""The kinds with their apiVersion. They have no subresource `status` here."""


def crd(kind: str) -> Object:
    """A kind of KubeVirt's, with any fields."""
    plural, schema = f"{kind.lower()}s", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    short = {"VirtualMachine": ["vm"], "VirtualMachineInstance": ["vmi"]}.get(kind, [])
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kubevirt.io"},
        "spec": {
            "group": "kubevirt.io",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "shortNames": short},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
