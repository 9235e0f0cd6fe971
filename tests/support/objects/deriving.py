"""VMs to derive pods from, and the cluster for them."""

from __future__ import annotations

from typing import Any

import yaml

from webhook.explain.derive.virt_launcher import Derived, derive_virt_launcher
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.objects import documents
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance
from webhook.objects.manifests import Manifests
from webhook.objects.objects import read_objects


def a_claim(name: str, *, labels: dict[str, str] | None = None, deleted: bool = False, namespace: str = "vms") -> Any:
    """A PersistentVolumeClaim without spec and status."""
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels or {}}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}


def a_cluster(*objects: Any) -> ClusterReader:
    """The cluster of these objects."""
    text = yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
    return ClusterReader(
        Manifests(read_objects(documents.read_documents(text, "cluster.yaml")), longhorn_namespace="longhorn-system"),
        "cluster.yaml",
        "longhorn-system",
    )


def derived(value: dict[str, Any], *objects: Any) -> Derived:
    """The pod that is derived from a VM or VMI in a cluster of these objects."""
    (document,) = documents.read_documents(yaml.dump(value, Dumper=yaml.CSafeDumper), "vm.yaml")
    return derive_virt_launcher(read_vm(document), a_cluster(*objects), "vms")


def read_vm(document: documents.Document) -> VirtualMachine | VirtualMachineInstance:
    """The VM or VMI of a document."""
    type_: type[VirtualMachine | VirtualMachineInstance] = VirtualMachine
    return document.read(type_ if document.kind == "VirtualMachine" else VirtualMachineInstance)


def a_vm(spec: dict[str, Any], meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A VirtualMachine with this VMI spec and template metadata. `own` is its own metadata."""
    template = {"metadata": meta, "spec": spec}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "db", **fields.pop("own", {})},
        "spec": {"template": template, **fields.pop("vm_spec", {})},
        **fields,
    }


def a_vmi(spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A VirtualMachineInstance; `meta` is its metadata."""
    metadata = {"name": "db", **fields.pop("meta", {})}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": metadata,
        "spec": spec,
        **fields,
    }


def claims_of(found: Derived) -> list[str]:
    """The claims of a derived pod."""
    return [volume["persistentVolumeClaim"]["claimName"] for volume in found.pod["spec"]["volumes"]]
