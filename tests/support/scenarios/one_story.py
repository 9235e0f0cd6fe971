"""Four VMs on a real control plane, and each output that tells of them: what it says of every one.

All of it goes through the API server, the webhook and kube-scheduler; only what controllers of KubeVirt and Longhorn
would write is written here. Nothing is written to a VM's pod that the webhook would write.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.kubevirt_kinds import crd
from support.control_plane.programs import Program
from support.control_plane.vm_events import clear, granted, written
from support.control_plane.vm_starts import Start, Starting, nodes
from support.drivers.explaining import a_vm
from support.drivers.scraping import Scraped, scrape
from support.drivers.serving import Client, Serving
from support.drivers.status_runs import instance
from support.objects import builders_pods
from support.objects.builders import LONGHORN_API_VERSION, LONGHORN_NAMESPACE, NAMESPACE
from support.objects.fleets import EARLY, served
from support.scenarios.admitting import until, until_watched

from webhook.core.observe.vm_status import State

VMS: Final = ("apart", "cold", "pinned", "together")
HOME: Final = {"apart": "node-b", "pinned": "node-d", "together": "node-a"}
"""VM -> the node of its share-manager, of those whose share-manager runs before they start."""
KINDS: Final = ("VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceMigration")
EVENTS: Final = 5  # a decision on each start, and one on the share-manager; none on the target of a live migration
_CREATED_BY: Final = "kubevirt.io/created-by"
_STATE: Final = b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n"
_SEAT: Final = {"cpu": "2"}
_ALL_OF_A_NODE: Final = {"cpu": "63"}  # of the 64 that builders give it
_STARTS: Final = {vm: Start(vm) for vm in VMS}


class Story(NamedTuple):
    """What has become of them.

    `pods`: VM -> its pods, and the one of its share-manager that was made, as created. `nodes`: VM -> its node.
    """

    installed: Installed
    server: Serving
    pods: dict[str, list[Object]]
    nodes: dict[str, str | None]

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of all calls."""
        return [line for line in self.server.lines() if line["message"] == "admission"]

    def line(self, pod: Object) -> dict[str, Any]:
        """The one line of the call that was this pod's creation."""
        wanted = (pod["metadata"]["name"], False)
        (line,) = (each for each in self.log if (each["pod"], each.get("dry_run", False)) == wanted)
        return line

    def metrics(self) -> Scraped:
        """As Prometheus gets them."""
        return scrape(self.server.health_port)

    def page(self) -> dict[str, Any]:
        """The data that the page gets."""
        with Client(self.server.health_port) as client:
            told: dict[str, Any] = json.loads(gzip.decompress(client.ask(_STATE).body))
        return told

    def rows(self) -> dict[str, dict[str, Any]]:
        """VM -> row, of the page."""
        return {row["name"]: row for row in self.page()["rows"] if row["namespace"] == NAMESPACE}


@contextmanager
def happened(installed: Installed) -> Iterator[Story]:
    """The four, as they came to be what they are; the cluster is empty again afterwards."""
    api = installed.plane.api
    clear(api)
    definitions = [crd(kind) for kind in KINDS]
    installed.plane.install(definitions)
    with ExitStack() as here:
        here.enter_context(granted(installed))
        here.callback(clear, api)
        here.callback(installed.plane.install_kubevirt)
        for each in definitions:
            here.callback(api.delete, each)
        here.callback(installed.disable)
        cluster, starting = here.enter_context(ClusterState(api)), here.enter_context(Starting(api))
        cluster.become(_before())
        server = here.enter_context(installed.serving("--events", "on", "--log-level", "debug"))
        until_watched(server)
        installed.enable()
        installed.until_called()
        assert installed.plane.scheduler
        acting = _Acting(starting, cluster, installed.plane.scheduler, {vm: api.create(instance(vm)) for vm in VMS})
        pods = {"together": acting.together(), "apart": acting.apart(), "pinned": acting.pinned()}
        pods["cold"] = acting.cold()
        until(lambda: written(server, "written") == EVENTS, lambda: f"{written(server, 'written')} of {EVENTS} Events")
        there = {vm: api.get(pods[vm][-1])["spec"].get("nodeName") for vm in VMS}
        story = Story(installed, server, pods, there)
        until(lambda: _settled(story), lambda: f"the VMs' states: {story.rows()}")
        yield story


def _settled(story: Story) -> bool:
    """Whether the fleet has passed over all that has happened: each VM's last state, and no cache behind."""
    states = {name: row["state"] for name, row in story.rows().items()}
    return states == STATES and (story.metrics().value("kubevirt_coschedule_vms", state="stuck") == 1)


