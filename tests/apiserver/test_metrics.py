"""/metrics of a real server beside a real API server: true, well-formed, and all that alerts and panels ask for."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pytest
import trustme
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import NAME, Installed
from support.drivers import prometheus, serving
from support.drivers.http_calls import PATH
from support.drivers.scraping import PROMETHEUS, Scraped, asking, scrape, scraped, untyped
from support.drivers.serving import Client, Serving
from support.objects.builders import NAMESPACE, virt_launcher_pod
from support.objects.metric_table import METRIC_ROWS, MetricRow
from support.scenarios.admitting import FAIL_OPEN, WEBHOOK, Cache, Counted, admitted, caches, until, until_watched

PODS: Final = 7
CALLS: Final = "apiserver_admission_webhook_admission_duration_seconds_count"
Object = dict[str, Any]


class Seen(NamedTuple):
    """A server after some traffic, and what was scraped of both sides before and after it."""

    server: Serving
    text: bytes
    before: Scraped
    after: Scraped
    api_before: Scraped
    api_after: Scraped
    caches: Mapping[str, Cache]


def vm(name: str, claim: str, node: str) -> Object:
    """A VM's pod on a node, with a claim of its own of `serving.cluster`; nobody has decided on it."""
    pod = virt_launcher_pod(claims=[claim], namespace=NAMESPACE, nodeName=node)
    pod["metadata"] |= {"name": f"virt-launcher-{name}-x"}
    pod["metadata"]["ownerReferences"][0]["name"] = name
    return {**pod, "status": {"phase": "Running"}}


def distrust(installed: Installed) -> None:
    """Have the API server trust another authority, until it has failed to call."""
    other = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    service = {"name": NAME, "namespace": NAME, "path": PATH, "port": installed.port}
    counted = Counted(installed.plane.api)
    installed.enable(clientConfig={"service": service, "caBundle": other})

    def failed() -> float:
        admitted(installed.plane.api)
        return counted.more()(FAIL_OPEN, name=WEBHOOK)

    until(failed, "a call that fails")


@pytest.fixture(scope="module")
def seen(installed: Installed) -> Iterator[Seen]:
    """Two VMs, seven admissions of which one reads, failed calls, and a start that nobody was asked about."""
    api, vms = installed.plane.api, [vm("together", "data", "node-b"), vm("apart", "state", "node-b")]

    def api_scraped() -> Scraped:
        return untyped(api.text("/metrics"), prometheus.asked_for() | {CALLS})

    with ClusterState(api) as cluster, installed.serving() as server:
        cluster.become([*serving.cluster(), *vms])
        until_watched(server)
        installed.enable()
        installed.until_called()
        until(lambda: has_vms(server, 2), "rows of the VMs")
        until(lambda: admitted(api, "disk").required == ["node-a"], "a pin: the pod's VM is known")
        before, api_before = scrape(server.health_port), api_scraped()
        for claim in ["disk"] * (PODS - 1) + ["unheard-of"]:
            admitted(api, claim)

        distrust(installed)
        installed.disable()
        cluster.become([*serving.cluster(), *vms, vm("started", "cordoned", "node-c")])
        until(lambda: has_vms(server, 3), "a row of the new VM")
        with Client(server.health_port) as client:
            text = client.ask(asking()).body
            after = scraped(client.ask(asking(PROMETHEUS)))
        yield Seen(server, text, before, after, api_before, api_scraped(), caches(server))
    installed.disable()


def has_vms(server: Serving, count: int) -> bool:
    """Whether the server tells of so many VMs."""
    found = scrape(server.health_port)
    return found.has("kubevirt_coschedule_vms") and found.value("kubevirt_coschedule_vms") == count


# What Prometheus makes of it.


def test_promtool_has_nothing_to_say_of_the_metrics(seen: Seen) -> None:
    """Its linter knows Prometheus' rules for names, units and words; it does say something of what breaks them."""
    assert prometheus.promtool("check", "metrics", standard_input=seen.text) == (0, "")
    spoilt = seen.text.replace(b"_total", b"_count_total")
    code, _ = prometheus.promtool("check", "metrics", standard_input=b"# TYPE a counter\na 1\n" + spoilt)
    assert code != 0


@pytest.mark.parametrize("family", METRIC_ROWS, ids=[family.title for family in METRIC_ROWS])
def test_every_metric_of_the_table_is_exposed(family: MetricRow, seen: Seen) -> None:
    """With all its labels, by a server that has seen all this: no metric is there in words only."""
    name = f"{family.title}_count" if family.kind == "histogram" else family.title
    (labels,) = {frozenset(each.labels) for each in seen.after.samples if each.name == name}
    assert labels == set(family.labels)


@pytest.mark.parametrize("where", prometheus.queries())
def test_every_metric_that_is_asked_for_is_there(where: str, seen: Seen) -> None:
    """In our own /metrics, or in the API server's."""
    asked = prometheus.metrics_in(prometheus.queries()[where])
    assert asked or where.startswith("record kubevirt_coschedule:setting:")
    assert asked - seen.after.names - seen.api_after.names == set()


# Whether it is true.


def test_both_sides_count_the_same_calls(seen: Seen) -> None:
    """The API server's count of calls, less those that failed open, is ours; those had no handshake."""
    ours = "kubevirt_coschedule_admission_duration_seconds" + "_count"
    more = seen.after.value(ours, entry="virt-launcher") - seen.before.value(ours, entry="virt-launcher")
    failed = value(seen.api_after, FAIL_OPEN) - value(seen.api_before, FAIL_OPEN)
    called = value(seen.api_after, CALLS) - value(seen.api_before, CALLS)
    assert more >= PODS  # and some until the API server had heard that it should not trust us
    assert failed >= 1
    assert called == more + failed
    handshakes = [
        each for each in seen.after.samples if each.name == "kubevirt_coschedule_tls_handshake_failures_total"
    ]
    assert sum(each.value for each in handshakes if "BAD_CERTIFICATE" in each.labels["reason"]) >= failed


def value(found: Scraped, name: str) -> float:
    """The API server's count for our webhook; 0 where it has none yet."""
    return found.value(name, name=WEBHOOK) if found.has(name, name=WEBHOOK) else 0.0


def test_each_cache_is_exposed_as_readiness_shows_it(seen: Seen) -> None:
    """By the same name, fresh, and with as many objects."""
    for name, cache in seen.caches.items():
        assert seen.after.value("kubevirt_coschedule_cache_fresh", cache=name) == cache.fresh == 1
        assert cache.detail.startswith(f"{seen.after.value('kubevirt_coschedule_cache_objects', cache=name):g} objects")
