"""How long an update of a hostile pod holds the event loop."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Final

import msgspec
import pytest
from msgspec import Raw, Struct
from support.fakes.watching import Driver, lists
from support.models.cached_pods import RESOURCE, pod
from support.models.model_api import event
from support.objects import builders
from support.objects.builders import Object
from support.objects.hostile_pods import preferring, repelling, with_labels, with_ports


class _Skipped(Struct):
    object: Raw


HOSTILE: Final[dict[str, Callable[[], Object]]] = {
    "30,000 preferred nodes": lambda: pod("a", affinity=preferring(30_000)),
    "100,000 labels": lambda: with_labels(pod("a", node="n1"), 100_000),
    "100,000 values of anti-affinity": lambda: pod("a", node="n1", affinity=repelling(100_000)),
    "10,000 host ports": lambda: with_ports(pod("a", node="n1")),
    "an annotation of 256 KiB that JSON escapes": lambda: builders.vm_pod("a", annotations={"x": "\1" * 2**18}),
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE)
def test_an_update_holds_the_event_loop_for_as_long_as_its_bytes_take(made: Callable[[], Object]) -> None:
    """Its line is copied and skipped a few times, and no field is decoded. To decode it takes ten times as long."""
    described = made()
    described["metadata"] |= {"resourceVersion": "50", "namespace": "vms", "name": "a"}
    line, driver = event("ADDED", described), Driver(resource=RESOURCE)
    driver.play(lists())
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    skip = msgspec.json.Decoder(_Skipped)
    skipped = min(_taken(lambda: skip.decode(line)) for _ in range(5))
    taken = min(_taken(lambda: driver.machine.feed(line, driver.now)) for _ in range(5))
    assert "vms/a" in driver.machine.objects
    assert taken <= 8 * skipped + 0.001, f"{taken * 1e3:.1f} ms; the bytes alone {skipped * 1e3:.1f} ms"


def _taken(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    began = thread_time()
    call()
    return thread_time() - began
