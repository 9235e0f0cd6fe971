"""The record of a virt-launcher pod has all that core reads of the pod, whatever fields it has."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.watching import RESOURCES
from support.strategies.affinity_shapes import GONE, bend
from support.strategies.steering_scenarios import VIRT_LAUNCHER_QUIRKS, virt_launchers

from webhook.core.api import kubevirt
from webhook.core.api.affinity import only_node
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.pod import DEFAULT_SCHEDULER, Pod, uses
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.core.view import Kind
from webhook.kube.wire import Decoders, NotJSON

RESOURCE: Final = RESOURCES[Kind.VIRT_LAUNCHER_POD]
CLAIMS: Final = ("c0", "c1", "again", "")
WRONG: Final = st.sampled_from([GONE, None, "", "x", 5, True, [], {}, [None], [5], [{}], {"a": None}])
PATHS: Final = st.sampled_from(sorted(VIRT_LAUNCHER_QUIRKS))
Object = dict[str, Any]


def reads(pod: Pod) -> tuple[Any, ...]:
    """What core reads of a virt-launcher pod."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    owner = kubevirt.owner(pod)
    return (
        meta.namespace,
        meta.name,
        meta.annotation(ANNOTATION_CO_SCHEDULE),
        meta.label(LABEL_MIGRATION_JOB_UID) is not None,
        owner and (owner.name, owner.uid if owner.name else None),
        meta.creation_timestamp,
        meta.deletion_timestamp,
        spec.node_name or None,
        kubevirt.placing_node_selector(spec.node_selector, meta.annotation(kubevirt.ANNOTATION_MIGRATION)),
        None if spec.node_name else only_node(spec.required_node_affinity),
        [claim for claim in CLAIMS if claim and uses(pod, claim)],
        status and status.phase,
        None if spec.node_name or spec.scheduler_name == DEFAULT_SCHEDULER else spec.scheduler_name or None,
    )


def kept(described: Object) -> Pod | None:
    """The pod by way of the cache; None where it could not be read."""
    wire: Any = Decoders(RESOURCE.wire).object(json.dumps(described).encode())
    if isinstance(wire, NotJSON):
        return None
    pod: Pod = RESOURCE.transform(wire).virt_launcher
    return pod


def read(described: Object) -> Pod | None:
    """The pod itself; None where core could not read it."""
    try:
        return msgspec.json.decode(json.dumps(described).encode(), type=Pod)
    except msgspec.ValidationError:
        return None


@given(virt_launchers(0), st.lists(st.tuples(PATHS, WRONG), max_size=2))
def test_what_core_reads_of_a_record_is_what_it_reads_of_the_pod(
    described: Object, wrong: list[tuple[str, Any]]
) -> None:
    """Fields absent, null, empty or of a wrong type: what core can read comes out the same, by way of the record."""
    for path, value in wrong:
        try:
            bend(described, path, value)
        except (AttributeError, TypeError):  # the parent is no longer an object
            continue
    expected, found = read(described), kept(described)
    if expected is not None:
        assert found is not None
        assert reads(found) == reads(expected)
