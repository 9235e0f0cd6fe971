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
from webhook.status.settings import StatusSettings

_OBJECTS = [*disk("root"), *served("root", "node-a")]
_SETTINGS: dict[str, Any] = {
    "names": (),
    "namespace": None,
    "all_namespaces": True,
    "selector": None,
    "apart": False,
    "watch": True,
    "plan": False,
    "output": "table",
    "no_headers": False,
    "kubeconfig": None,
    "context": None,
    "manifests": None,
    "longhorn_namespace": "longhorn-system",
    "opt_in_all": "off",
}


def vm(node: str) -> VMStatus:
    """The VM `db01`, on this node; its share-manager is on node-a."""
    return the_row(launcher("root", nodeName=node), objects=_OBJECTS)


class WatchedLines:
    """A watch that prints lines, and the lines that it has printed."""

    def __init__(self, output: str = "table", *, apart: bool = False) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        settings = StatusSettings(**_SETTINGS | {"output": output, "apart": apart})
        printed = Output(settings, self.out, self.err, color=False)
        self._lines = Lines(printed, Asked(namespace="", apart=apart), "here")
        self._version = 0

    def printed(
        self,
        *rows: VMStatus,
        gone: Sequence[str] = (),
        whole: bool = False,
        late: tuple[str, ...] = (),
    ) -> list[str]:
        """The state in each line that is printed for these changes."""
        self._version += 1
        before = len(self.out.getvalue())
        snapshot = VMStatuses(version=self._version, at=LATER, rows=rows, counts={}, by_namespace={}, late=late)
        keys = tuple(NamespacedName("vms", name) for name in gone)
        self._lines.show(snapshot, Changes(version=self._version, rows=rows, gone=keys, whole=whole))
        return [line.partition("  ")[2].partition(" ")[0] for line in self.out.getvalue()[before:].splitlines()]


def test_a_row_is_printed_when_it_has_changed() -> None:
    """If all rows come again, only those that changed are printed."""
    followed = WatchedLines()
    assert followed.printed(vm("node-a"), whole=True) == ["together"]
    assert followed.printed(vm("node-b")) == ["apart"]
    assert followed.printed(vm("node-b"), whole=True) == []
    assert followed.printed() == []


def test_a_vm_that_is_gone_is_printed_once() -> None:
    """The VM is reported as gone, or is missing among all rows. A VM that was never printed is not reported."""
    for last in ({"gone": ["db01", "other"]}, {"whole": True}):
        followed = WatchedLines()
        followed.printed(vm("node-a"))
        assert followed.printed(**last) == ["gone"]
        assert followed.printed(**last) == []


def test_with_apart_a_row_is_printed_until_it_is_well() -> None:
    """It is not printed any more after that, until it is apart or stuck again."""
    followed = WatchedLines(apart=True)
    assert followed.printed(vm("node-a")) == []
    assert followed.printed(vm("node-b")) == ["apart"]
    assert followed.printed(vm("node-a")) == ["together"]
    assert followed.printed(gone=["db01"]) == []


def test_what_is_not_up_to_date_is_printed_once() -> None:
    """On standard error, and again if the problem changes."""
    followed = WatchedLines("json")
    for late in (("pods: cut",), ("pods: cut",), (), ("nodes: cut",)):
        followed.printed(late=late)
    assert followed.err.getvalue() == "here: not up to date: pods: cut\nhere: not up to date: nodes: cut\n"
    followed.printed(vm("node-a"))
    followed.printed(gone=["db01"])
    assert [line[:8] for line in followed.out.getvalue().splitlines()] == ['{"at":"2'] * 2
