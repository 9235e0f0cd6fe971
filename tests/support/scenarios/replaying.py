"""A row of the corpus on a real control plane: store its cluster, create its pod, compare the result.

Rows run one after another on one control plane, each with its own names. Several rows at once would need other names.
Then the order of the names and the set of nodes would differ from the row. The replay is still quick, because from row
to row it writes only the differences (`cluster_state`).

The program and kube-scheduler learn of a row's cluster by their watches, some milliseconds after the test wrote it.
Therefore the test deletes a pod with a wrong result and creates it again. A row fails if no result is right in time.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
import time
from contextlib import ExitStack
from typing import Any, Final, NamedTuple, Self

import jsonpatch
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ALONE
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.objects import corpus, owners
from support.objects.builders import DECISION, LONGHORN_API_VERSION
from support.objects.corpus import SHARE_MANAGER, UNCHANGED, Case
from support.objects.embedded import embedded, policy, shortlist_problems, shortlisted, wishes
from support.waits import MAX_WAIT_SECONDS

from webhook.core.admit import Answer, Entry, admit

_PAUSE_SECONDS: Final = 0.05  # watches lag by less
_PATIENCE_SECONDS: Final = 10  # with each row, after one that never came out right: hundreds of them may be wrong
_TICKS_MAX: Final = 100
_SCORED_WHOLE_NODES: Final = 100  # schedule_one.go, minFeasibleNodesToFind: of more only some are scored
_SERVERS_OWN: Final = ("spec.", 'unknown field "spec.')  # how its warnings begin, of what it leaves out too


def rows() -> list[Case]:
    """The rows that an API server can store, in an order that needs few restarts of the server."""
    replayed = [case for case in corpus.load() if case.replay and case.creates_pod]
    return sorted(replayed, key=_server_for)


class Replay:
    """Replays rows on a control plane with the program installed. A context manager: nothing is left of the rows."""

    def __init__(self, installed: Installed) -> None:
        self._installed, self._api = installed, installed.plane.api
        self._server = ExitStack()  # the server of the current mode
        self._serves: tuple[str, bool] | None = None
        self._gave_up = False

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._cluster = stack.enter_context(ClusterState(self._api))
            stack.enter_context(self._server)
            stack.callback(self._installed.disable)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def problems(self, case: Case) -> list[str]:
        """What is not as the row expects; nothing where all is."""
        namespace = case.review["request"]["namespace"]
        self._cluster.namespace(namespace)
        self._become(case)
        pod = self._of_owner({**case.pod, "metadata": {**case.pod["metadata"], "namespace": namespace}}, case)
        if not _has_its_volumes(case):
            pod["spec"] = {"schedulerName": ALONE, **pod["spec"]}
        evaluated = Evaluated.of(case)
        deadline = time.monotonic() + (_PATIENCE_SECONDS if self._gave_up else MAX_WAIT_SECONDS)
        while (problems := self._try(case, pod, evaluated)) and time.monotonic() < deadline:
            threading.Event().wait(_PAUSE_SECONDS)
        self._gave_up |= bool(problems)
        return problems

    def _become(self, case: Case) -> None:
        """Have the row's cluster, and a server in the row's mode.

        A server that has seen a Longhorn node reads these nodes from then on. A row without them gets a new server.
        """
        asked = _server_for(case)
        if asked != self._serves:
            self._server.close()
            self._installed.enable()
            self._describe(case)
            self._server.enter_context(self._installed.serving("--mode", case.mode))
            self._installed.until_called()
            self._serves = asked
        else:
            self._describe(case)

    def _describe(self, case: Case) -> None:
        """Have the row's objects. The server dates them, to the second: a pod that is newer is made later."""
        dates = sorted({each["metadata"].get("creationTimestamp", "") for each in case.objects})
        for date in dates[:-1]:
            self._cluster.become(each for each in case.objects if each["metadata"].get("creationTimestamp", "") <= date)
            if date:
                self._until_later()
        self._cluster.become(case.objects)

    def _of_owner(self, pod: Object, case: Case) -> Object:
        """The pod with the uid that the API server gave its owner, in its records, too."""
        text = json.dumps(pod)
        for owner in owners.owners_of(pod, case.objects):
            text = text.replace(owner["metadata"]["uid"], self._api.get(owner)["metadata"]["uid"])
        found: Object = json.loads(text)
        return found

    def _until_later(self) -> None:
        """Wait until the API server's clock has gone on by a second."""
        probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clock", "namespace": "default"}}
        dated = (self._api.create(probe, dryRun="All")["metadata"]["creationTimestamp"] for _ in range(_TICKS_MAX))
        now = next(dated)
        while next(dated) == now:
            threading.Event().wait(_PAUSE_SECONDS)

    def _try(self, case: Case, pod: Object, evaluated: Evaluated) -> list[str]:
        """Create the pod, and return what is wrong with the result."""
        created, warnings = self._api.create_warned(pod, owned=False)  # by `_of_owner`, as the row says
        try:
            scheduled = self._scheduled(created, pending=case.expect.pending)
        finally:
            self._api.delete(created)
        own = pod["spec"].get("affinity")
        affinity = _stored(own if case.expect.affinity == UNCHANGED else case.expect.affinity)
        pairs = {
            "annotation": (created["metadata"].get("annotations", {}).get(DECISION), evaluated.annotation),
            "warnings": ([each for each in warnings if not each.startswith(_SERVERS_OWN)], evaluated.warnings),
        }
        wrong = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        return [
            *shortlist_problems(case, created["spec"].get("affinity"), affinity),
            *(f"{key}: got {got}, expected {expected}" for key, (got, expected) in wrong.items()),
            *_misplaced(case, scheduled),
        ]

    def _scheduled(self, pod: Object, *, pending: bool) -> Object:
        """The pod as a scheduler leaves it. One that waits for a claim of a device is Pending without a word."""
        try:
            judged = self._api.wait_for(pod, _is_judged, seconds=1 if pending else MAX_WAIT_SECONDS, what="judged")
        except TimeoutError:
            if not pending:
                raise
            return self._api.get(pod)
        assert judged is not None
        return judged


