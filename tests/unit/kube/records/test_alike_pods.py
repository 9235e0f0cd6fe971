"""The usage of a pod is added up once for pods that are alike, and only for these."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from support.fakes.watching import RESOURCES

from webhook.core.view import Kind
from webhook.kube.records import pods
from webhook.kube.wire import Decoders

_POD: Final = {
    "metadata": {"name": "a", "namespace": "prod"},
    "spec": {"nodeName": "node-a", "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"phase": "Running"},
}
_MORE: Final = {"requests": {"cpu": "3"}}
_OTHERS: Final = {  # everything that webhook.core.scheduler.pod_requests.usage reads
    "containers": ("spec", {"containers": [{"name": "main", "resources": _MORE}]}),
    "initContainers": ("spec", {"initContainers": [{"name": "init", "resources": _MORE}]}),
    "overhead": ("spec", {"overhead": {"cpu": "2"}}),
    "resources of the pod": ("spec", {"resources": _MORE}),
    "containerStatuses": ("status", {"containerStatuses": [{"name": "main", "resources": _MORE}]}),
    "initContainerStatuses": ("status", {"initContainerStatuses": [{"name": "main", "resources": _MORE}]}),
    "resources of the status": ("status", {"resources": _MORE}),
    "allocatedResources": ("status", {"allocatedResources": {"cpu": "3"}}),
    "nodeAllocatableResourceClaimStatuses": ("status", {"nodeAllocatableResourceClaimStatuses": [{}]}),
}


def _usage(pod: dict[str, Any]) -> Any:
    resource = RESOURCES[Kind.VIRT_LAUNCHER_POD]
    record = resource.transform(Decoders(resource.wire).object(json.dumps(pod).encode()))
    return record.pod_infos[0].usage


def test_alike_pods_are_added_up_once() -> None:
    """Names, nodes and labels make no difference."""
    other = _POD | {"metadata": {"name": "b", "namespace": "test", "labels": {"app": "db"}}}
    assert _usage(_POD) is _usage(other)
    assert _usage(_POD).requests == (("cpu", 1000),)


@pytest.mark.parametrize(("where", "part"), _OTHERS.values(), ids=_OTHERS)
def test_what_a_pod_takes_of_its_own_counts(where: str, part: dict[str, Any]) -> None:
    """A pod that differs in anything that is added up has a usage of its own, after one that is otherwise alike."""
    assert _usage(_POD).requests == (("cpu", 1000),)
    assert dict(_usage(_POD | {where: _POD[where] | part}).requests)["cpu"] > 1000


def test_the_memory_of_alike_pods_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many kinds of pods there are, and however long what they have alike is."""
    monkeypatch.setattr(pods, "_usages", {})
    for number in range(pods._USAGES_MAX + 5):
        _usage(_POD | {"spec": _POD["spec"] | {"overhead": {"cpu": str(number)}}})
    assert 0 < len(pods._usages) <= pods._USAGES_MAX
    before = len(pods._usages)
    _usage(_POD | {"spec": _POD["spec"] | {"overhead": {"memory": "1" + "0" * pods._ALIKE_BYTES_MAX}}})
    assert len(pods._usages) == before
