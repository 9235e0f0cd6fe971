"""One object of each kind as an API server stores it, as large as it is there: managedFields, images, labels and all.

They are templates: `%(name)s` and the like stand for what differs between one object and the next.
"""

from __future__ import annotations

from typing import Final

from sample import sample_pod, set_fields
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


def _stored(made: builders.Object, *managers: str) -> builders.Object:
    """As an API server stores it."""
    labelled = {key: set_fields(made["metadata"].get(key) or {}) for key in ("labels", "annotations")}
    parts = ({"f:metadata": labelled, "f:spec": set_fields(made["spec"])}, {"f:status": set_fields(made["status"])})
    made["metadata"] |= {
        "uid": "%(uid)s",
        "resourceVersion": "%(version)s",
        "creationTimestamp": _CREATED,
        "managedFields": [
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": made["apiVersion"],
                "time": _CREATED,
                "fieldsType": "FieldsV1",
                "fieldsV1": part,
                **({"subresource": "status"} if "f:status" in part else {}),
            }
            for manager, part in zip(managers, parts, strict=True)
        ],
    }
    return made


def claim() -> builders.Object:
    """A bound claim that CDI has filled."""
    claim = builders.persistent_volume_claim("%(claim)s", namespace="%(namespace)s", volume_name="pvc-%(uid)s")
    claim["metadata"] |= {
        "annotations": {
            "cdi.kubevirt.io/storage.condition.running": "false",
            "cdi.kubevirt.io/storage.condition.running.message": "Import Complete",
            "cdi.kubevirt.io/storage.condition.running.reason": "Completed",
            "cdi.kubevirt.io/storage.contentType": "kubevirt",
            "cdi.kubevirt.io/storage.pod.phase": "Succeeded",
            "cdi.kubevirt.io/storage.populator.progress": "100.0%%",
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.beta.kubernetes.io/storage-provisioner": "driver.longhorn.io",
            "volume.kubernetes.io/storage-provisioner": "driver.longhorn.io",
        },
        "labels": {
            "app": "containerized-data-importer",
            "app.kubernetes.io/component": "storage",
            "app.kubernetes.io/managed-by": "cdi-controller",
            "kubevirt.io/created-by": "%(uid)s",
        },
        "ownerReferences": [
            {
                "apiVersion": "cdi.kubevirt.io/v1beta1",
                "kind": "DataVolume",
                "name": "%(claim)s",
                "uid": "%(uid)s",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "finalizers": ["kubernetes.io/pvc-protection"],
    }
    return _stored(claim, "virt-cdi-controller", "kube-controller-manager")


def volume() -> builders.Object:
    """Its volume, Longhorn's."""
    attributes = {
        "dataLocality": "disabled",
        "fromBackup": "",
        "fsType": "ext4",
        "numberOfReplicas": "3",
        "share": "true",
        "staleReplicaTimeout": "30",
        "storage.kubernetes.io/csiProvisionerIdentity": "1767323045000-8081-driver.longhorn.io",
    }
    volume = builders.persistent_volume(
        "pvc-%(uid)s", claim="%(claim)s", namespace="%(namespace)s", attributes=attributes
    )
    volume["metadata"] |= {
        "annotations": {
            "longhorn.io/volume-scheduling-error": "",
            "pv.kubernetes.io/provisioned-by": "driver.longhorn.io",
            "volume.kubernetes.io/provisioner-deletion-secret-name": "",
            "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
        },
        "finalizers": ["kubernetes.io/pv-protection", "external-attacher/driver-longhorn-io"],
    }
    volume["spec"]["claimRef"] |= {"uid": "%(uid)s", "resourceVersion": "%(version)s"}
    return _stored(volume, "csi-provisioner", "kube-controller-manager")


def share_manager() -> builders.Object:
    """The ShareManager of that volume."""
    manager = builders.share_manager(
        "pvc-%(uid)s", state="running", ownerID="%(owner)s", endpoint="nfs://%(ip)s/pvc-%(uid)s"
    )
    manager["metadata"]["ownerReferences"] = [
        {"apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "name": "pvc-%(uid)s", "uid": "%(uid)s"}
    ]
    return _stored(manager, "longhorn-manager-spec", "longhorn-manager")


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
    node["metadata"]["annotations"] = {
        "csi.volume.kubernetes.io/nodeid": '{"driver.longhorn.io":"%(node)s"}',
        "kubevirt.io/heartbeat": _CREATED,
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    node["status"] |= {
        "conditions": [
            {
                **condition,
                "lastHeartbeatTime": _CREATED,
                "lastTransitionTime": _CREATED,
                "reason": "KubeletReportsSo",
                "message": "kubelet has sufficient memory available, and posts ready status",
            }
            for condition in node["status"]["conditions"]
        ],
        "addresses": [{"type": "InternalIP", "address": "%(ip)s"}, {"type": "Hostname", "address": "%(node)s"}],
        "images": [
            {
                "names": [
                    f"registry.example.com/library/image-{number:02}@sha256:{number * 7919:064x}",
                    f"registry.example.com/library/image-{number:02}:v1.2.3",
                ],
                "sizeBytes": 123_456_789,
            }
            for number in range(50)
        ],
        "volumesAttached": [
            {"name": f"kubernetes.io/csi/driver.longhorn.io^pvc-{number:036}", "devicePath": ""} for number in range(20)
        ],
    }
    return _stored(node, "virt-handler", "kubelet")


def longhorn_node() -> builders.Object:
    """Longhorn's object for a node, with the replicas on its disk."""
    node = builders.longhorn_node("%(node)s")
    node["status"] |= {
        "conditions": [
            {**condition, "lastProbeTime": "", "lastTransitionTime": _CREATED, "message": "", "reason": ""}
            for condition in node["status"]["conditions"]
        ],
        "diskStatus": {
            "default-disk": {
                "diskUUID": "%(uid)s",
                "scheduledReplica": {f"pvc-{number:036}-r-{number:08}": 32_212_254_720 for number in range(60)},
                "storageAvailable": 1_000_000_000_000,
            }
        },
        "region": "region-1",
        "zone": "%(zone)s",
    }
    return _stored(node, "longhorn-manager-spec", "longhorn-manager")


def share_manager_pod() -> builders.Object:
    """The pod of that ShareManager."""
    pod = builders.share_manager_pod("pvc-%(uid)s", nodeName="%(owner)s", serviceAccountName="longhorn-service-account")
    pod["spec"]["containers"][0] |= {
        "args": ["longhorn-share-manager", "--debug", "daemon", "--volume", "pvc-%(uid)s"],
        "securityContext": {"privileged": True},
        "readinessProbe": {"exec": {"command": ["cat", "/var/run/ganesha.pid"]}, "periodSeconds": 5},
        "volumeMounts": [
            {"name": name, "mountPath": f"/host/{name}", "mountPropagation": "HostToContainer"}
            for name in ("host-dev", "host-sys", "host-proc", "lib-modules", "kube-api-access")
        ],
    }
    pod["spec"] |= {
        "volumes": [
            {"name": name, "hostPath": {"path": f"/{name}", "type": ""}}
            for name in ("host-dev", "host-sys", "host-proc", "lib-modules")
        ],
        "tolerations": [
            {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for why in ("not-ready", "unreachable")
        ],
    }
    pod["status"] |= {
        "podIP": "%(ip)s",
        "startTime": _CREATED,
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _CREATED}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {
                "name": "share-manager",
                "ready": True,
                "restartCount": 0,
                "image": "longhornio/longhorn-share-manager:v1.12.1",
                "imageID": f"longhornio/longhorn-share-manager@sha256:{7919:064x}",
                "containerID": "containerd://%(uid)s",
                "state": {"running": {"startedAt": _CREATED}},
            }
        ],
    }
    return _stored(pod, "longhorn-manager", "kubelet")


def launcher() -> builders.Object:
    """The virt-launcher pod of a VM that runs."""
    pod = sample_pod(["%(claim)s"])
    del pod["metadata"]["generateName"]
    pod["metadata"] |= {"name": "virt-launcher-%(vm)s-x7k2p", "namespace": "%(namespace)s"}
    pod["metadata"]["ownerReferences"][0] |= {"name": "%(vm)s", "uid": "%(uid)s"}
    pod["spec"]["nodeName"] = "%(vm_node)s"
    pod["status"] = {
        "phase": "Running",
        "podIP": "%(ip)s",
        "startTime": _CREATED,
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _CREATED}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
    }
    return _stored(pod, "virt-controller", "kubelet")


def virtual_machine() -> builders.Object:
    """A VirtualMachine that runs, with one disk and cloud-init."""
    made = builders_kubevirt.virtual_machine("%(vm)s", ["%(claim)s"], namespace="%(namespace)s")
    template = made["spec"]["template"]
    template["metadata"] = {"annotations": {"kubevirt-scheduler/co-schedule": "true"}, "labels": {"app": "%(vm)s"}}
    template["spec"]["domain"] |= {"cpu": {"cores": 2, "model": "host-model"}, "memory": {"guest": "4Gi"}}
    template["spec"]["volumes"].append({"name": "init", "cloudInitNoCloud": {"userData": "#cloud-config\n" * 100}})
    made["status"] = {"created": True, "ready": True, "printableStatus": "Running"}
    return _stored(made, "kubectl-create", "virt-controller")


def virtual_machine_instance() -> builders.Object:
    """The VirtualMachineInstance of that VirtualMachine."""
    made = builders_kubevirt.virtual_machine_instance("%(vm)s", ["%(claim)s"], namespace="%(namespace)s")
    template = virtual_machine()["spec"]["template"]
    made["spec"] = template["spec"]
    made["status"] = {"phase": "Running", "nodeName": "%(vm_node)s", "interfaces": [{"ipAddress": "%(ip)s"}]}
    return _stored(made, "virt-controller", "virt-handler")


def other_pod() -> builders.Object:
    """A replica of somebody's Deployment, that runs."""
    pod = launcher()
    del pod["metadata"]["managedFields"]
    pod["metadata"] |= {
        "name": "%(pod)s",
        "labels": {
            "app.kubernetes.io/name": "%(app)s",
            "app.kubernetes.io/part-of": "shop",
            "pod-template-hash": "%(app)s",
        },
        "annotations": {"kubectl.kubernetes.io/restartedAt": _CREATED},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "%(app)s", "uid": "%(uid)s"}],
    }
    container = {
        "name": "main",
        "image": "registry.example.com/shop/main:v1.2.3",
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{number:02}", "value": "of no interest here"} for number in range(20)],
    }
    pod["spec"] = {"nodeName": "%(owner)s", "containers": [container, {**container, "name": "proxy"}], "volumes": []}
    return _stored(pod, "kube-controller-manager", "kubelet")


def csi_node() -> builders.Object:
    """The drivers of a node; Longhorn's sets no limit."""
    drivers = [{"name": "driver.longhorn.io", "nodeID": "%(node)s", "topologyKeys": ["kubernetes.io/hostname"]}]
    made = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "%(node)s"},
        "spec": {"drivers": drivers},
        "status": {},
    }
    return _stored(made, "kubelet", "kubelet")


def namespace() -> builders.Object:
    """A namespace of VMs, with the labels that a cluster gives it."""
    labels = {
        "kubernetes.io/metadata.name": "%(namespace)s",
        "pod-security.kubernetes.io/enforce": "privileged",
        "team": "%(namespace)s",
    }
    made = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "%(namespace)s", "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    return _stored(made, "kubectl-create", "kubectl-create")
