"""The controller's loop: killed, started twice, refused, disconnected; its log lines, health and metrics."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import structs
from support.fakes import certs_cluster
from support.fakes.certs_cluster import NOW, POLICY, SECOND, MemoryCluster, configuration, secret
from support.fakes.certs_controller import Killed, Objects, Said, controller, keep

from certs import pki, run
from certs.controller import READ_EVERY, Clock, Controller, ControllerStatus
from certs.pki import Servable
from certs.plan import Issue, Publish
from webhook.component_base.health import Check
from webhook.component_base.log_line import written_to_stderr
from webhook.component_base.options import BadKubeconfig

RENEWAL = NOW + POLICY.lifetime - POLICY.renew_before
AUTHORITY = certs_cluster.made()
WRITES_OF_A_NEW_AUTHORITY = 4
RETIRES_SOON = structs.replace(POLICY, retire=12 * READ_EVERY)  # an hour has 720 reads


def issued() -> MemoryCluster:
    """A cluster with a pair of its authority, published."""
    pair = certs_cluster.pair(of=AUTHORITY)
    return MemoryCluster(secret(pair), configuration(pair.authority), secret(AUTHORITY.pair))


async def test_the_first_start_ends_with_a_good_pair_that_is_published() -> None:
    """Three writes, each logged with its reason."""
    objects, said = Objects(MemoryCluster(None, configuration(b"", b"")), NOW), Said()
    objects.until = NOW + SECOND
    await keep(objects, said)
    assert said.messages == ["authority made", "authority published", "certificate issued", "waiting"]
    assert isinstance(pki.examine(objects.cluster.served, POLICY.names, NOW), Servable)
    assert objects.cluster.bundles == [objects.cluster.served.authority] * 2


async def test_the_objects_are_read_every_five_seconds() -> None:
    """Even if the next step is far away: another client can change them, and a machine that was suspended continues."""
    objects = Objects(issued(), NOW)
    objects.until = NOW + 5 * READ_EVERY
    await keep(objects)
    assert objects.pauses == [5.0] * 5


async def test_a_renewal_is_one_write_and_leaves_the_bundle_as_it_is() -> None:
    """Killed before it, the next controller makes it."""
    objects, said = Objects(issued(), NOW), Said()
    first, bundles = objects.cluster.served, objects.cluster.bundles
    objects.now = RENEWAL
    objects.kill = lambda _: "before"
    await keep(objects)
    assert objects.cluster.served == first
    objects.kill = lambda _: None
    objects.until = RENEWAL + READ_EVERY
    await keep(objects, said)
    assert said.messages == ["certificate issued", "waiting"]
    assert len(objects.cluster.writes) == 1
    assert (objects.cluster.bundles, objects.cluster.served.authority) == (bundles, first.authority)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", range(WRITES_OF_A_NEW_AUTHORITY))
async def test_a_controller_killed_at_any_write_of_a_new_authority_is_continued(write: int, moment: str) -> None:
    """The next one continues: one authority was made and used, in four writes, and nothing is left over."""
    objects = Objects(issued(), NOW)
    first = objects.cluster.served
    objects.cluster.edit_secret("authority", None)
    objects.kill = lambda count: moment if count == write else None
    await keep(objects, policy=RETIRES_SOON)
    objects.kill = lambda _: None
    objects.until = objects.now + POLICY.propagation + RETIRES_SOON.retire + 2 * READ_EVERY
    await keep(objects, policy=RETIRES_SOON)
    assert len(objects.cluster.writes) == WRITES_OF_A_NEW_AUTHORITY
    assert objects.cluster.served.authority == objects.cluster.state().authority.pair.certificate != first.authority
    assert objects.cluster.bundles == [objects.cluster.served.authority]


@pytest.mark.parametrize("held", [None, secret()], ids=["no Secret", "an empty Secret"])
async def test_two_controllers_started_at_once_make_one_authority(held: dict[str, Any] | None) -> None:
    """The slower one reads again, and logs that."""
    shared = MemoryCluster(held, configuration(b""), held)
    objects, said = Objects(shared, NOW), Said()
    made: list[bytes] = []

    def race() -> None:
        certs_cluster.take_next(shared, NOW)
        made.append(shared.state().authority.pair.certificate)

    objects.raced = race
    objects.until = NOW + SECOND
    keeper = await keep(objects, said)
    assert said.messages[0] == "another client wrote first, reading again"
    assert keeper.status.conflicts == 1
    assert [shared.served.authority] == made
    assert shared.bundles == [shared.served.authority]


async def test_a_write_that_conflicts_again_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook of others that answers 409, for example: there is a pause that grows, and readiness says why."""
    objects, said, tries = Objects(MemoryCluster(None, configuration(b"")), NOW), Said(), iter(range(50))

    def refuse(*_: object) -> None:
        raise certs_cluster.Conflict if next(tries, None) else Killed

    monkeypatch.setattr(objects.cluster, "apply", refuse)
    next(tries)
    objects.until = NOW + 60 * SECOND
    keeper = await keep(objects, said)
    assert next(tries, 0) == keeper.status.conflicts + 1
    assert keeper.status.problem == "409 Conflict"
    assert said.messages.count("another client wrote first, reading again") == 1
    assert objects.pauses[0] < objects.pauses[3] < objects.pauses[5]


