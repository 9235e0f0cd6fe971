"""The estimate of what a pod takes, against what versions of kube-scheduler count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from webhook.core.api.container import UNREADABLE, Workload, units
from webhook.core.api.pod import PodStatus
from webhook.core.scheduler.pod_requests import is_counted, usage

Object = dict[str, Any]
GIB = 2**30


def box(name: str = "c", *, limits: Object | None = None, always: bool = False, **asked: Any) -> Object:
    """A container. `asked` is its requests; `always` makes it a sidecar among the init containers."""
    resources = {"requests": asked, **({"limits": limits} if limits else {})}
    policy = {"restartPolicy": "Always"} if always else {}
    return {"name": name, "resources": resources, **policy}


def resize(reason: str) -> list[Object]:
    """The conditions of a pod whose resize is pending."""
    return [{"type": "Ready", "reason": "Infeasible"}, {"type": "PodResizePending", "reason": reason}]


def asks(spec: Object, status: Object | None = None) -> dict[str, int]:
    """The requests that count for this pod."""
    return dict(usage(convert(spec, Workload), None if status is None else convert(status, PodStatus)).requests)


Amounts = Counter[str]
Read = Callable[[Object, Object, bool], Amounts]
"""What counts of one container: by the container, its status, and whether the node refuses the pod's resize."""

PAGES: Final = "hugepages-2Mi"
RESOURCES: Final = ("cpu", "memory", PAGES, "example.com/x")


def amounts(quantities: Any) -> Amounts:
    """A ResourceList, of whole numbers."""
    return Counter({name: int(amount) for name, amount in (quantities or {}).items()})


def requests_of(described: Object | None) -> Any:
    """The requests of something with resources."""
    return ((described or {}).get("resources") or {}).get("requests")


# component-helpers v0.37.2 resource/helpers.go. The first is also what 1.30 counts, and any version of a new pod.
def spec(container: Object, _: Object, __: bool) -> Amounts:  # noqa: FBT001 - one of several
    """As containerSpecRequests counts it."""
    return amounts(requests_of(container))


def allocated(container: Object, status: Object, refused: bool) -> Amounts:  # noqa: FBT001 - one of several
    """As containerAllocatedRequests counts it."""
    if status.get("allocatedResources") is not None:
        return amounts(status["allocatedResources"])
    return amounts(None if refused else requests_of(container))


def actuated(container: Object, status: Object, refused: bool) -> Amounts:  # noqa: FBT001 - one of several
    """As containerActuatedRequests counts it."""
    if requests_of(status) is not None:
        return amounts(requests_of(status))
    return allocated(container, status, refused)


def older(container: Object, status: Object, refused: bool) -> Amounts:  # noqa: FBT001 - one of several
    """As determineContainerReqs of 1.33 to 1.36 counts it, of a container or a sidecar."""
    if status.get("resources") is None:
        return spec(container, status, refused)
    has = amounts(requests_of(status)) | amounts(status.get("allocatedResources"))
    return has if refused else has | spec(container, status, refused)


def together(pod: Object, read: Read, *, refused: bool) -> Amounts:
    """As aggregateContainerResourcesByFn adds containers up."""
    both = pod["status"]["containerStatuses"] + pod["status"]["initContainerStatuses"]
    statuses = {each["name"]: each for each in both}
    total, sidecars, initial = Amounts(), Amounts(), Amounts()
    for container in pod["spec"]["containers"]:
        total += read(container, statuses.get(container["name"], {}), refused)
    for container in pod["spec"]["initContainers"]:
        runs_on = container.get("restartPolicy") == "Always"
        reported = statuses.get(container["name"], {}) if runs_on or read is not older else {}
        asked = read(container, reported, refused)
        if runs_on:
            total += asked
            sidecars += asked
            asked = sidecars
        else:
            asked += sidecars
        initial |= asked
    return total | initial


def counted(pod: Object) -> list[Amounts]:
    """What kube-scheduler counts: PodRequests, by its version and feature gates."""
    status, own = pod["status"], amounts(requests_of(pod["spec"]))
    refused = any(each["reason"] == "Infeasible" for each in status["conditions"][1:])
    shares = sum((amounts(each["resources"]) for each in status["nodeAllocatableResourceClaimStatuses"]), Amounts())
    has, promised = amounts(requests_of(status)), amounts(status.get("allocatedResources"))
    in_use = [has | promised]
    if requests_of(status) is None or status.get("allocatedResources") is None:
        in_use = []
    in_use.append(together(pod, allocated, refused=refused) + shares | together(pod, actuated, refused=refused))
    asked = together(pod, spec, refused=False) + shares
    found = [asked, together(pod, older, refused=refused) + shares]
    found += [each if refused else asked | each for each in in_use]
    overrules = [own, has | promised if refused else own | has | promised] if status.get("resources") else [own]
    pod_level = {"cpu", "memory", PAGES}
    found += [
        Amounts({**each, **{name: amount for name, amount in by.items() if name in pod_level}})
        for each in found
        for by in (overrules if own else [])
    ]
    return [each + amounts(pod["spec"]["overhead"]) for each in found]


