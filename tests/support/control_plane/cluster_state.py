"""The objects of a cluster on a real API server, exactly as a test describes them.

This module writes what controllers and kubelets would write. It writes the status by the status subresource. For an
object that is being deleted it sets a finalizer and sends a DELETE. From one state to the next it writes only the
differences. If a test changes one ShareManager, a watch shows one change, as in production.
"""

from __future__ import annotations

import copy
import http.client
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Self

from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import OF_VMS
from support.control_plane.pod_owners import forget_owners

UNSCHEDULED: Final = "nobody"  # a scheduler that does not exist: a pod described without a node stays without one

_WRITERS: Final = 4
_STATUS_AT_CREATION: Final = {("v1", "Node"), *OF_VMS}
_SERVERS_OWN: Final = frozenset({"deletionTimestamp", "deletionGracePeriodSeconds"})

_Key = tuple[str, str, str, str]


class ClusterState:
    """The objects that a test has described, and that are there now; other objects are left alone.

    Use it as a context manager: at its end all of them are deleted.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._there: dict[_Key, Object] = {}
        self._namespaces: set[str] = set()
        self._writers = ThreadPoolExecutor(_WRITERS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.become(())
        for namespace in self._namespaces:
            forget_owners(self._api, namespace)
        self._writers.shutdown()

    def become(self, objects: Iterable[Object]) -> None:
        """Make the cluster be these objects: nothing that was described before is left, and these are there."""
        wanted = {_key(described): copy.deepcopy(described) for described in objects}
        for namespace in {key[2] for key in wanted} - self._namespaces - {""}:
            self.namespace(namespace)
        changed = [key for key in wanted if wanted[key] != self._there.get(key)]
        in_place = {key for key in changed if key in self._there and _only_status(self._there[key], wanted[key])}
        self._each(self._remove, [self._there[key] for key in self._there if key not in wanted])
        self._each(self._remove, [self._there[key] for key in changed if key in self._there and key not in in_place])
        self._each(self._write_status, [wanted[key] for key in in_place])
        new = [wanted[key] for key in changed if key not in in_place]
        self._each(self._write, [each for each in new if each["kind"] != "Pod"])
        self._each(self._write, [each for each in new if each["kind"] == "Pod"])  # a pod names the uid of its owner
        self._there = wanted

    def namespace(self, name: str) -> None:
        """Have a namespace of this name."""
        self._api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._namespaces.add(name)

    def _each(self, act: Callable[[Object], None], objects: Sequence[Object]) -> None:
        list(self._writers.map(act, objects))

    def _write(self, described: Object) -> None:
        created = self._create(described)
        if described.get("status") and _kind(described) not in _STATUS_AT_CREATION:
            self._api.replace_status({**created, "status": described["status"]})
        if "deletionTimestamp" in described["metadata"]:
            self._api.delete(described)

    def _create(self, described: Object) -> Object:
        try:
            return self._api.create(_creatable(described))
        except ApiError as error:
            if error.status != http.client.CONFLICT:
                raise
        self._remove(self._api.get(described))  # what a failed test has left must not make the next one fail
        return self._api.create(_creatable(described))

    def _write_status(self, described: Object) -> None:
        replace = self._api.replace if _kind(described) in OF_VMS else self._api.replace_status
        replace({**self._api.get(described), "status": described.get("status", {})})

    def _remove(self, described: Object) -> None:
        if described["metadata"].get("finalizers"):
            self._api.patch(described, {"metadata": {"finalizers": None}})
        self._api.delete(described, missing_ok=True)


def _key(described: Object) -> _Key:
    metadata = described["metadata"]
    return described["apiVersion"], described["kind"], metadata.get("namespace", ""), metadata["name"]


def _kind(described: Object) -> tuple[str, str]:
    return described["apiVersion"], described["kind"]


def _creatable(described: Object) -> Object:
    """The object as it can be created: when it is deleted is the server's to say, and no scheduler takes it."""
    metadata = {k: v for k, v in described["metadata"].items() if k not in _SERVERS_OWN}
    fresh = {**described, "metadata": metadata}
    if _kind(described) == ("v1", "Pod") and not described["spec"].get("nodeName"):
        fresh["spec"] = {"schedulerName": UNSCHEDULED, **described["spec"]}
    return fresh


def _only_status(before: Object, after: Object) -> bool:
    """Whether a new status makes the one object the other."""
    rests = [{key: value for key, value in each.items() if key != "status"} for each in (before, after)]
    return rests[0] == rests[1]
