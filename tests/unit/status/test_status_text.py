import pytest
from support.objects.fleets import LATER, disk, launcher, served, the_row

from webhook.status import text
from webhook.status.report import Selection, exit_code

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
    pytest.param("not a time", "not a time", id="another text is shown unchanged"),
    pytest.param("2026-01-02T06:29:00", "2026-01-02T06:29:00", id="a time of no zone"),
]


@pytest.mark.parametrize(("since", "shown"), AGES)
def test_an_age_has_two_units_at_most(since: str | None, shown: str) -> None:
    """As in kubectl."""
    assert text.age(since, NOW) == shown


def test_a_summary_counts_states_and_causes() -> None:
    """A state without VMs is not named. The option that shows these VMs alone is named where it shows fewer."""
    objects = [*disk("root"), *served("root", "node-a")]
    together, apart = (the_row(launcher("root", nodeName=node), objects=objects) for node in ("node-a", "node-b"))
    assert text.summary([together], apart=False) == "1 VM: 1 together"
    counted = "3 VMs: 2 apart, 1 together\nwhy: webhook not asked (2)"
    assert text.summary([together, apart, apart], apart=False) == f"{counted}; these alone: --apart"
    assert text.summary([together, apart, apart], apart=True) == counted
    assert text.summary([apart], apart=False) == "1 VM: 1 apart\nwhy: webhook not asked (1)"


def test_names_send_nothing_to_the_terminal() -> None:
    """A control character is shown as an escape."""
    row = the_row(launcher("ro\x1b[2Jot", nodeName="node-a"))
    table = text.Table(wide=False, namespaces=False, color=True)
    for line in table.lines([row], NOW):
        assert "\x1b[2J" not in line
    assert "ro\\x1b[2Jot: -" in table.lines([row], NOW)[1]


def test_states_are_painted_within_their_column() -> None:
    """The state `free` has no color."""
    objects = [*disk("root"), *served("root", "node-a")]
    rows = [the_row(launcher("root", nodeName=node), objects=objects) for node in ("node-a", "node-b")]
    rows.append(the_row(launcher(nodeName="node-a")))
    lines = text.Table(wide=False, namespaces=True, color=True).lines(rows, NOW)
    assert ["\x1b[32mtogether\x1b[0m" in lines[1], "\x1b[31mapart   \x1b[0m" in lines[2]] == [True, True]
    assert "\x1b" not in lines[0] + lines[3]
    plain = text.Table(wide=False, namespaces=True, color=False).lines(rows, NOW)
    assert len({line.index(state) for line, state in zip(plain[1:], ("together", "apart", "free"), strict=True)}) == 1


def test_a_migration_is_shown() -> None:
    """The VM is about to leave one of the two nodes."""
    old = launcher("root", name="virt-launcher-db01-zzzzz", nodeName="node-a")
    new = launcher("root", nodeName="node-b", created=LATER)
    (_, line) = text.Table(wide=False, namespaces=False, color=False).lines([the_row(old, new)], NOW)
    assert line.startswith("db01   node-b (migrating)   ")


ALL = Selection(namespace="")


@pytest.mark.parametrize(
    ("states", "missing", "problems", "code"),
    [
        ((), (), (), 0),
        (("node-a",), (), (), 0),
        (("node-a", "node-b"), (), (), 1),
        (("node-a",), ("nope",), (), 2),
        (("node-b",), ("nope",), (), 2),
        (("node-a",), (), ("namespaces: 403",), 2),
        (("node-b",), (), ("namespaces: 403",), 1),
    ],
)
def test_the_exit_code_is_for_scripts(
    states: tuple[str, ...], missing: tuple[str, ...], problems: tuple[str, ...], code: int
) -> None:
    """0 if no VM is apart or stuck, 1 if one is, 2 if a name or a state is not known, or something was not read."""
    objects = [*disk("root"), *served("root", "node-a")]
    rows = [the_row(launcher("root", nodeName=node), objects=objects) for node in states]
    assert exit_code(ALL.rows(rows), missing, problems) == code
