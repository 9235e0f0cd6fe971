"""The review that the bench sends: a rendered virt-launcher pod as an API server sends it, about 20 KB."""

from __future__ import annotations

import json
from typing import Any, Final

import builders
from serving import ROOT

_POD: Final = ROOT / "tests" / "cases" / "pods" / "virt-launcher-typical.json"
_CLAIMS: Final = ("disk", "state", "single")  # two that a share-manager on one node serves, and a ReadWriteOnce one


def sample_review() -> bytes:
    """The review of a pod with three claims, with the managedFields that the API server adds."""
    pod = json.loads(_POD.read_text())
    volumes = [volume for volume in pod["spec"]["volumes"] if "persistentVolumeClaim" not in volume]
    pod["spec"]["volumes"] = [*volumes, *(builders.claim_volume(f"disk-{claim}", claim) for claim in _CLAIMS)]
    pod["metadata"]["managedFields"] = [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for fields in [_fields(pod)]
        for manager in ("virt-controller", "another-webhook")
    ]
    return json.dumps(builders.review(pod), separators=(",", ":")).encode()


def _fields(value: Any) -> Any:
    """Every field that was set, by name; a list's items by their keys: managedFields' form."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return {f"k:{_key(inner)}": {".": {}, **_as_dict(_fields(inner))} for inner in value}
    return {}


def _key(item: Any) -> str:
    named = item.get("name") or item.get("uid") or "" if isinstance(item, dict) else str(item)
    return json.dumps({"name": named})


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
