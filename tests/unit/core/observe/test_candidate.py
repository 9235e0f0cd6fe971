"""What a VM would gain by co-scheduling, whether it has opted in or not."""

import json
import shlex
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders
from support.objects.fleets import LATEST, disk, launcher, served

from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.meta import NamespacedName, ObjectMeta
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import VirtualMachine
from webhook.core.observe.candidate import (
    Candidate,
    NextStart,
    candidate_of,
    candidate_of_start,
    opt_in_change,
    opt_in_command,
)
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Mode, Policy
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
    return candidate_of(pods, cluster(*NODES, *objects), Policy(), LATEST)


@pytest.mark.parametrize(
    ("value", "opted_in"),
    [(None, False), ("false", False), ("maybe", False), ("true", True), ("required", True), ("preferred", True)],
)
def test_a_vm_that_is_apart_shows_the_node_for_which_the_webhook_would_ask(
    value: str | None, *, opted_in: bool
) -> None:
    """A VM that has not opted in is shown as if its annotation were true."""
    objects = [*disk("root"), *served("root", "node-b")]
    candidate = found(annotated(launcher("root", nodeName="node-a"), value), objects=objects)
    assert candidate is not None
    assert (candidate.state, candidate.annotation, candidate.opted_in) == (State.APART, value, opted_in)
    assert candidate.next_start.nodes == ("node-b",)
    assert not candidate.next_start.followed
    assert candidate.next_start.sentence(["node selector gpu=true"]) == (
        "would ask for node-b; kube-scheduler and the webhook's rules then check: node selector gpu=true"
    )


def test_the_target_of_a_migration_starts_again_as_any_pod() -> None:
    """KubeVirt has labeled the pod in which the VM runs now; the next pod has no such label."""
    pod = annotated(launcher("root", nodeName="node-a"), None)
    migrated = replace(
        pod, metadata=replace(pod.metadata, labels={**(pod.metadata.labels or {}), LABEL_MIGRATION_JOB_UID: "m"})
    )
    candidate = found(migrated, objects=[*disk("root"), *served("root", "node-b")])
    assert candidate is not None
    assert candidate.next_start.reason == Reason.SHARE_MANAGER_POD.code


def test_the_state_of_a_vm_that_has_not_opted_in_is_known_also_where_the_mode_is_off() -> None:
    """`off` is the meaning of `true`. The state is where the VM is."""
    pod = annotated(launcher("root", nodeName="node-a"), None)
    view = cluster(*NODES, *disk("root"), *served("root", "node-b"))
    candidate = candidate_of([pod], view, Policy(mode=Mode.OFF), LATEST)
    assert candidate is not None
    assert candidate.state is State.APART


def test_the_share_manager_follows_a_vm_whose_share_manager_is_stopped() -> None:
    """The webhook leaves the VM's pod, and steers the share-manager later."""
    objects = [*disk("root"), builders.share_manager("root", state="stopped")]
    candidate = found(annotated(launcher("root", nodeName="node-a"), None), objects=objects)
    assert candidate is not None
    assert (candidate.state, candidate.next_start.followed) == (State.FREE, True)


@pytest.mark.parametrize("pods", [[], [launcher("root", phase="Succeeded")]], ids=["no pod", "it is over"])
def test_a_vm_that_no_pod_runs_is_none(pods: list[Pod]) -> None:
    """The caller knows the VM that is stopped."""
    assert found(*pods, objects=[*disk("root"), *served("root", "node-a")]) is None


@pytest.mark.parametrize(
    ("pod", "objects", "has"),
    [
        pytest.param(
            launcher("root", nodeName="node-a"), disk("root", access_modes=["ReadWriteOnce"]), False, id="RWO"
        ),
        pytest.param(launcher(nodeName="node-a"), [], False, id="no claim"),
        pytest.param(
            launcher("root", nodeName="node-a"), [*disk("root"), *served("root", "node-a")], True, id="a share-manager"
        ),
    ],
)
def test_a_vm_has_a_share_manager_or_none(pod: Pod, objects: list[Object], *, has: bool) -> None:
    """Without one, nothing could be gained."""
    candidate = found(pod, objects=objects)
    assert candidate is not None
    assert candidate.has_share_manager is has


def test_a_share_manager_is_known_by_its_pod_alone() -> None:
    """Somebody who may not read ShareManagers still sees the pod: the VM must not be counted as one without."""
    share_manager = ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", "root"))
    view = cluster(*NODES, *disk("root"), *served("root", "node-b"))
    unread = ViewWithGaps(view, {share_manager: NoObject.UNAVAILABLE})
    candidate = candidate_of([launcher("root", nodeName="node-a")], unread, Policy(), LATEST)
    assert candidate is not None
    assert candidate.has_share_manager


