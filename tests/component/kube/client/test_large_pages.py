"""A list of objects that are too large for one page of the usual number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.fakes.api_server import ApiServer, Cluster
from support.fakes.live import SHARE_MANAGERS, cluster_of, connected
from support.fakes.watching import manager

from webhook.component_base.client import api as client
from webhook.component_base.client.transport import TooLong
from webhook.kube import reader
from webhook.kube.wire import Decoders

NAMES = "abcdefg"
LARGE = {"note": "x" * 1000}


@pytest.fixture
def cluster() -> Cluster:
    """ShareManagers of 1 KB."""
    kind = {"apiVersion": "longhorn.io/v1beta2", "kind": "ShareManager"}
    made = [manager(name, 0, "n1") for name in NAMES]
    return cluster_of(*(kind | each | {"metadata": each["metadata"] | {"annotations": LARGE}} for each in made))


@pytest.mark.parametrize("most", [100_000, 4_000, 2_000])
async def test_fewer_objects_are_asked_for(
    most: int, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody who may create objects can make large ones. The list has all of them, however many fit into a page."""
    monkeypatch.setattr(client, "_ANSWER_MAX_BYTES", most)
    async with connected(server, tmp_path) as api:
        found = await reader.get_all(api, SHARE_MANAGERS, Decoders(dict[str, Any]))
    assert [each["metadata"]["name"] for each in found] == list(NAMES)


async def test_an_object_that_is_too_large_by_itself_is_a_problem_in_words(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not left out in silence."""
    monkeypatch.setattr(client, "_ANSWER_MAX_BYTES", 500)
    async with connected(server, tmp_path) as api:
        with pytest.raises(TooLong, match="an answer of more than 500 bytes"):
            await reader.get_all(api, SHARE_MANAGERS, Decoders(dict[str, Any]))
