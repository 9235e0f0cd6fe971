"""`serve --audit=on` on a real control plane: the pods that are stored, and what each shows of the decision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.vm_starts import NODES, Start, Starting, decision, nodes
from support.drivers.scraping import scrape
from support.drivers.serving import Serving
from support.objects import builders
from support.scenarios.admitting import until_watched

from webhook.core.reasons import ANNOTATION_APPLIED_PATCH

VM: Final = Start("db01")
NODE: Final = NODES[3]
AUDITED: Final = "the webhook only audits (--audit=on); it would write a "


@pytest.fixture(autouse=True)
def _webhook(installed: Installed) -> Iterator[None]:
    """The API server calls the webhook."""
    installed.enable()
    yield
    installed.disable()


@contextmanager
def started(installed: Installed, *flags: str) -> Iterator[tuple[Serving, Starting]]:
    """A server with these flags; the share-manager of the VM is on a node."""
    with ExitStack() as here:
        cluster, starting = (here.enter_context(each(installed.plane.api)) for each in (ClusterState, Starting))
        server = here.enter_context(installed.serving(*flags))
        share_manager = builders.share_manager(VM.volume, state="running", ownerID=NODE)
        cluster.become([*nodes(), *VM.shelf[:2], share_manager, builders.share_manager_pod(VM.volume, nodeName=NODE)])
        until_watched(server)
        installed.until_called()
        yield server, starting


def test_pods_keep_their_affinity_and_say_what_would_have_been(installed: Installed) -> None:
    """The decision has the same words as that of a webhook that acts; metrics count it as audited."""
    with started(installed, "--audit", "on") as (server, starting):
        launcher = starting.vm(VM)
        starting.placed(launcher)
        again = builders.share_manager_pod(VM.volume, phase=None)
        again["metadata"]["name"] += "-again"
        share_manager = starting.api.create(again, dryRun="All")
        count = scrape(server.health_port).value(
            "kubevirt_coschedule_admissions_total", decision="unchanged", reason="AuditRequired"
        )
    for pod in (launcher, share_manager):
        assert "nodeAffinity" not in (pod["spec"].get("affinity") or {})
        record = json.loads(pod["metadata"]["annotations"][ANNOTATION_APPLIED_PATCH])
        assert "nodes" not in record, "no affinity was written"
    assert count == 1
    with started(installed) as (_, starting):
        acting = starting.vm(VM)
        assert starting.placed(acting) == NODE
    assert decision(acting).startswith(f"required on {NODE}: ShareManagerPod: ")
    assert decision(launcher) == f"unchanged: AuditRequired: {AUDITED}requirement: {decision(acting)}"
    assert decision(share_manager).startswith(f"unchanged: AuditPreferred: {AUDITED}preference: preferred on ")
