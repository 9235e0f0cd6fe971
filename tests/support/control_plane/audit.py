"""What the API server's audit log says of the pods that are created: the annotations that webhooks have added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from support.control_plane.kube_api import Object
from support.scenarios.admitting import until

_POLICY: Final = "audit-policy.json"
_LOG: Final = "audit.log"
_RULES: Final = (
    {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods"]}]},
    {"level": "None"},
)


def flags(directory: Path) -> list[str]:
    """What has an API server keep such a log, in this directory."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": _RULES,
    }
    (directory / _POLICY).write_text(json.dumps(policy))
    return [f"--audit-policy-file={directory / _POLICY}", f"--audit-log-path={directory / _LOG}"]


def annotations(directory: Path, pod: Object, webhook: str) -> dict[str, str]:
    """Those of one webhook on the creation of this pod; the log is written a moment after the answer."""

    def logged() -> Object | None:
        events = map(json.loads, (directory / _LOG).read_text().splitlines())
        return next((event for event in reversed([*events]) if _is_of(event, pod)), None)

    event = until(logged, f"an audit event of pod {pod['metadata']['name']}")
    assert event is not None
    prefix = f"{webhook}/"
    found = event.get("annotations", {}).items()
    return {key.removeprefix(prefix): value for key, value in found if key.startswith(prefix)}


def _is_of(event: Object, pod: Object) -> bool:
    named, meta = event["objectRef"], pod["metadata"]
    return (named.get("namespace"), named.get("name")) == (meta["namespace"], meta["name"])