class Evaluated(NamedTuple):
    """What webhook.core says to a row whose cluster is in a file: our annotation in the pod, and warnings."""

    annotation: str | None
    warnings: list[str]

    @classmethod
    def of(cls, case: Case) -> Evaluated:
        """Ask it."""
        entry = next(each for each in Entry if each.title == case.entry)
        answer = admit(json.dumps(case.review).encode(), embedded(case), policy(case), entry)
        assert isinstance(answer, Answer), "an embedded cluster is read whole: nothing can be missing"
        response = json.loads(answer.body)["response"]
        operations = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        after = jsonpatch.apply_patch(copy.deepcopy(case.pod), operations)
        return cls(after["metadata"].get("annotations", {}).get(DECISION), response.get("warnings", []))


def _server_for(case: Case) -> tuple[str, bool]:
    """What a row needs: the cluster's mode, and whether nodes.longhorn.io exist."""
    kinds = {(each["apiVersion"], each["kind"]) for each in case.objects}
    return case.mode, (LONGHORN_API_VERSION, "Node") in kinds


def _stored(affinity: Any) -> Any:
    """An affinity as an API server stores it: it keeps no empty list."""
    if isinstance(affinity, dict):
        return {key: _stored(value) for key, value in affinity.items() if value != []}
    return [_stored(each) for each in affinity] if isinstance(affinity, list) else affinity


def _misplaced(case: Case, pod: Object) -> list[str]:
    node = pod["spec"].get("nodeName")
    takers = _takers(case, pod)
    if (node is None) if case.expect.pending else (node in takers):
        return []
    expected = "no node" if case.expect.pending else f"one of {sorted(takers)}"
    return [f"node: got {node}, expected {expected}; conditions: {pod['status'].get('conditions')}"]


def _takers(case: Case, pod: Object) -> set[str]:
    """The nodes that may take the pod. A share-manager pod that is drawn to nodes goes to the one it is drawn to most.

    Not always where the scheduler looks at some nodes only: that is what the short list is for, which a VM has, too.
    """
    expect = case.expect
    if (case.entry != SHARE_MANAGER or not expect.nodes) and not expect.shortlist:
        return set(expect.binds or ())
    if len(case.nodes) > _SCORED_WHOLE_NODES and not expect.shortlist:
        return set(expect.binds or ())
    drawn = wishes(pod["spec"].get("affinity", {}), by_pod=case.entry == SHARE_MANAGER)
    if not drawn:
        return set()  # it is not drawn to any yet: the program has not seen the row's cluster
    listed = shortlisted(pod["spec"]["affinity"]) if expect.shortlist else expect.nodes
    most = max(weight for _, weight in drawn)
    return {node for node, weight in drawn if weight == most} & set(listed)


def _is_judged(pod: Object | None) -> bool:
    """Whether a scheduler has bound the pod, or has said that it can't."""
    if pod is None:
        return False
    conditions = pod["status"].get("conditions") or []
    refused = any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)
    return refused or bool(pod["spec"].get("nodeName"))


def _has_its_volumes(case: Case) -> bool:
    """Whether every claim of the pod is bound to a volume that is there and can be used somewhere.

    Without that the stock scheduler binds no pod. A row's `binds` leaves volumes out of it, and is asked of a profile
    that does too.
    """
    namespace = case.review["request"]["namespace"]
    there = {(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]): each for each in case.objects}
    for volume in case.pod["spec"].get("volumes") or ():
        if "ephemeral" in volume:
            return False
        if named := volume.get("persistentVolumeClaim"):
            claim = there.get(("PersistentVolumeClaim", namespace, named["claimName"]), {})
            volume_name = claim.get("spec", {}).get("volumeName")
            if claim.get("status", {}).get("phase") != "Bound" or not _usable(
                there.get(("PersistentVolume", None, volume_name))
            ):
                return False
    return True


def _usable(volume: Object | None) -> bool:
    """Whether a PersistentVolume is there, and a node could be one that it can be used on."""
    if volume is None:
        return False
    terms = volume["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms")
    return terms is None or any(terms)  # an empty term matches no node