QUANTITY: Final = st.integers(0, 6).map(str)
QUANTITIES: Final = st.dictionaries(st.sampled_from(RESOURCES), QUANTITY, max_size=3)
ACTUATED: Final = st.none() | st.fixed_dictionaries({}, optional={"requests": QUANTITIES})
REPORTED: Final = st.fixed_dictionaries({}, optional={"resources": ACTUATED, "allocatedResources": QUANTITIES})


@st.composite
def containers(draw: st.DrawFn, prefix: str) -> tuple[list[Object], list[Object]]:
    """Containers, and the statuses of some of them."""
    made = [
        box(f"{prefix}{index}", always=prefix == "i" and draw(st.booleans()), **draw(QUANTITIES))
        for index in range(draw(st.integers(0, 3)))
    ]
    return made, [{"name": each["name"], **draw(REPORTED)} for each in made if draw(st.booleans())]


@st.composite
def pods(draw: st.DrawFn) -> Object:
    """A pod on a node, with everything that changes what it takes."""
    main, statuses = draw(containers("c"))
    initial, initial_statuses = draw(containers("i"))
    own = draw(st.sampled_from([{}, {"resources": {"requests": draw(QUANTITIES)}}]))
    shares = draw(st.lists(st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITY, min_size=1), max_size=2))
    status = {
        "containerStatuses": statuses,
        "initContainerStatuses": initial_statuses,
        "conditions": draw(st.sampled_from([[], resize("Infeasible"), resize("Deferred")])),
        "nodeAllocatableResourceClaimStatuses": [{"resources": each} for each in shares],
        **draw(REPORTED),
    }
    parts = {"containers": main, "initContainers": initial, "overhead": draw(QUANTITIES)}
    return {"spec": {**parts, **own}, "status": status}


def estimate(pod: Object, *, is_new: bool = False) -> dict[str, int]:
    """Return the estimate of the webhook."""
    return asks(pod["spec"], None if is_new else pod["status"])


def in_units(counts: Amounts) -> dict[str, int]:
    """The model's amounts, written as the webhook's."""
    return {name: amount * (1000 if name == "cpu" else 1) for name, amount in counts.items() if amount}


@given(pod=pods())
def test_no_version_counts_more(pod: Object) -> None:
    """Of any resource."""
    most = estimate(pod)
    for counts in counted(pod):
        assert all(amount <= most.get(name, 0) for name, amount in in_units(counts).items()), (counts, most)


@given(pod=pods())
def test_a_new_pod_without_sidecars_and_requests_of_its_own_is_counted_exactly(pod: Object) -> None:
    """As virt-launcher pods are. So the estimate is no more than it must be."""
    pod["spec"].pop("resources", None)
    for container in pod["spec"]["initContainers"]:
        container.pop("restartPolicy", None)
    expected = together(pod, spec, refused=False) + amounts(pod["spec"]["overhead"])
    assert estimate(pod, is_new=True) == in_units(expected)


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        pytest.param({}, {}, id="nothing at all"),
        pytest.param({"containers": [box(memory="100m"), box(memory="100m")]}, {"memory": 1}, id="rounded up once"),
        pytest.param({"containers": [box(cpu="100u"), box(cpu="100u")]}, {"cpu": 2}, id="but each to thousandths"),
        pytest.param({"containers": [box(limits={"cpu": "2"})]}, {"cpu": 2000}, id="limits stand for requests"),
        pytest.param({"containers": [box(cpu="1", limits={"cpu": "2"})]}, {"cpu": 1000}, id="where there are none"),
        pytest.param({"containers": [box(cpu="0", limits={"cpu": "2"})]}, {}, id="and zero is one"),
        pytest.param(
            {
                "containers": [
                    box(**{"devices.kubevirt.io/kvm": "1", "ephemeral-storage": "50M", "hugepages-1Gi": "2Gi"})
                ]
            },
            {"devices.kubevirt.io/kvm": 1, "ephemeral-storage": 50 * 10**6, "hugepages-1Gi": 2 * GIB},
            id="resources of every kind",
        ),
        pytest.param(
            {"containers": [box(cpu="1", storage="5Gi", pods="3", gadgets="2", **{"requests.example.com/x": "1"})]},
            {"cpu": 1000},
            id="what the scheduler does not count",
        ),
        pytest.param(
            {"containers": [box(cpu="much", memory="1Gi"), box(cpu="1", memory="1Gi")]},
            {"cpu": UNREADABLE + 1000, "memory": 2 * GIB},
            id="unreadable cpu",
        ),
        pytest.param(
            {"containers": [box(memory="-1")]}, {"memory": units(UNREADABLE)}, id="less than nothing is unreadable"
        ),
    ],
)
def test_a_pod_asks_for_what_its_containers_need_together(spec: Object, requests: dict[str, int]) -> None:
    """Milli-CPU, and whole units of all else."""
    assert asks(spec) == requests


@pytest.mark.parametrize(
    ("resource", "counted"),
    [
        *[(name, True) for name in ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu")],
        *[(name, True) for name in ("attachable-volumes-csi-x", "kubernetes.io/batch-cpu", "requests.kubernetes.io/x")],
        *[(name, False) for name in ("pods", "storage", "gadgets", "requests.example.com/gpu", "hugepages", "")],
    ],
)
def test_a_resource_counts_if_the_scheduler_counts_it(resource: str, counted: bool) -> None:  # noqa: FBT001 - a column
    """Others may stand in a node's or a pod's list, and never refuse anybody."""
    assert is_counted(resource) is counted
