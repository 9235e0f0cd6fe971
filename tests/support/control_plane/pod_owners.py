"""The owner of a pod on a real API server: the VirtualMachineInstance that KubeVirt, or the ShareManager that Longhorn
has when it creates the pod. The API server chooses its uid. Only VirtualMachineInstances are made here: tests are about
whether there is a ShareManager.
"""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Final

from support.control_plane.kube_answers import ApiError
from support.control_plane.kubevirt_kinds import VMS, crd
from support.objects import owners

if TYPE_CHECKING:
    from support.control_plane.kube_api import Api, Object

_LABEL: Final = "tests.kubevirt-coschedule/owner"  # of what is made here
_MISSING: Final = (http.client.NOT_FOUND, http.client.FORBIDDEN)


def with_owners(api: Api, pod: Object) -> Object:
    """The pod with the uids of the owners that it names; a VirtualMachineInstance that is not there is made.

    Its records have these uids, too. Where the user may not read them, or there is no such object or namespace, the pod
    stays as it is.
    """
    text = json.dumps(pod)
    for owner in owners.owner_of(pod, pod["metadata"].get("namespace", "default")):
        key, uid = json.dumps(owner), owner["metadata"].pop("uid")
        if key not in api.owners and (found := _there(api, owner)):
            api.owners[key] = found["metadata"]["uid"]
        text = text.replace(uid, api.owners.get(key, uid))
    named: Object = json.loads(text)
    return named


def forget_owners(api: Api, namespace: str) -> None:
    """Delete the VirtualMachineInstances that were made in a namespace. Where the kind is not there, there are none."""
    api.owners.clear()
    path = f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances"
    try:
        api.call("DELETE", path, parameters={"labelSelector": _LABEL})
    except ApiError as error:
        if error.status not in _MISSING:
            raise


def _there(api: Api, owner: Object) -> Object | None:
    try:
        if (found := api.find(owner)) or owner["kind"] != VMS[1]:
            return found
        return _made(api, owner)
    except (ApiError, KeyError) as error:  # KeyError: another kind of the group is there
        if isinstance(error, ApiError) and error.status not in _MISSING:
            raise
    try:
        for kind in VMS:
            api.apply(crd(kind))
        api.wait_for(crd(VMS[1]), _is_served, what="served")
        return _made(api, owner)
    except (ApiError, KeyError) as error:
        if isinstance(error, ApiError) and error.status not in _MISSING:
            raise
        return None


def _made(api: Api, owner: Object) -> Object:
    try:
        return api.create({**owner, "metadata": {**owner["metadata"], "labels": {_LABEL: ""}}})
    except ApiError as error:
        if error.status != http.client.CONFLICT:
            raise
        return api.get(owner)  # another thread has made it


def _is_served(definition: Object | None) -> bool:
    conditions = ((definition or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
