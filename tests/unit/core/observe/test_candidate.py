"""What a VM would gain by co-scheduling, whether it has opted in or not."""

import json
import shlex
from typing import Any

import pytest
from msgspec.structs import replace
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders
from support.objects.fleets import disk, launcher, served

from webhook.core.api.affinity import Affinity, InterPodTerms, PodAffinityTerm
from webhook.core.api.kubevirt import HOSTNAME, LABEL_CREATED_BY, LABEL_MIGRATION_JOB_UID
from webhook.core.api.meta import LabelSelector, NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.observe.candidate import (
    Candidate,
    NextStart,
    candidate_of,
    candidate_of_start,
    opt_in_change,
    opt_in_command,
)
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason
from webhook.core.view import Kind, NoObject, ObjectRef

Object = dict[str, Any]
NODES = [made for name in ("node-a", "node-b") for made in (builders.node(name), builders.longhorn_node(name))]


def annotated(pod: Pod, value: str | None) -> Pod:
    """The pod with this value of the annotation, or without the annotation."""
    annotations = {} if value is None else {ANNOTATION_CO_SCHEDULE: value}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def found(*pods: Pod, objects: list[Object]) -> Candidate | None:
    """The candidate of a VM's pods in a cluster of these objects and two nodes."""
    return candidate_of(pods, cluster(*NODES, *objects), Policy())


@pytest.mark.parametrize(
    ("value", "opted_in"),
    [(None, False), ("false", False), ("maybe", False), ("true", True), ("required", True), ("preferred", True)],
)
def test_a_vm_that_is_apart_shows_the_decision_of_its_next_start(value: str | None, *, opted_in: bool) -> None:
    """A VM that has not opted in is shown as if its annotation were true."""
    objects = [*disk("root"), *served("root", "node-b")]
    candidate = found(annotated(launcher("root", nodeName="node-a"), value), objects=objects)
    assert candidate is not None
    assert (candidate.state, candidate.annotation, candidate.opted_in) == (State.APART, value, opted_in)
    assert isinstance(candidate.decision, Pin)
    assert candidate.decision.nodes == ("node-b",)
    assert candidate.decision.required == (() if value == "preferred" else ("node-b",))
    assert not candidate.next_start.followed


def test_the_target_of_a_migration_starts_again_as_any_pod() -> None:
    """KubeVirt has labeled the pod in which the VM runs now; the next pod has no such label."""
    pod = annotated(launcher("root", nodeName="node-a"), None)
    migrated = replace(
        pod, metadata=replace(pod.metadata, labels={**(pod.metadata.labels or {}), LABEL_MIGRATION_JOB_UID: "m"})
    )
    candidate = found(migrated, objects=[*disk("root"), *served("root", "node-b")])
    assert candidate is not None
    assert candidate.decision.why.reason is Reason.SHARE_MANAGER_POD


def test_the_share_manager_follows_a_vm_whose_share_manager_is_stopped() -> None:
    """The webhook leaves the VM's pod, and steers the share-manager later."""
    objects = [*disk("root"), builders.share_manager("root", state="stopped")]
    candidate = found(annotated(launcher("root", nodeName="node-a"), None), objects=objects)
    assert candidate is not None
    assert (candidate.state, candidate.next_start.followed) == (State.FREE, True)


@pytest.mark.parametrize(
    ("pods", "objects"),
    [
        pytest.param([], [], id="no pod"),
        pytest.param(
            [launcher("root", phase="Succeeded")], [*disk("root"), *served("root", "node-a")], id="it is over"
        ),
        pytest.param(
            [launcher("root", nodeName="node-a")], disk("root", access_modes=["ReadWriteOnce"]), id="no ShareManager"
        ),
        pytest.param([launcher(nodeName="node-a")], [], id="no claim"),
    ],
)
def test_a_vm_without_a_share_manager_is_no_candidate(pods: list[Pod], objects: list[Object]) -> None:
    """Nothing could be gained."""
    assert found(*pods, objects=objects) is None


@pytest.mark.parametrize("value", [None, "true"])
def test_a_vm_without_a_pod_has_no_node_and_no_state(value: str | None) -> None:
    """The caller makes the pod of its next start."""
    objects = [*disk("root"), *served("root", "node-b"), *disk("own", access_modes=["ReadWriteOnce"])]
    pod = annotated(launcher("root", "own", conditions=[]), value)
    candidate = candidate_of_start(pod, cluster(*NODES, *objects), Policy())
    assert isinstance(candidate, Candidate)
    assert (candidate.vm, candidate.node, candidate.state) == (NamespacedName("vms", "db01"), None, None)
    assert [volume.claim for volume in candidate.volumes] == ["root", "own"]
    assert (candidate.opted_in, candidate.next_start.nodes) == (value is not None, ("node-b",))


