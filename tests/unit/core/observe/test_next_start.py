"""What the webhook would ask for at the next start of a VM, whether it has opted in or not."""

import json
import shlex
from collections.abc import Sequence
from typing import Any, Final

import pytest
from msgspec import convert
from msgspec.structs import replace
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders
from support.objects.fleets import LATEST, disk, launcher, served

from webhook.core.api.meta import NamespacedName, ObjectMeta, OwnerReference
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineSpec, VMITemplateSpec
from webhook.core.observe.next_start import NextStart, next_start_of, opt_in_change, opt_in_command, stated_pod
from webhook.core.observe.vm_state import vm_status_of
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import has_share_manager, volumes_of
from webhook.core.opt_in import Policy
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason, Why
from webhook.core.view import Kind, NoObject, ObjectRef

Object = dict[str, Any]
NODES = [made for name in ("node-a", "node-b") for made in (builders.node(name), builders.longhorn_node(name))]


def annotated(pod: Pod, value: str | None) -> Pod:
    """The pod with this value of the annotation, or without the annotation."""
    annotations = {} if value is None else {ANNOTATION_CO_SCHEDULE: value}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def found(*pods: Pod, objects: list[Object], policy: Policy | None = None) -> VMStatus:
    """Where the VM of these pods is, in a cluster of these objects and two nodes, as if it asked."""
    status = vm_status_of(pods, cluster(*NODES, *objects), policy or Policy(), LATEST, even_unasked=True)
    assert status is not None
    return status


def start(pod: Pod, objects: list[Object], checks: Sequence[str] = ()) -> NextStart:
    """What the webhook would ask for, in a cluster of these objects and two nodes."""
    return next_start_of(pod, cluster(*NODES, *objects), checks)


@pytest.mark.parametrize(
    ("value", "asks"),
    [(None, False), ("false", False), ("maybe", False), ("true", True), ("required", True), ("preferred", True)],
)
def test_a_vm_that_is_apart_shows_the_node_for_which_the_webhook_would_ask(value: str | None, *, asks: bool) -> None:
    """A VM that has not opted in is shown as if its annotation were true."""
    objects = [*disk("root"), *served("root", "node-b")]
    pod = annotated(launcher("root", nodeName="node-a"), value)
    row, would = found(pod, objects=objects), start(pod, objects, ["node selector gpu=true"])
    assert (row.state, not row.not_asked) == (State.APART, asks)
    assert (would.nodes, would.followed) == (("node-b",), False)
    assert would.sentence == (
        "would ask for node-b; kube-scheduler and the webhook's rules then check: node selector gpu=true"
    )


def test_a_share_manager_is_known_by_its_pod_alone() -> None:
    """Somebody who may not read ShareManagers still sees the pod: the VM must not be counted as one without."""
    share_manager = ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", "root"))
    view = cluster(*NODES, *disk("root"), *served("root", "node-b"))
    unread = ViewWithGaps(view, {share_manager: NoObject.UNAVAILABLE})
    assert has_share_manager(volumes_of(launcher("root", nodeName="node-a"), unread))


NO_NFS = {"RequiredPackages": "PackagesNotInstalled: Missing packages: [nfs-common]"}
CONFINED = {"shareManagerNodeSelector": "storage:true"}


def confined(name: str) -> list[Object]:
    """A claim and its volume, whose StorageClass confines its share-manager."""
    return [
        builders.persistent_volume_claim(name, volume_name=f"pv-{name}"),
        builders.persistent_volume(f"pv-{name}", claim=name, handle=name, attributes=CONFINED),
    ]


def test_a_node_on_which_no_vm_starts_promises_no_gain() -> None:
    """Kubelet there can mount no volume of a share-manager (longhorn/longhorn#2058)."""
    node = builders.longhorn_node("node-b", conditions=NO_NFS)
    objects = [
        *disk("root"),
        *served("root", "node-b"),
        builders.node("node-b"),
        builders.longhorn_node("node-a"),
        node,
    ]
    start = next_start_of(launcher("root", nodeName="node-a"), cluster(*objects))
    assert (start.gains, start.reason) == (False, "NfsClientMissing")
    assert start.sentence.startswith("would gain nothing now: ")


@pytest.mark.parametrize(
    ("objects", "followed"),
    [
        pytest.param(confined("root"), False, id="confined"),
        pytest.param(disk("root"), True, id="not confined"),
        pytest.param([*confined("root"), *disk("data")], True, id="one of two"),
    ],
)
def test_a_share_manager_that_is_confined_may_be_unable_to_follow(objects: list[Object], *, followed: bool) -> None:
    """By the StorageClass parameter shareManagerNodeSelector, which its volume has."""
    stopped = [builders.share_manager(name, state="stopped") for name in ("root", "data")]
    view = cluster(*NODES, *objects, *stopped)
    start = next_start_of(launcher("root", "data", nodeName="node-a"), view)
    assert (start.followed, start.gains) == (followed, followed)


META: Object = {"name": "db01", "namespace": "vms"}
VM: Object = {"metadata": META, "spec": {"template": {"spec": {"volumes": []}}}}


