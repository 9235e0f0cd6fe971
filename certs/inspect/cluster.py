"""Reads the material for `inspect` from a live cluster."""

from __future__ import annotations

import asyncio
from typing import Any

from certs.cluster import ClusterObjects, ObjectPaths, connect_objects
from certs.inspect.findings import Material
from certs.settings import ObjectNames
from webhook.component_base.address import Address
from webhook.component_base.client.errors import ApiError
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig


class CantReadCluster(UserError):
    """The objects in the cluster can't be read."""


def read_material(kubeconfig: Kubeconfig, names: ObjectNames) -> tuple[Material, Address | None]:
    """Return the Secret with the bundles, and the address of the Service.

    Raises:
        UserError: the cluster can't be reached, a permission is missing, or there is no webhook configuration.
    """
    with asyncio.Runner() as runner:
        return runner.run(_read(kubeconfig, names))


async def _read(kubeconfig: Kubeconfig, names: ObjectNames) -> tuple[Material, Address | None]:
    service = f"/api/v1/namespaces/{names.namespace}/services/{names.service}"
    try:
        async with connect_objects(kubeconfig, ObjectPaths.of(names)) as cluster:
            seen = await cluster.read()
            address = await _address(cluster, service)
    except ApiError as error:
        raise CantReadCluster(str(error)) from None
    bundles = {hook.name: hook.bundle for hook in seen.configuration.webhooks}
    return Material(pair=seen.served.pair, bundles=bundles), address


async def _address(cluster: ClusterObjects, path: str) -> Address | None:
    """Return the address of the Service; None if it has none, or if the user may not read it."""
    try:
        spec: dict[str, Any] = ((await cluster.find(path)) or {}).get("spec", {})
    except ApiError:
        return None
    if spec.get("clusterIP") in (None, "", "None") or not spec.get("ports"):
        return None
    return Address(spec["clusterIP"], spec["ports"][0]["port"])
