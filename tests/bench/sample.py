"""The review that the bench sends: a rendered virt-launcher pod as an API server sends it, about 20 KB."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from support.drivers.serving import ROOT
from support.objects import builders

_POD: Final = ROOT / "tests" / "cases" / "pods" / "virt-launcher-typical.json"
SAMPLE_CLAIMS: Final = ("disk", "state", "single")  # two with a share-manager on one node, and a ReadWriteOnce one


def sample_review(
    claims: Sequence[str] = SAMPLE_CLAIMS,
    namespace: str = builders.NAMESPACE,
    vm: str = "db01",
    uid: str = builders.OWNER_UID,
) -> bytes:
    """The review of a pod of this VM with these claims, with the managedFields that the API server adds.

    `uid` is that of the VM's instance.
    """
    pod = sample_pod(claims)
    pod["metadata"]["ownerReferences"][0] |= {"name": vm, "uid": uid}
    return json.dumps(builders.review(pod, namespace=namespace), separators=(",", ":")).encode()


def sample_pod(claims: Sequence[str]) -> builders.Object:
    """A rendered virt-launcher pod with these claims, up to three, for its disks."""
    pod: builders.Object = json.loads(_POD.read_text())
    volumes = pod["spec"]["volumes"]
    disks = [volume["name"] for volume in volumes if "persistentVolumeClaim" in volume]
    named = dict(zip(disks, claims, strict=False))
    rest = [volume for volume in volumes if volume["name"] not in disks]
    pod["spec"]["volumes"] = [*rest, *(builders.claim_volume(disk, claim) for disk, claim in named.items())]
    pod["metadata"]["managedFields"] = [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for fields in [set_fields(pod)]
        for manager in ("virt-controller", "another-webhook")
    ]
    return pod


def set_fields(value: Any) -> Any:
    """Every field that was set, by name; a list's items by their keys: managedFields' form."""
    if isinstance(value, dict):
        return {f"f:{key}": set_fields(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return {f"k:{_key(inner)}": {".": {}, **_as_dict(set_fields(inner))} for inner in value}
    return {}


def _key(item: Any) -> str:
    named = item.get("name") or item.get("uid") or "" if isinstance(item, dict) else str(item)
    return json.dumps({"name": named})


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
