"""What a view says of all Longhorn nodes at once."""

from __future__ import annotations

from typing import Final

import pytest
from support.fakes.live import listed, now
from support.objects import builders

from webhook.core.api.longhorn import Need
from webhook.core.view import Kind
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.cluster_cache import ClusterCache

LONG_AGO = 60.0


LACKING: Final = {"NFSClientInstalled": "NFSClientIsNotFound: none"}


@pytest.mark.parametrize(
    ("nodes", "need", "expected"),
    [
        pytest.param({"n1": LACKING, "n2": LACKING}, Need.NFS_CLIENT, True, id="all"),
        pytest.param({"n1": LACKING, "n2": LACKING}, Need.ENCRYPTION, False, id="another need"),
        pytest.param({"n1": LACKING, "n2": {}}, Need.NFS_CLIENT, False, id="one does not"),
        pytest.param({"n1": {"NFSClientInstalled": "UnknownReason: "}}, Need.NFS_CLIENT, False, id="a doubt"),
    ],
)
async def test_what_all_longhorn_nodes_lack(
    nodes: dict[str, dict[str, str]], need: Need, store: ClusterCache, *, expected: bool
) -> None:
    """Of an admission and of the page."""
    made = [builders.longhorn_node(name, conditions=conditions) for name, conditions in nodes.items()]
    listed(store.caches[Kind.LONGHORN_NODE], *made, at=now())
    for view in (store.view(), CachedView(store.caches)):
        assert view.all_longhorn_nodes_lack(need) is expected


async def test_nothing_is_said_of_all_longhorn_nodes_once_their_list_is_old(store: ClusterCache) -> None:
    """A node that came since may have what the others lack."""
    listed(store.caches[Kind.LONGHORN_NODE], builders.longhorn_node("n1", conditions=LACKING), at=now() - LONG_AGO)
    assert not store.view().all_longhorn_nodes_lack(Need.NFS_CLIENT)
