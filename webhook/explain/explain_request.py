"""An object -> an ExplainRequest: the AdmissionReview that the API server would send to the webhook.

`derive` makes the pod of a VirtualMachine, or of the share-manager of a Longhorn volume. An existing pod is taken as it
was at its creation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.core import refs
from webhook.core.api import admission_review
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import NamespacedName, ObjectMeta
from webhook.core.api.pod import Pod
from webhook.core.patch.decision_patch import as_created
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.explain.derive.share_manager import derive_share_manager
from webhook.explain.derive.virt_launcher import ASSUMED_UID, derive_virt_launcher
from webhook.explain.explanation import RunningPod, Subject
from webhook.explain.names import Named
from webhook.explain.pods_now import stuck_hint
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance
from webhook.objects.api.storage import Volume
from webhook.objects.documents import BadDocument, Document
from webhook.objects.fields import as_fields
from webhook.objects.kinds import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VOLUME

V1_POD: Final = ("v1", "Pod")
REVIEW_KIND: Final = (admission_review.API_VERSION, admission_review.KIND)
_REQUEST_UID: Final = "explain"
_AS_CREATED: Final = (
    "explained as if the pod were created now: in the cluster as it is, without the pod's node and earlier decision"
)


def request_for_document(document: Document, cluster: ClusterReader, namespace: str) -> ExplainRequest:
    """Return the request for an object of a file.

    Args:
        document: the object.
        cluster: has the backend storage claim and the pods of a VM.
        namespace: of an object that names none.

    Raises:
        BadDocument: the object can't be read.
    """
    match (document.api_version, document.kind):
        case kind if kind == REVIEW_KIND:
            return _request_for_review(document, namespace)
        case kind if kind == V1_POD:
            return _request_for_pod(document.read(Pod), document.value, namespace, document.place)
    kind_of_vm = VIRTUAL_MACHINE if document.kind == VIRTUAL_MACHINE.kind else VIRTUAL_MACHINE_INSTANCE
    vm: VirtualMachine | VirtualMachineInstance = document.read(kind_of_vm.type)
    if not vm.metadata.name:
        raise BadDocument(f"{document.place}: {document.kind}: metadata.name: got nothing, expected a name")
    return _request_for_vm(vm, cluster, namespace, document.place)


def request_for_name(named: Named, cluster: ClusterReader, namespace: str) -> ExplainRequest:
    """Return the request for an object of the cluster.

    Args:
        named: the object.
        cluster: has the object.
        namespace: of the object; Longhorn's namespace for a volume.

    Raises:
        UserError: the object does not exist or can't be read.
    """
    found = cluster.find(named, namespace)
    if isinstance(found, Volume):
        return _request_for_volume(found, cluster, namespace, str(named))
    if not isinstance(found, Pod):
        return _request_for_vm(found, cluster, namespace, str(named))
    request = _request_for_pod(found, as_fields(as_created(found)), namespace, str(named))
    return msgspec.structs.replace(
        request,
        notes=[_AS_CREATED],
        hints=_stuck_hints(cluster, found),
        running=[_running(found)],
        vm_pods=[found] if found.metadata.label(LABEL_APP) == VIRT_LAUNCHER else [],
    )


def _request_for_pod(pod: Pod, value: dict[str, Any], namespace: str, source: str) -> ExplainRequest:
    meta = pod.metadata
    name = meta.name or meta.generate_name or ""
    subject = Subject(kind=V1_POD[1], namespace=meta.namespace or namespace, name=name, source=source)
    return ExplainRequest(subject=subject, review=_review(value, subject.namespace))


def _request_for_vm(
    vm: VirtualMachine | VirtualMachineInstance, cluster: ClusterReader, namespace: str, source: str
) -> ExplainRequest:
    derived = derive_virt_launcher(vm, cluster, namespace)
    where, name = vm.metadata.namespace or namespace, vm.metadata.name or ""
    cluster.view.assume_owner(refs.virtual_machine_instance(NamespacedName(where, name)), ASSUMED_UID)
    kind = VIRTUAL_MACHINE if isinstance(vm, VirtualMachine) else VIRTUAL_MACHINE_INSTANCE
    listed = cluster.pods_of_vmi(name, where)
    unknown = [f"the current pods could not be read: {listed.problem}"] if listed.problem else []
    return ExplainRequest(
        subject=Subject(kind=kind.kind, namespace=where, name=name, source=source),
        review=_review(derived.pod, where),
        notes=[*derived.notes, *unknown],
        hints=[*derived.hints, *_stuck_hints(cluster, *listed.items)],
        running=[_running(pod) for pod in listed.items],
        vm_pods=listed.items,
    )


def _request_for_volume(volume: Volume, cluster: ClusterReader, namespace: str, source: str) -> ExplainRequest:
    """The next pod of a volume's share-manager, and its current pod."""
    derived = derive_share_manager(volume, cluster, namespace)
    cluster.view.assume_owner(refs.share_manager(volume.metadata.name or ""), ASSUMED_UID)
    listed = cluster.lookup(POD, derived.pod["metadata"]["name"], namespace)
    unknown = [f"the current pods could not be read: {listed.problem}"] if listed.problem else []
    return ExplainRequest(
        subject=Subject(kind=VOLUME.kind, namespace=namespace, name=volume.metadata.name or "", source=source),
        review=_review(derived.pod, namespace),
        notes=[*derived.notes, *unknown],
        hints=derived.hints,
        running=[_running(found) for found in listed.items],
    )