META: Object = {"name": "db01", "namespace": "vms"}
VM: Object = {"metadata": META, "spec": {"template": {"spec": {"volumes": []}}}}


def stopped(claims: tuple[str, ...], value: str | None = None, **status: Any) -> tuple[ObjectMeta, VirtualMachine]:
    """A VM without a pod, and what its objects say of the metadata of its pod."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    vm = {"metadata": META, "spec": {"template": {"spec": {"volumes": volumes}}}, "status": status}
    annotations = {} if value is None else {ANNOTATION_CO_SCHEDULE: value}
    return convert({**META, "annotations": annotations}, ObjectMeta), convert(vm, VirtualMachine)


@pytest.mark.parametrize("value", [None, "true"])
def test_a_vm_without_a_pod_has_no_node_and_no_state(value: str | None) -> None:
    """Its claims are those of its objects."""
    objects = [*disk("root"), *served("root", "node-b"), *disk("own", access_modes=["ReadWriteOnce"])]
    candidate = candidate_of_start(*stopped(("root", "own"), value), cluster(*NODES, *objects), Policy())
    assert (candidate.vm, candidate.node, candidate.state) == (NamespacedName("vms", "db01"), None, None)
    assert [volume.claim for volume in candidate.volumes] == ["root", "own"]
    assert (candidate.opted_in, candidate.next_start.nodes) == (value is not None, ("node-b",))


@pytest.mark.parametrize("claims", [(), ("own",)])
def test_a_vm_without_a_pod_and_without_a_share_manager_has_none(claims: tuple[str, ...]) -> None:
    """The sentence says what its claims led to."""
    view = cluster(*NODES, *disk("own", access_modes=["ReadWriteOnce"]))
    candidate = candidate_of_start(*stopped(claims), view, Policy())
    assert not candidate.has_share_manager
    assert candidate.next_start.sentence([]).startswith("would ask for no node: ")


def test_a_vm_without_a_pod_whose_claim_could_not_be_read_may_have_a_share_manager() -> None:
    """Nobody knows that it has none. The evidence says what is missing, also for a pod that waits."""
    claim = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "root"))
    view = cluster(*NODES, *disk("root"), *served("root", "node-b"))
    unread = ViewWithGaps(view, {claim: NoObject.UNAVAILABLE})
    for candidate, state in (
        (candidate_of_start(*stopped(("root",)), unread, Policy()), None),
        (candidate_of([launcher("root", conditions=[])], unread, Policy(), LATEST), State.PENDING),
    ):
        assert candidate is not None
        assert candidate.has_share_manager
        assert (candidate.state, candidate.next_start.reason) == (state, Reason.CLAIM_LOOKUP_FAILED.code)
        assert candidate.alone is None


@pytest.mark.parametrize(("count", "held"), [(1, False), (2, True)])
def test_a_vm_whose_starts_fail_gains_nothing(count: int, *, held: bool) -> None:
    """After the second failed start the webhook asks for no node."""
    described = {**VM, "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}
    described["status"] = {"startFailure": {"consecutiveFailCount": count}}
    view = cluster(*NODES, *disk("root"), *served("root", "node-b"), described)
    start = candidate_of_start(*stopped(("root",)), view, Policy()).next_start
    assert (bool(start.held), start.gains) == (held, not held)
    assert start.sentence([]).startswith("would gain nothing now: " if held else "would ask for node-b; ")


def test_a_vm_gains_if_the_webhook_would_ask_or_its_share_manager_follows() -> None:
    """What stays as it is gains nothing."""
    shown = NextStart(nodes=(), cause="c", reason="R", because="b", followed=False)
    assert not shown.gains
    assert replace(shown, followed=True).gains
    assert replace(shown, nodes=("node-a",)).gains
    assert not replace(shown, nodes=("node-a",), held="h").gains


@pytest.mark.parametrize(
    ("others", "alone"),
    [
        pytest.param([], True, id="nobody"),
        pytest.param([builders.vm_pod("web", node="node-a", claims=["root"])], False, id="another VM"),
    ],
)
def test_a_vm_is_alone_if_nobody_else_uses_its_volumes(others: list[Object], *, alone: bool) -> None:
    """Such a VM would do with a block volume."""
    objects = [*disk("root"), *served("root", "node-b"), *others]
    assert candidate_of_start(*stopped(("root",)), cluster(*NODES, *objects), Policy()).alone is alone


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
