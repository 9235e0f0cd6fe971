"""One object of each kind as an API server stores it, as large as it is there.

They are templates: `%(name)s` and the like stand for what differs between one object and the next. Labels, owners,
claims, requests and conditions are what real objects have. What no cache keeps is there by its size alone, in
`managedFields`.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any, Final

from sample import sample_pod
from support.objects import builders, builders_kubevirt

_CREATED: Final = "2026-01-02T03:04:05Z"
_CPU_FEATURES: Final = (
    "3dnowprefetch abm adx aes amd-ssbd apic arat arch-capabilities avx avx2 avx512-vnni avx512bw avx512cd "
    "avx512dq avx512f avx512vl bmi1 bmi2 clflush clflushopt clwb cmov cmp_legacy cr8legacy cx16 cx8 de erms f16c "
    "fma fpu fsgsbase fxsr fxsr_opt gfni ibpb ibrs invpcid invtsc lahf_lm lm mca mce md-clear mmx mmxext movbe "
    "msr mtrr nx osvw pae pat pcid pclmuldq pdpe1gb pge pku pni popcnt pse pse36 rdpid rdrand rdseed rdtscp sep "
    "sha-ni smap smep spec-ctrl ss ssbd sse sse2 sse4.1 sse4.2 sse4a ssse3 stibp syscall tsc tsc-deadline umip "
    "vaes vme vmx vpclmulqdq x2apic xgetbv1 xsave xsavec xsaveopt xsaves"
)
_CPU_MODELS: Final = (
    "Broadwell-noTSX Broadwell-noTSX-IBRS Cascadelake-Server-noTSX Haswell-noTSX Haswell-noTSX-IBRS IvyBridge "
    "IvyBridge-IBRS Nehalem Nehalem-IBRS Penryn SandyBridge SandyBridge-IBRS Skylake-Client-noTSX-IBRS "
    "Skylake-Server-noTSX-IBRS Westmere Westmere-IBRS"
)
_HYPERV: Final = "base frequencies ipi reenlightenment reset runtime synic synic2 synictimer time tlbflush vpindex"


_RUNS: Final = [
    {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _CREATED}
    for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
]


def _stored(made: builders.Object, size: int, **metadata: Any) -> builders.Object:
    """As an API server stores it, with so many bytes of JSON."""
    fields: dict[str, Any] = {}
    written = {
        "manager": "a-controller",
        "operation": "Update",
        "apiVersion": made["apiVersion"],
        "time": _CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": fields},
    }
    made["metadata"] |= {
        "uid": "%(uid)s",
        "resourceVersion": "%(version)s",
        "creationTimestamp": _CREATED,
        "managedFields": [written],
        **metadata,
    }
    left = size - len(json.dumps(made, separators=(",", ":")))
    each = len('"f:field-000":{".":{}},')
    fields |= {f"f:field-{number:03}": {".": {}} for number, _ in zip(count(), range(0, left, each), strict=False)}
    return made


def claim() -> builders.Object:
    """A bound claim that CDI has filled."""
    claim = builders.persistent_volume_claim("%(claim)s", namespace="%(namespace)s", volume_name="pvc-%(uid)s")
    labels = {"app": "containerized-data-importer", "kubevirt.io/created-by": "%(uid)s"}
    owner = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": "%(claim)s", "uid": "%(uid)s"}
    return _stored(claim, 2_800, labels=labels, ownerReferences=[owner], finalizers=["kubernetes.io/pvc-protection"])


def volume() -> builders.Object:
    """Its volume, Longhorn's."""
    attributes = {"dataLocality": "disabled", "fsType": "ext4", "numberOfReplicas": "3", "share": "true"}
    volume = builders.persistent_volume(
        "pvc-%(uid)s", claim="%(claim)s", namespace="%(namespace)s", attributes=attributes
    )
    volume["spec"]["claimRef"] |= {"uid": "%(uid)s", "resourceVersion": "%(version)s"}
    return _stored(volume, 2_400, finalizers=["kubernetes.io/pv-protection", "external-attacher/driver-longhorn-io"])