def _stuck_hints(cluster: ClusterReader, *pods: Pod) -> list[str]:
    return [hint for pod in pods if (hint := stuck_hint(pod, cluster))]


def _running(pod: Pod) -> RunningPod:
    return RunningPod(
        name=pod.metadata.name or "",
        phase=pod.status.phase if pod.status else None,
        node=pod.spec.node_name,
        decision=pod.metadata.annotation(ANNOTATION_DECISION),
    )


def _review(pod: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The AdmissionReview for the creation of `pod`, with the fields that the webhook reads."""
    return {
        "apiVersion": admission_review.API_VERSION,
        "kind": admission_review.KIND,
        "request": {
            "uid": _REQUEST_UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": namespace,
            "operation": "CREATE",
            "object": pod,
        },
    }


class _ReviewObject(Struct):
    metadata: ObjectMeta = ObjectMeta()


class _ReviewRequest(Struct):
    name: str | None = None
    namespace: str | None = None
    object: _ReviewObject | None = None


class _Review(Struct):
    """The part of an AdmissionReview that names its object. Core reads the rest."""

    request: _ReviewRequest | None = None


def _request_for_review(document: Document, namespace: str) -> ExplainRequest:
    """The review as it is. The API server always names the namespace; a review that a user wrote can lack it."""
    request = document.read(_Review).request or _ReviewRequest()
    meta = (request.object or _ReviewObject()).metadata
    where = request.namespace or meta.namespace or namespace
    asked = document.value
    if asked.get("request") and not request.namespace:
        asked = {**asked, "request": {**asked["request"], "namespace": where}}
    name = meta.name or request.name or meta.generate_name
    subject = Subject(kind=document.kind, namespace=where, name=name or "", source=document.place)
    return ExplainRequest(subject=subject, review=asked)


class ExplainRequest(Struct, frozen=True, kw_only=True):
    """What to explain: the AdmissionReview that the API server would send for `subject`, with notes and hints.

    `running`: the pods that the subject has now. `vm_pods`: those in which a VM runs.
    """

    subject: Subject
    review: dict[str, Any]
    notes: Sequence[str] = ()
    hints: Sequence[str] = ()
    running: Sequence[RunningPod] = ()
    vm_pods: Sequence[Pod] = ()
