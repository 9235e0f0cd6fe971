"""A small cluster, the objects that explain reads, and a run of explain over both."""

from __future__ import annotations

import io
import json
from typing import Any, NamedTuple

import yaml

from webhook.explain.run import explain_in
from webhook.objects import documents
from webhook.objects.cluster import Cluster
from webhook.objects.files import read_objects
from webhook.settings import ExplainSettings

OPT_IN = "kubevirt-scheduler/co-schedule"
CLUSTER = """---
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {kubevirt.io/schedulable: "true"}},
 status: {conditions: [{type: Ready, status: "True"}], allocatable: {cpu: "64", memory: 512Gi, ephemeral-storage: 1Ti,
 pods: "100", devices.kubevirt.io/kvm: "1000", devices.kubevirt.io/tun: "1000", devices.kubevirt.io/vhost-net: "1000"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {kubevirt.io/schedulable: "true"}},
 status: {conditions: [{type: Ready, status: "True"}], allocatable: {cpu: "64", memory: 512Gi, ephemeral-storage: 1Ti,
 pods: "100", devices.kubevirt.io/kvm: "1000", devices.kubevirt.io/tun: "1000", devices.kubevirt.io/vhost-net: "1000"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-c}, spec: {unschedulable: true},
 status: {conditions: [{type: Ready, status: "True"}], allocatable: {cpu: "64", memory: 512Gi, ephemeral-storage: 1Ti,
 pods: "100", devices.kubevirt.io/kvm: "1000", devices.kubevirt.io/tun: "1000", devices.kubevirt.io/vhost-net: "1000"}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: root, namespace: vms},
 spec: {accessModes: [ReadWriteMany], volumeName: pv-root}, status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-root},
 spec: {csi: {driver: driver.longhorn.io, volumeHandle: vol-root}}}
---
{apiVersion: longhorn.io/v1beta2, kind: ShareManager, metadata: {name: vol-root, namespace: longhorn-system},
 status: {state: running, ownerID: node-c}}
---
{apiVersion: v1, kind: Pod, metadata: {name: share-manager-vol-root, namespace: longhorn-system,
 labels: {longhorn.io/component: share-manager}}, spec: {nodeName: node-b}, status: {phase: Running}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: gone, namespace: vms},
 spec: {accessModes: [ReadWriteMany], volumeName: pv-gone}, status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-gone},
 spec: {csi: {driver: driver.longhorn.io, volumeHandle: vol-gone}}}
---
{apiVersion: longhorn.io/v1beta2, kind: ShareManager, metadata: {name: vol-gone, namespace: longhorn-system},
 status: {state: running, ownerID: node-gone}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: hint, namespace: vms},
 spec: {accessModes: [ReadWriteMany], volumeName: pv-hint}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-hint},
 spec: {csi: {driver: driver.longhorn.io, volumeHandle: vol-hint}}}
---
{apiVersion: longhorn.io/v1beta2, kind: ShareManager, metadata: {name: vol-hint, namespace: longhorn-system},
 status: {ownerID: node-a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: share-manager-vol-hint, namespace: longhorn-system,
 labels: {longhorn.io/component: share-manager}}, spec: {}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: new, namespace: vms},
 spec: {volumeName: pv-new}, status: {phase: Pending}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: fast, namespace: vms},
 spec: {accessModes: [ReadWriteOnce], volumeName: pv-fast}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-fast},
 spec: {csi: {driver: driver.longhorn.io, volumeHandle: vol-fast}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: bare, namespace: vms}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: stopped, namespace: vms},
 spec: {accessModes: [ReadWriteMany], volumeName: pv-stopped}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-stopped},
 spec: {csi: {driver: driver.longhorn.io, volumeHandle: vol-stopped}}}
---
{apiVersion: longhorn.io/v1beta2, kind: ShareManager, metadata: {name: vol-stopped, namespace: longhorn-system}}
---
{apiVersion: v1, kind: Pod, metadata: {name: share-manager-vol-stopped, namespace: longhorn-system,
 deletionTimestamp: "2026-01-01T00:00:00Z", labels: {longhorn.io/component: share-manager}},
 spec: {nodeName: node-a}, status: {phase: Failed}}
---
{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: db, namespace: vms}, spec: {template: {}}}
---
{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: db, namespace: vms, uid: uid-of-db,
 ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: db, uid: uid-of-the-vm}]}, spec: {}}
"""


class Ran(NamedTuple):
    """The exit code of a run, and what it printed."""

    code: int
    out: str
    err: str


def the_cluster(text: str = CLUSTER) -> Cluster:
    """The cluster that the YAML text describes."""
    objects = read_objects(documents.read_documents(text, "cluster.yaml"))
    objects.files = "cluster.yaml"
    return Cluster(objects, longhorn_namespace="longhorn-system")


def settings(source: str, **flags: Any) -> ExplainSettings:
    """Settings of explain for one file, in the namespace `vms`; `flags` replaces single ones."""
    defaults = {
        "names": (),
        "filename": source,
        "manifests": None,
        "kubeconfig": None,
        "context": None,
        "namespace": "vms",
        "output": "text",
        "all_namespaces": False,
        "selector": None,
        "longhorn_namespace": "longhorn-system",
    }
    return ExplainSettings(**{**defaults, **flags})


def run(text: str, *, source: str = "-", cluster: str = CLUSTER, **flags: Any) -> Ran:
    """Run explain over stdin, or over the file `source`."""
    out, err = io.StringIO(), io.StringIO()
    code = explain_in(
        the_cluster(cluster),
        settings(source, **flags),
        stdin=io.StringIO(text),
        stdout=out,
        stderr=err,
    )
    return Ran(code, out.getvalue(), err.getvalue())


def volumes(*claims: str) -> list[dict[str, Any]]:
    """One volume for each claim, of the claim's name."""
    return [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]


def a_pod(*claims: str, opt_in: str | None = "true", **spec: Any) -> dict[str, Any]:
    """A virt-launcher pod with these claims."""
    annotations = {} if opt_in is None else {OPT_IN: opt_in}
    metadata = {
        "generateName": "virt-launcher-db-",
        "labels": {"kubevirt.io": "virt-launcher"},
        "annotations": annotations,
        "ownerReferences": [
            {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "db", "uid": "uid-of-db"}
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"volumes": volumes(*claims), **spec}}


def a_vm(*claims: str, opt_in: str = "true", version: str = "v1", name: str = "db") -> dict[str, Any]:
    """A VirtualMachine with these claims."""
    template = {"metadata": {"annotations": {OPT_IN: opt_in}}, "spec": {"volumes": volumes(*claims)}}
    return {
        "apiVersion": f"kubevirt.io/{version}",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"template": template},
    }


def a_vmi(*claims: str, version: str = "v1") -> dict[str, Any]:
    """A VirtualMachineInstance with these claims."""
    return {
        "apiVersion": f"kubevirt.io/{version}",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "db", "annotations": {OPT_IN: "true"}},
        "spec": {"volumes": volumes(*claims)},
    }


def a_review(pod: dict[str, Any] | None, **request: Any) -> dict[str, Any]:
    """The AdmissionReview of a pod, its request's fields overridden by `request`."""
    asked = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "vms",
        "operation": "CREATE",
        "object": pod,
        **request,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def explained(value: dict[str, Any], **flags: Any) -> Any:
    """The output of `-o json` for one object."""
    return json.loads(run(json.dumps(value), output="json", **flags).out)


def as_yaml(*values: dict[str, Any]) -> str:
    """The objects as YAML documents."""
    return yaml.dump_all(values, Dumper=yaml.CSafeDumper, sort_keys=False)