def share_manager() -> builders.Object:
    """The ShareManager of that volume."""
    manager = builders.share_manager(
        "pvc-%(uid)s", state="running", ownerID="%(owner)s", endpoint="nfs://%(ip)s/pvc-%(uid)s"
    )
    owner = {"apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "name": "pvc-%(uid)s", "uid": "%(uid)s"}
    return _stored(manager, 1_300, ownerReferences=[owner])


def node() -> builders.Object:
    """A node with KubeVirt's labels and its images."""
    labels = {
        "kubernetes.io/hostname": "%(node)s",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": "%(zone)s",
        "cpumanager": "false",
        "host-model-cpu.node.kubevirt.io/Skylake-Server-noTSX-IBRS": "true",
        "kubevirt.io/ksm-enabled": "false",
        "cpu-vendor.node.kubevirt.io/Intel": "true",
        **{f"cpu-feature.node.kubevirt.io/{feature}": "true" for feature in _CPU_FEATURES.split()},
        **{f"cpu-model.node.kubevirt.io/{model}": "true" for model in _CPU_MODELS.split()},
        **{f"cpu-model-migration.node.kubevirt.io/{model}": "true" for model in _CPU_MODELS.split()},
        **{f"hyperv.node.kubevirt.io/{feature}": "true" for feature in _HYPERV.split()},
    }
    node = builders.node("%(node)s", labels=labels)
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "%(ip)s"}]
    node["status"]["images"] = [
        {
            "names": [
                f"registry.example.com/library/image-{number:02}@sha256:{number * 7919:064x}",
                f"registry.example.com/library/image-{number:02}:v1.2.3",
            ],
            "sizeBytes": 123_456_789,
        }
        for number in range(50)
    ]
    return _stored(node, 31_000)


def longhorn_node() -> builders.Object:
    """Longhorn's object for a node, with the replicas on its disk."""
    node = builders.longhorn_node("%(node)s")
    replicas = {f"pvc-{number:036}-r-{number:08}": 32_212_254_720 for number in range(60)}
    node["status"]["diskStatus"] = {"default-disk": {"diskUUID": "%(uid)s", "scheduledReplica": replicas}}
    return _stored(node, 9_100)


def share_manager_pod() -> builders.Object:
    """The pod of that ShareManager."""
    pod = builders.share_manager_pod("pvc-%(uid)s", nodeName="%(owner)s")
    pod["status"] |= {"podIP": "%(ip)s", "startTime": _CREATED, "conditions": _RUNS}
    return _stored(pod, 6_200)


def launcher() -> builders.Object:
    """The virt-launcher pod of a VM that runs."""
    pod = sample_pod(["%(claim)s"])
    del pod["metadata"]["generateName"]
    pod["metadata"]["ownerReferences"][0] |= {"name": "%(vm)s", "uid": "%(uid)s"}
    pod["spec"]["nodeName"] = "%(vm_node)s"
    pod["status"] = {"phase": "Running", "podIP": "%(ip)s", "startTime": _CREATED, "conditions": _RUNS}
    return _stored(pod, 14_000, name="virt-launcher-%(vm)s-x7k2p", namespace="%(namespace)s")


def virtual_machine() -> builders.Object:
    """A VirtualMachine that runs, with one disk and cloud-init."""
    made = builders_kubevirt.virtual_machine("%(vm)s", ["%(claim)s"], namespace="%(namespace)s")
    template = made["spec"]["template"]
    template["metadata"] = {"annotations": {"kubevirt-scheduler/co-schedule": "true"}, "labels": {"app": "%(vm)s"}}
    template["spec"]["volumes"].append({"name": "init", "cloudInitNoCloud": {"userData": "#cloud-config\n" * 100}})
    made["status"] = {"created": True, "ready": True, "printableStatus": "Running"}
    return _stored(made, 3_200)


def virtual_machine_instance() -> builders.Object:
    """The VirtualMachineInstance of that VirtualMachine."""
    made = builders_kubevirt.virtual_machine_instance("%(vm)s", ["%(claim)s"], namespace="%(namespace)s")
    made["spec"] = virtual_machine()["spec"]["template"]["spec"]
    made["status"] = {"phase": "Running", "nodeName": "%(vm_node)s", "interfaces": [{"ipAddress": "%(ip)s"}]}
    return _stored(made, 3_100)


def other_pod() -> builders.Object:
    """A replica of somebody's Deployment, that runs."""
    pod = launcher()
    container = {
        "name": "main",
        "image": "registry.example.com/shop/main:v1.2.3",
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{number:02}", "value": "of no interest here"} for number in range(20)],
    }
    pod["spec"] = {"nodeName": "%(owner)s", "containers": [container, {**container, "name": "proxy"}], "volumes": []}
    labels = {"app.kubernetes.io/name": "%(app)s", "pod-template-hash": "%(app)s"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "%(app)s", "uid": "%(uid)s"}
    return _stored(pod, 7_500, name="%(pod)s", labels=labels, annotations={}, ownerReferences=[owner])


def csi_node() -> builders.Object:
    """The drivers of a node; Longhorn's sets no limit."""
    drivers = [{"name": "driver.longhorn.io", "nodeID": "%(node)s", "topologyKeys": ["kubernetes.io/hostname"]}]
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "%(node)s"}}
    return _stored({**made, "spec": {"drivers": drivers}}, 900)


def namespace() -> builders.Object:
    """A namespace of VMs, with the labels that a cluster gives it."""
    labels = {"kubernetes.io/metadata.name": "%(namespace)s", "pod-security.kubernetes.io/enforce": "privileged"}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%(namespace)s", "labels": labels}}
    return _stored({**made, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}, 900)