def stopped(*claims: str) -> Pod:
    """What the objects of a VM without a pod state of its pod."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    vm = convert({"metadata": META, "spec": {"template": {"spec": {"volumes": volumes}}}}, VirtualMachine)
    return stated_pod(convert(META, ObjectMeta), vm.claims)


@pytest.mark.parametrize("claims", [(), ("own",)])
def test_a_vm_without_a_share_manager_would_ask_for_no_node(claims: tuple[str, ...]) -> None:
    """The sentence says what its claims led to."""
    objects = disk("own", access_modes=["ReadWriteOnce"])
    assert not has_share_manager(volumes_of(stopped(*claims), cluster(*objects)))
    assert start(stopped(*claims), objects).sentence.startswith("would ask for no node: ")


def test_a_vm_whose_claim_could_not_be_read_may_have_a_share_manager() -> None:
    """Nobody knows that it has none. The evidence says what is missing."""
    claim = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "root"))
    view = cluster(*NODES, *disk("root"), *served("root", "node-b"))
    unread = ViewWithGaps(view, {claim: NoObject.UNAVAILABLE})
    for pod in (stopped("root"), launcher("root", conditions=[])):
        assert has_share_manager(volumes_of(pod, unread))
        would = next_start_of(pod, unread)
        assert (would.reason, would.alone) == (Reason.CLAIM_LOOKUP_FAILED.code, None)


@pytest.mark.parametrize(("count", "held"), [(1, False), (2, True)])
def test_a_vm_whose_starts_fail_gains_nothing(count: int, *, held: bool) -> None:
    """After the second failed start the webhook asks for no node."""
    described = {**VM, "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}
    described["status"] = {"startFailure": {"consecutiveFailCount": count}}
    would = start(stopped("root"), [*disk("root"), *served("root", "node-b"), described])
    assert (would.held, would.gains) == (held, not held)
    assert would.sentence.startswith("would gain nothing now: " if held else "would ask for node-b; ")


def test_a_vm_gains_if_the_webhook_would_ask_or_its_share_manager_follows() -> None:
    """What stays as it is gains nothing."""
    shown = NextStart(nodes=(), reason="R", because="b", followed=False)
    assert not shown.gains
    assert replace(shown, followed=True).gains
    assert replace(shown, nodes=("node-a",)).gains
    assert not replace(shown, nodes=("node-a",), held=True).gains


@pytest.mark.parametrize(
    ("claim", "others", "alone"),
    [
        pytest.param("root", [], True, id="nobody"),
        pytest.param("root", [builders.vm_pod("web", node="node-a", claims=["root"])], False, id="another VM"),
        pytest.param("persistent-state-for-db01-x7k2p", [], None, id="KubeVirt's own claim does not count"),
    ],
)
def test_a_vm_is_alone_if_nobody_else_uses_its_volumes(claim: str, others: list[Object], alone: bool | None) -> None:  # noqa: FBT001 - a row
    """Such a VM would do with a block volume."""
    assert start(stopped(claim), [*disk(claim), *served(claim, "node-b"), *others]).alone is alone


def machine(asks: str | None = None, owner: str = "") -> VirtualMachine:
    """A VirtualMachine; `asks`: the annotation of its template."""
    owners = [OwnerReference(kind=owner, name="web")] if owner else None
    template = VMITemplateSpec(metadata=ObjectMeta(annotations={ANNOTATION_CO_SCHEDULE: asks}) if asks else None)
    return VirtualMachine(metadata=ObjectMeta(owner_references=owners), spec=VirtualMachineSpec(template=template))


UNASKED: Final = Reason.NOT_OPTED_IN.why()
CHANGES: Final[dict[str, tuple[Why | None, str | None, VirtualMachine | None, str]]] = {
    "it asks": (None, "web", machine(), ""),
    "it is opted out": (Reason.OPTED_OUT.why(), "web", machine(), "kubevirt-scheduler/co-schedule is false"),
    "its Namespace is": (Reason.NAMESPACE_OPTED_OUT.why(namespace="vms"), "web", machine(), "Namespace vms is false"),
    "unread": (Reason.NAMESPACE_LOOKUP_FAILED.why(namespace="vms", problem="503"), "web", machine(), "not be read"),
    "no VM": (UNASKED, None, None, "no VirtualMachine owns this instance"),
    "a VM that was not read": (UNASKED, "web", None, "VirtualMachine web was not found, and its template can opt"),
    "a pool": (UNASKED, "web", machine(owner="VirtualMachinePool"), "VirtualMachinePool web owns the Virtual"),
    "opted out since the start": (UNASKED, "web", machine("false"), "is false in spec.template.metadata.annotations"),
    "opted in since the start": (UNASKED, "web", machine("preferred"), "is preferred in spec.template.metadata.annot"),
}


@pytest.mark.parametrize(("why", "name", "vm", "why_none"), CHANGES.values(), ids=CHANGES)
def test_there_is_no_line_where_it_would_do_nothing_or_override_somebody(
    why: Why | None, name: str | None, vm: VirtualMachine | None, why_none: str
) -> None:
    """Each VM that does not ask has a line or a reason. What owns a VirtualMachine writes it again."""
    command, said = opt_in_change(why, name, vm, "vms")
    assert command == ""
    assert why_none in said
    assert bool(said) == (why is not None)


def test_the_line_that_opts_in_quotes_what_a_shell_would_read() -> None:
    """It changes the template, from which KubeVirt makes the next pod."""
    wrong = Reason.BAD_NAMESPACE_LABEL.why(namespace="vms", value="maybe")  # it opts nobody out
    for why in (Reason.NOT_OPTED_IN.why(), wrong):
        assert opt_in_change(why, "web; rm", machine(), "vms") == (opt_in_command("web; rm", "vms"), "")
    words = shlex.split(opt_in_command("web; rm", "vms"))
    assert words[:9] == ["kubectl", "patch", "virtualmachine", "web; rm", "-n", "vms", "--type", "merge", "-p"]
    template = json.loads(words[9])["spec"]["template"]
    assert template == {"metadata": {"annotations": {ANNOTATION_CO_SCHEDULE: "true"}}}
