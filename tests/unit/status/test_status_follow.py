import io
from collections.abc import Sequence
from typing import Any

from support.objects.fleets import LATER, disk, launcher, served, the_row

from webhook.core.api.meta import NamespacedName
from webhook.core.observe.vm_status import VMStatus
from webhook.kube.vm_status import Changes, VMStatuses
from webhook.status.follow import Lines
from webhook.status.output import Output
from webhook.status.report import Asked
from webhook.status_settings import StatusSettings

_OBJECTS = [*disk("root"), *served("root", "node-a")]
_SETTINGS: dict[str, Any] = {
    "names": (),
    "namespace": None,
    "all_namespaces": True,
    "apart": False,
    "watch": True,
    "plan": False,
    "output": "table",
    "kubeconfig": None,
    "context": None,
    "manifests": None,
    "longhorn_namespace": "longhorn-system",
}


def vm(node: str) -> VMStatus:
    """The VM `db01`, on this node; its share-manager is on node-a."""
    return the_row(launcher("root", nodeName=node), objects=_OBJECTS)


class LiveSources:
    """A watch that prints lines, and what it has printed."""

    def __init__(self, output: str = "table", *, apart: bool = False) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        settings = StatusSettings(**_SETTINGS | {"output": output, "apart": apart})
        printed = Output(settings, self.out, self.err, color=False)
        self._lines = Lines(printed, Asked(namespace="", apart=apart), "here")
        self._version = 0

    def hear(
        self,
        *rows: VMStatus,
        gone: Sequence[str] = (),
        whole: bool = False,
        late: tuple[str, ...] = (),
    ) -> list[str]:
        """What is printed of these changes: the state in each line."""
        self._version += 1
        before = len(self.out.getvalue())
        snapshot = VMStatuses(version=self._version, at=LATER, rows=rows, counts={}, by_namespace={}, late=late)
        keys = tuple(NamespacedName("vms", name) for name in gone)
        self._lines.show(snapshot, Changes(version=self._version, rows=rows, gone=keys, whole=whole))
        return [line.partition("  ")[2].partition(" ")[0] for line in self.out.getvalue()[before:].splitlines()]


def test_a_row_is_told_when_it_has_changed() -> None:
    """Also where all rows are told again: those that are as they were are not."""
    followed = LiveSources()
    assert followed.hear(vm("node-a"), whole=True) == ["together"]
    assert followed.hear(vm("node-b")) == ["apart"]
    assert followed.hear(vm("node-b"), whole=True) == []
    assert followed.hear() == []


def test_a_vm_that_is_gone_is_told_once() -> None:
    """Whether it is told as gone, or is not among all that there are; one that was never told is not missed."""
    for last in ({"gone": ["db01", "other"]}, {"whole": True}):
        followed = LiveSources()
        followed.hear(vm("node-a"))
        assert followed.hear(**last) == ["gone"]
        assert followed.hear(**last) == []


def test_with_apart_a_row_is_told_into_trouble_and_out_of_it() -> None:
    """And no more after that, until it is in trouble again."""
    followed = LiveSources(apart=True)
    assert followed.hear(vm("node-a")) == []
    assert followed.hear(vm("node-b")) == ["apart"]
    assert followed.hear(vm("node-a")) == ["together"]
    assert followed.hear(gone=["db01"]) == []


def test_what_is_not_up_to_date_is_said_once() -> None:
    """On standard error, and again when it is something else."""
    followed = LiveSources("json")
    for late in (("pods: cut",), ("pods: cut",), (), ("nodes: cut",)):
        followed.hear(late=late)
    assert followed.err.getvalue() == "here: not up to date: pods: cut\nhere: not up to date: nodes: cut\n"
    followed.hear(vm("node-a"))
    followed.hear(gone=["db01"])
    assert [line[:8] for line in followed.out.getvalue().splitlines()] == ['{"at":"2'] * 2
