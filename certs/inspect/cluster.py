"""What `inspect` looks at in a live cluster."""

from __future__ import annotations

import asyncio
from typing import Any

from certs.controller.objects import ApiError, Cluster, Places, connect
from certs.inspect.findings import Material
from certs.rotation import state
from certs.settings import Kept
from webhook.component_base.address import Address
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig


class CantReadCluster(UserError):
    """The cluster can't be read."""


def read(kubeconfig: Kubeconfig, kept: Kept) -> tuple[Material, Address | None]:
    """The Secret and the bundles, and where the Service is.

    Raises:
        UserError: there is no way to the cluster, or no permission, or no webhook configuration.
    """
    return asyncio.run(_read(kubeconfig, Places.of(kept), kept.service))


async def _read(kubeconfig: Kubeconfig, places: Places, service: str) -> tuple[Material, Address | None]:
    try:
        async with connect(kubeconfig, places) as cluster:
            seen = await cluster.read()
            address = await _address(cluster, f"/api/v1/namespaces/{places.namespace}/services/{service}")
    except ApiError as error:
        raise CantReadCluster(str(error)) from None
    secret = seen.secret or state.Secret(version="")
    bundles = {hook.name: hook.bundle for hook in seen.configuration.hooks}
    return Material(pair=secret.current, following=secret.next, bundles=bundles), address


async def _address(cluster: Cluster, path: str) -> Address | None:
    """Where the Service is; None where it is nowhere, or not for us to see."""
    try:
        spec: dict[str, Any] = ((await cluster.find(path)) or {}).get("spec", {})
    except ApiError:
        return None
    if spec.get("clusterIP") in (None, "", "None") or not spec.get("ports"):
        return None
    return Address(spec["clusterIP"], spec["ports"][0]["port"])