class _Acting:
    """The actions of KubeVirt, of Longhorn, and of others who create pods."""

    def __init__(
        self, starting: Starting, cluster: ClusterState, scheduler: Program, instances: dict[str, Object]
    ) -> None:
        self._scheduler = scheduler
        self._starting, self._api, self._cluster, self._instances = starting, starting.api, cluster, instances

    def together(self) -> list[Object]:
        """It starts."""
        pod = self._launch("together")
        self._starting.placed(pod)
        return [pod]

    def apart(self) -> list[Object]:
        """It starts, is live-migrated to another node, and its source pod ends."""
        source = self._launch("apart")
        self._starting.placed(source)
        target = self._launch("apart", "2", migration_target=True, affinity=_away_from(self._instances["apart"]))
        self._starting.placed(target)
        self._api.replace_status({**self._api.get(source), "status": {"phase": "Succeeded"}})
        return [source, target]

    def pinned(self) -> list[Object]:
        """It is pinned, and before it is on its node a pod that names the node itself takes its seat."""
        self._scheduler.stop()
        pod = self._launch("pinned")
        taker = builders_pods.pod("taker", node=HOME["pinned"], requests=_ALL_OF_A_NODE)
        self._cluster.become([*_before(), taker])
        self._scheduler.start()  # it lists every pod before it looks at one
        until(lambda: _is_unschedulable(self._api.get(pod)), "what kube-scheduler says")
        return [pod]

    def cold(self) -> list[Object]:
        """It starts while its share-manager is stopped, which is then made, and runs."""
        start, pod = _STARTS["cold"], self._launch("cold")
        node = self._starting.placed(pod)
        self._starting.ticket(start, node)
        until(lambda: self._starting.share_manager(start, dryRun="All")["spec"].get("affinity"), "the VM to be known")
        manager = self._starting.share_manager(start)
        there = self._starting.placed(manager)
        found = self._api.get(_share_manager("cold"))
        self._api.replace_status({**found, "status": {**found["status"], "state": "running", "ownerID": there}})
        return [pod, manager]

    def _launch(self, vm: str, run: str = "1", **described: Any) -> Object:
        """The pod of a run, which its VirtualMachineInstance owns."""
        pod = _STARTS[vm].launcher(run, **described)
        uid = self._instances[vm]["metadata"]["uid"]
        pod["metadata"]["ownerReferences"][0]["uid"] = uid
        pod["metadata"]["labels"][_CREATED_BY] = uid
        pod["spec"]["containers"][0]["resources"] = {"requests": _SEAT}
        return self._api.create(pod)


def _before() -> list[Object]:
    """Nodes, VMs that are stopped, and share-managers that run, except the one of `cold`."""
    objects = [*nodes()]
    for vm, start in _STARTS.items():
        running = served(start.volume, HOME[vm], EARLY) if vm in HOME else start.shelf[2:]
        machine = a_vm(vm, name=vm)
        machine["metadata"]["namespace"] = NAMESPACE
        objects += [*start.shelf[:2], *running, machine]
    return objects


def _away_from(instance: Object) -> Object:
    """What a live migration's target has against its source."""
    others = {"matchLabels": {_CREATED_BY: instance["metadata"]["uid"]}}
    term = {"labelSelector": others, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _share_manager(vm: str) -> Object:
    metadata = {"name": _STARTS[vm].volume, "namespace": LONGHORN_NAMESPACE}
    return {"apiVersion": LONGHORN_API_VERSION, "kind": "ShareManager", "metadata": metadata}


def _is_unschedulable(pod: Object) -> bool:
    return any(each.get("reason") == "Unschedulable" for each in pod["status"].get("conditions") or ())


STATES: Final = {"apart": "apart", "cold": "together", "pinned": "stuck", "together": "together"}
DECIDED: Final = {"apart": "migrated", "cold": "unchanged", "pinned": "required", "together": "required"}
COUNTS: Final = {**dict.fromkeys(State, 0), "together": 2, "apart": 1, "stuck": 1}


class Told(NamedTuple):
    """One VM, as an output tells of it."""

    state: str
    node: str | None
    share_manager: str | None
    reason: str
    decided: str


def expected(story: Story) -> dict[str, Told]:
    """VM -> what has become of it: where the scheduler has bound its pod, and where its share-manager is."""
    homes = {**HOME, "cold": story.nodes["cold"]}
    reasons = {**dict.fromkeys(VMS, "ShareManagerPod"), "apart": "VmLiveMigrated", "pinned": "VmStuck"}
    return {vm: Told(STATES[vm], story.nodes[vm], homes[vm], reasons[vm], DECIDED[vm]) for vm in VMS}


def of_rows(rows: list[Object]) -> dict[str, Told]:
    """VM -> what a list of objects says."""
    return {
        row["name"]: Told(row["state"], row["node"], row["volumes"][0]["node"], row["reason"], row["decided"])
        for row in rows
    }
