"""The same load through kubernetes-asyncio's own typed client, as its users list: pages of 500, every item kept.

Called as `typed.py KUBECONFIG`; prints one line of JSON. Longhorn's kinds have no models: they come as dicts.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time
from typing import Any, Final

from kubernetes_asyncio import client, config
from process import resident

_LONGHORN: Final = ("longhorn.io", "v1beta2", "longhorn-system")
_PAGE_OBJECTS: Final = 500


async def _measure(kubeconfig: str) -> dict[str, Any]:
    await config.load_kube_config(config_file=kubeconfig)
    async with client.ApiClient() as api:
        core, custom = client.CoreV1Api(api), client.CustomObjectsApi(api)
        calls: tuple[tuple[Callable[..., Awaitable[Any]], tuple[str, ...]], ...] = (
            (core.list_persistent_volume_claim_for_all_namespaces, ()),
            (core.list_persistent_volume, ()),
            (core.list_node, ()),
            (core.list_namespace, ()),
            (core.list_namespaced_pod, ("longhorn-system",)),
            (core.list_pod_for_all_namespaces, ()),
            (client.StorageV1Api(api).list_csi_node, ()),
            (custom.list_namespaced_custom_object, (*_LONGHORN, "sharemanagers")),
            (custom.list_namespaced_custom_object, (*_LONGHORN, "nodes")),
        )
        before, _ = resident()
        began, cpu = perf_counter(), process_time()
        kept = [await _all(call, words) for call, words in calls]
        figures = {"seconds": perf_counter() - began, "cpu_seconds": process_time() - cpu}
        mib, highest = resident()
        return {**figures, "objects": sum(map(len, kept)), "mib_before": before, "mib": mib, "mib_highest": highest}


async def _all(call: Callable[..., Awaitable[Any]], words: tuple[str, ...]) -> list[Any]:
    items: list[Any] = []
    token = ""
    while True:
        page = await call(*words, limit=_PAGE_OBJECTS, _continue=token)
        if isinstance(page, dict):
            items += page["items"]
            token = page["metadata"].get("continue", "")
        else:
            items += page.items
            token = page.metadata._continue or ""
        if not token:
            return items


def main() -> None:
    """Measure and print."""
    sys.stdout.write(json.dumps(asyncio.run(_measure(sys.argv[1]))) + "\n")


if __name__ == "__main__":
    main()
