"""On a real API server the certificate controller's own service account may write three objects, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from support.control_plane.certs_install import AUTHORITY_SECRET, CONFIGURATION, SECRET, CertsInstall
from support.control_plane.installed import NAME
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api


def may(api: Api, verb: str, target: dict[str, Any]) -> bool:
    """Whether a request gets past authorization; whatever else is wrong with it."""
    try:
        match verb:
            case "get":
                api.get(target)
            case "create":
                api.create(target, dryRun="All")
            case "patch":
                api.patch(target, {})
            case "apply":
                api.call(
                    "PATCH",
                    api.path(target),
                    target,
                    {"fieldManager": "x", "dryRun": "All"},
                    "application/apply-patch+yaml",
                )
            case "delete":
                api.delete(target, dryRun="All")
            case _:
                api.items(target["apiVersion"], target["kind"], target["metadata"].get("namespace"))
    except ApiError as error:
        return error.status != 403
    return True


def named(target: dict[str, Any], name: str, namespace: str | None = None) -> dict[str, Any]:
    """The same kind, of another name."""
    return {**target, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}


@pytest.mark.parametrize(
    ("verb", "target", "allowed"),
    [
        ("get", SECRET, True),
        ("patch", SECRET, True),
        ("apply", SECRET, True),
        ("create", SECRET, False),
        ("delete", SECRET, False),
        ("list", SECRET, False),
        ("get", AUTHORITY_SECRET, True),
        ("patch", AUTHORITY_SECRET, True),
        ("apply", AUTHORITY_SECRET, True),
        ("create", AUTHORITY_SECRET, False),
        ("delete", AUTHORITY_SECRET, False),
        ("get", named(SECRET, "another", NAME), False),
        ("patch", named(SECRET, "another", NAME), False),
        ("apply", named(SECRET, "another", NAME), False),
        ("create", named(SECRET, "another", NAME), False),
        ("get", named(SECRET, f"{NAME}-tls", "default"), False),
        ("apply", named(SECRET, f"{NAME}-tls", "default"), False),
        ("get", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": NAME}}, False),
        ("get", CONFIGURATION, True),
        ("patch", CONFIGURATION, True),
        ("create", CONFIGURATION, False),
        ("delete", CONFIGURATION, False),
        ("list", CONFIGURATION, False),
        ("get", named(CONFIGURATION, "another"), False),
        ("patch", named(CONFIGURATION, "another"), False),
        ("get", {**named(CONFIGURATION, NAME), "kind": "ValidatingWebhookConfiguration"}, False),
        ("get", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": NAME}}, False),
        ("get", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}, False),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_account_may_write_three_objects_and_nothing_else(
    kept: CertsInstall,
    verb: str,
    target: dict[str, Any],
    allowed: bool,  # noqa: FBT001 - a column
) -> None:
    """By name: every other Secret and webhook configuration is refused."""
    assert may(kept.plane.as_user(kept.account), verb, target) == allowed