@pytest.mark.parametrize("claims", [(), ("own",)])
def test_a_vm_without_a_pod_and_without_a_share_manager_is_no_candidate(claims: tuple[str, ...]) -> None:
    """As a VM with a pod."""
    view = cluster(*NODES, *disk("own", access_modes=["ReadWriteOnce"]))
    assert candidate_of_start(launcher(*claims), view, Policy()) is None


def test_a_vm_without_a_pod_whose_claim_could_not_be_read_is_a_candidate() -> None:
    """Nobody knows that it has no share-manager. The decision says what is missing, also for a pod that waits."""
    claim = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "root"))
    view = cluster(*NODES, *disk("root"), *served("root", "node-b"))
    unread = ViewWithGaps(view, {claim: NoObject.UNAVAILABLE})
    for candidate, state in (
        (candidate_of_start(launcher("root"), unread, Policy()), None),
        (candidate_of([launcher("root", conditions=[])], unread, Policy()), State.PENDING),
    ):
        assert isinstance(candidate, Candidate)
        assert (candidate.state, candidate.decision.why.reason) == (state, Reason.CLAIM_LOOKUP_FAILED)


def test_kubevirts_rule_for_a_migration_is_not_the_next_starts() -> None:
    """A pod of the VM itself, which the view counts here, does not keep the next one away."""
    pod = annotated(launcher("root", nodeName="node-a"), None)
    uid = pod.metadata.owner_references[0].uid if pod.metadata.owner_references else None
    rule = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={LABEL_CREATED_BY: uid or ""}), topology_key=HOSTNAME
    )
    labels = {**(pod.metadata.labels or {}), LABEL_MIGRATION_JOB_UID: "m"}
    affinity = Affinity(pod_anti_affinity=InterPodTerms(required=[rule]))
    spec = replace(pod.spec, affinity=affinity)
    migrated = replace(pod, metadata=replace(pod.metadata, labels=labels), spec=spec)
    nodes = [builders.node(name, labels={HOSTNAME: name}) for name in ("node-a", "node-b")]
    counted = builders.vm_pod("other", labels=labels, node="node-b", uid=uid)
    objects = [*disk("root"), *served("root", "node-b"), *map(builders.longhorn_node, ("node-a", "node-b")), *nodes]
    candidate = candidate_of([migrated], cluster(*objects, counted), Policy())
    assert isinstance(candidate, Candidate)
    assert (candidate.next_start.decision, candidate.next_start.nodes) == ("required", ("node-b",))


def test_a_vm_gains_if_it_or_its_share_manager_is_placed() -> None:
    """What stays as it is gains nothing."""
    shown = NextStart(decision="unchanged", nodes=(), cause="c", reason="R", because="b", followed=False)
    assert not shown.gains
    assert replace(shown, followed=True).gains
    assert replace(shown, decision="preferred").gains


@pytest.mark.parametrize(
    ("annotation", "label", "owner", "why_none"),
    [
        ("true", None, "web", ""),
        ("false", None, "web", "the annotation kubevirt-scheduler/co-schedule is false"),
        (None, "false", "web", "and this label of Namespace vms is false"),
        (None, None, None, "no VirtualMachine owns this instance"),
    ],
)
def test_there_is_no_line_for_a_vm_that_is_opted_in_or_out(
    annotation: str | None, label: str | None, owner: str | None, why_none: str
) -> None:
    """A line for a VM that is opted out would override that. Each other VM has a line or a reason."""
    objects = [*disk("root"), *served("root", "node-b"), builders.labeled_namespace("vms", label)]
    candidate = found(annotated(launcher("root", nodeName="node-a"), annotation), objects=objects)
    assert candidate is not None
    assert candidate.label == label
    command, why = opt_in_change(candidate, owner)
    assert command == ""
    assert why_none in why
    assert bool(why) == (annotation != "true")


@pytest.mark.parametrize("label", [None, "maybe"])
def test_there_is_a_line_for_every_other_vm(label: str | None) -> None:
    """A wrong value opts nobody out."""
    objects = [*disk("root"), *served("root", "node-b"), builders.labeled_namespace("vms", label)]
    candidate = found(annotated(launcher("root", nodeName="node-a"), None), objects=objects)
    assert candidate is not None
    assert opt_in_change(candidate, "web") == (opt_in_command("web", "vms"), "")


def test_the_line_that_opts_in_quotes_what_a_shell_would_read() -> None:
    """It changes the template, from which KubeVirt makes the next pod."""
    words = shlex.split(opt_in_command("web; rm", "vms"))
    assert words[:9] == ["kubectl", "patch", "virtualmachine", "web; rm", "-n", "vms", "--type", "merge", "-p"]
    template = json.loads(words[9])["spec"]["template"]
    assert template == {"metadata": {"annotations": {ANNOTATION_CO_SCHEDULE: "true"}}}
