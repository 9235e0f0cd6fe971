import gc
from io import StringIO
from types import ModuleType

import pytest
from support.objects.builders import recorded
from support.objects.fleets import LATER, disk, launcher, scheduled, served, the_row

from webhook.component_base.errors import UserError
from webhook.core.observe.vm_status import VMStatus
from webhook.vms import candidates, status
from webhook.vms.output import age, table
from webhook.vms.status import summary

NOW = "2026-01-02T06:30:00Z"


AGES = [
    pytest.param(None, "-", id="nobody knows"),
    pytest.param("2026-01-02T06:29:31Z", "29s", id="seconds"),
    pytest.param("2026-01-02T06:29:00Z", "1m", id="a minute"),
    pytest.param("2026-01-02T05:31:00Z", "59m", id="minutes"),
    pytest.param("2026-01-02T05:30:00Z", "1h", id="an hour"),
    pytest.param("2026-01-02T04:00:00Z", "2h30m", id="hours"),
    pytest.param("2026-01-01T06:30:00Z", "1d", id="a day"),
    pytest.param("2025-12-30T04:30:00Z", "3d2h", id="days"),
    pytest.param("2026-01-02T06:30:05Z", "0s", id="another clock's future"),
]


@pytest.mark.parametrize(("since", "shown"), AGES)
def test_an_age_has_two_units_at_most(since: str | None, shown: str) -> None:
    """As in kubectl."""
    assert age(since, NOW) == shown


def test_a_summary_counts_states_and_causes() -> None:
    """A state without VMs is not named. The option that shows these VMs alone is named where it shows fewer."""
    objects = [*disk("root"), *served("root", "node-a")]
    together, apart = (the_row(launcher("root", nodeName=node), objects=objects) for node in ("node-a", "node-b"))
    assert summary([together], apart=False) == "1 VM: 1 together; 100 % together"
    counted = "3 VMs: 2 apart, 1 together; 33 % together\nwhy: VmWebhookNotAsked (2)"
    assert summary([together, apart, apart], apart=False) == f"{counted}; these alone: --apart"
    assert summary([together, apart, apart], apart=True) == counted
    unchanged = recorded("unchanged", because="NodeNotReady: node node-a is not Ready")
    left = launcher("root", nodeName="node-b", annotations=unchanged, conditions=[scheduled(LATER)])
    _, why = summary([the_row(left, objects=objects), apart, apart], apart=True).splitlines()
    assert why == "why: VmWebhookNotAsked (2), VmLeftUnchanged (1)"
    assert summary([apart], apart=False) == "1 VM: 1 apart; 0 % together\nwhy: VmWebhookNotAsked (1)"


def lines(*rows: VMStatus, namespaces: bool = False, color: bool = False) -> list[str]:
    """The table of these VMs."""
    return table(rows, {}, namespaces=namespaces, head=True, color=color)


def test_names_send_nothing_to_the_terminal() -> None:
    """A control character is shown as an escape."""
    row = the_row(launcher("ro\x1b[2J\u202eot", nodeName="node-a"))
    shown = lines(row, color=True)
    assert "\x1b[2J" not in "".join(shown)
    assert "ro\\x1b[2J\\x202eot: -" in shown[1]


def test_states_are_painted_within_their_column() -> None:
    """The state `free` has no color."""
    objects = [*disk("root"), *served("root", "node-a")]
    rows = [the_row(launcher("root", nodeName=node), objects=objects) for node in ("node-a", "node-b")]
    rows.append(the_row(launcher(nodeName="node-a")))
    painted = lines(*rows, namespaces=True, color=True)
    assert ["\x1b[32mtogether\x1b[0m" in painted[1], "\x1b[31mapart\x1b[0m" in painted[2]] == [True, True]
    assert "\x1b" not in painted[0] + painted[3]
    plain = lines(*rows, namespaces=True)
    assert len({line.index(state) for line, state in zip(plain[1:], ("together", "apart", "free"), strict=True)}) == 1


@pytest.mark.parametrize("command", [status, candidates])
def test_no_garbage_is_collected_while_a_cluster_is_read(command: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection visits all objects again: with 5,000 VMs a second of two and a half."""
    seen: list[bool] = []

    def collect(*_: object) -> None:
        seen.append(gc.isenabled())
        raise UserError("no cluster")

    monkeypatch.setattr(command, "collect", collect)
    with pytest.raises(UserError):
        command.run(None, stdout=StringIO(), stderr=StringIO(), color=False)
    assert (seen, gc.isenabled()) == ([False], True)