async def test_trouble_is_said_once_and_tried_again() -> None:
    """A sentence, a pause that grows, and a line when it is over."""
    objects, said = Objects(issued(), NOW), Said()
    objects.problem = ["the API server is away"] * 6 + ["no permission"]
    objects.until = NOW + 60 * SECOND
    keeper = await keep(objects, said)
    assert [line["error"] for line in said.lines if line["level"] == logging.ERROR] == [
        "the API server is away",
        "no permission",
    ]
    assert said.messages[2] == "the objects can be read again"
    assert keeper.status.errors == 7
    assert all(0 < pause <= 10 for pause in objects.pauses)
    assert objects.pauses[0] < objects.pauses[3] < objects.pauses[5]


async def test_credentials_that_are_gone_while_it_runs_are_trouble_and_no_end() -> None:
    """A kubeconfig that is being replaced, or a token file that does not exist yet."""
    objects, said = Objects(issued(), NOW), Said()
    objects.until = NOW + SECOND
    connect, tries = objects.connect, iter([BadKubeconfig("config: no such file"), None])

    @asynccontextmanager
    async def connecting() -> AsyncIterator[Objects]:
        if error := next(tries):
            raise error
        async with connect() as connected:
            yield connected

    objects.connect = connecting
    await keep(objects, said)
    assert said.lines[0]["error"] == "config: no such file"
    assert "the objects can be read again" in said.messages


async def test_a_step_that_was_planned_long_ago_is_planned_again() -> None:
    """The process was stopped between reading and writing, so its data is too old."""
    objects = Objects(MemoryCluster(None, configuration(b"")), NOW)
    times = iter([NOW, NOW, NOW + 11 * SECOND])
    keeper = Controller(objects.connect, POLICY, Clock(lambda: next(times)), Said())
    await keeper.reconcile(objects)
    assert objects.cluster.writes == []


async def test_the_controller_slows_down_if_another_client_undoes_its_writes() -> None:
    """Two programs write the bundle: the controller slows down, and logs the reason."""
    objects, said = Objects(issued(), NOW), Said()

    keeper = controller(objects, said)
    for _ in range(3):
        objects.cluster.edit_configuration(configuration(b""))
        await keeper.reconcile(objects)
    assert objects.pauses == [5.0] * 2
    assert sum("change back after each write" in message for message in said.messages) == 1


async def test_the_controller_slows_down_if_clients_undo_its_writes_in_turn() -> None:
    """One empties the bundle, another one deletes the Secret: no write is the same as the one before."""
    objects, said = Objects(issued(), NOW), Said()
    keeper = controller(objects, said)
    for _ in range(3):
        objects.cluster.edit_configuration(configuration(b""))
        await keeper.reconcile(objects)
        objects.cluster.edit_secret("served", None)
        await keeper.reconcile(objects)
    assert [type(each) for each in objects.cluster.writes] == [Publish, Issue] * 3
    assert objects.pauses == [5.0] * 4
    assert sum("change back after each write" in message for message in said.messages) == 1


async def test_nothing_secret_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """No private key in any line of a rotation, tracebacks included."""
    objects = Objects(MemoryCluster(None, configuration(b"garbage")), NOW)
    objects.until = NOW + SECOND
    keeper = controller(objects, run.note)
    with written_to_stderr(logging.INFO):
        with pytest.raises(Killed):
            await keeper.run()
        shown = ValueError(objects.cluster.state(), objects.cluster.writes)
        logging.getLogger("certs").error("shown", exc_info=shown)
    text = capsys.readouterr().err
    assert [json.loads(line)["level"] for line in text.splitlines()].count("error") == 1
    state = objects.cluster.state()
    for key in (state.served.pair.key, state.authority.pair.key):
        assert key.splitlines()[1].decode() not in text
        assert base64.b64encode(key).decode() not in text


def test_health_is_the_loop_and_readiness_is_the_cluster() -> None:
    """Liveness does not depend on the API server: a restart does not repair it. A stuck loop fails liveness."""
    status = controller(Objects(MemoryCluster(None, configuration()), NOW), Said()).status
    assert run.liveness(status, NOW).ok
    assert run.readiness(status) == Check("objects", ok=False, detail="the objects were not read yet")
    status = structs.replace(status, reconciled_at=NOW, problem=None)
    assert run.liveness(status, NOW + run.STUCK_AFTER).ok
    stuck = Check("controller", ok=False, detail="has not run since 2026-11-21T12:00:00Z")
    assert run.liveness(status, NOW + run.STUCK_AFTER + SECOND) == stuck
    assert run.readiness(status).ok


async def test_metrics_tell_the_expiry_and_what_was_done() -> None:
    """Unknown values are absent."""
    objects = Objects(MemoryCluster(None, configuration(b"")), NOW)
    objects.until = NOW + SECOND
    status = (await keep(objects)).status
    assert samples(status) == {
        "certificate_expiry_timestamp_seconds": (NOW + POLICY.lifetime).timestamp(),
        "last_success_timestamp_seconds": NOW.timestamp(),
        "rotations_total": 1,
        "writes_total": 3,
        "conflicts_total": 0,
        "errors_total": 0,
    }
    assert "certificate_expiry_timestamp_seconds" not in samples(structs.replace(status, expires_at=None))


def samples(status: ControllerStatus) -> dict[str, float]:
    """The values of /metrics, by name."""
    told = (sample for family in run.families(status) for sample in family.samples)
    return {sample.name.removeprefix("kubevirt_coschedule_certs_"): sample.value for sample in told}
