"""The install on real nodes: what a user applies, its Deployments, its pods, and calls while something happens."""

from __future__ import annotations

import base64
import ssl
import urllib.request
from typing import Any, Final

from support.control_plane.certs_process import SECRET
from support.control_plane.kube_api import Api, Object
from support.control_plane.rendering import CERTS, NAME, at
from support.objects import builders
from support.scenarios.admitting import until
from support.waits import MAX_WAIT_SECONDS

from support.drivers.scraping import PROMETHEUS, Scraped  # isort: skip


import sys
from collections.abc import Iterator
from contextlib import contextmanager

from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, WEBHOOK, Admission, Admitting, Counted

SLOW_SECONDS: Final = 3 * MAX_WAIT_SECONDS
"""For what has several long waits in itself, such as the drain of each replica in a rollout."""
CALLS: Final = "kubevirt_coschedule_admissions_total"


def deployment(name: str) -> Object:
    """What names a Deployment of the install."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAME}}


def pods(api: Api, component: str = "webhook") -> list[Object]:
    """The pods of a Deployment, those that are ending included."""
    return api.items("v1", "Pod", NAME, labelSelector=f"app.kubernetes.io/component={component}")


def until_rolled_out(api: Api) -> None:
    """Wait until both Deployments have the pods that they ask for, all available, and none is left from before."""
    until(lambda: _rolled_out(api, NAME, "webhook"), lambda: _told(api), seconds=SLOW_SECONDS)
    until(lambda: _rolled_out(api, CERTS, "certs"), lambda: _told(api), seconds=SLOW_SECONDS)


def calls(pod: Object) -> float:
    """How many calls a replica has answered."""
    return sum(sample.value for sample in scrape(pod).samples if sample.name == CALLS)


def scrape(pod: Object) -> Scraped:
    """What Prometheus gets from a replica."""
    request = urllib.request.Request(f"http://{pod['status']['podIP']}:8080/metrics", headers={"Accept": PROMETHEUS})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=MAX_WAIT_SECONDS) as answer:
        return Scraped.of(answer.headers["Content-Type"], answer.read())


def served(pod: Object) -> bytes:
    """The certificate that a replica serves, in DER."""
    return ssl.PEM_cert_to_DER_cert(
        ssl.get_server_certificate((pod["status"]["podIP"], 9443), timeout=MAX_WAIT_SECONDS)
    )


def issued(api: Api) -> bytes:
    """The certificate in the Secret, in DER."""
    text = base64.b64decode(api.get(SECRET)["data"]["tls.crt"]).decode()
    first, end, _ = text.partition("-----END CERTIFICATE-----")
    return ssl.PEM_cert_to_DER_cert(first + end)


def vms(*places: tuple[str, str]) -> list[Object]:
    """Longhorn on the nodes of `places`, and for each (claim, node) a claim whose share-manager is on that node.

    Nothing tells what real controllers write: that claim and volume are bound, for example.
    """
    objects = [builders.longhorn_node(node) for node in dict.fromkeys(node for _, node in places)]
    for name, node in places:
        claim = builders.persistent_volume_claim(name, volume_name=f"pv-{name}")
        del claim["metadata"]["annotations"], claim["status"]
        volume = builders.persistent_volume(f"pv-{name}", claim=name, handle=f"pvc-{name}")
        del volume["status"]
        objects += [claim, volume, builders.share_manager(f"pvc-{name}", state="running", ownerID=node)]
    return objects


def until_bound(api: Api) -> None:
    """Wait until the claims are bound."""
    until(
        lambda: all(at("status.phase", claim) == "Bound" for claim in api.items("v1", "PersistentVolumeClaim")),
        lambda: f"claims that are bound: {api.items('v1', 'PersistentVolumeClaim')}",
    )


def _rolled_out(api: Api, name: str, component: str) -> bool:
    found = api.get(deployment(name))
    wanted = found["spec"]["replicas"]
    status: dict[str, Any] = found.get("status", {})
    current = status.get("observedGeneration") == found["metadata"]["generation"]
    amounts = {status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")}
    return bool(current and amounts == {wanted} and len(pods(api, component)) == wanted)


def _told(api: Api) -> str:
    """Return how far every pod is, for a failure."""
    lines = []
    for pod in api.items("v1", "Pod", NAME):
        states = at("status.containerStatuses.0.state", pod)
        lines.append(f"{pod['metadata']['name']} on {pod['spec'].get('nodeName')}: {pod['status']['phase']} {states}")
    lines += [
        f"{event['involvedObject'].get('name')}: {event.get('message')}"
        for event in api.items("v1", "Event", NAME)
        if event.get("type") == "Warning"
    ]
    return "\n".join(lines)


_CALLS: Final = 200
"""Calls, at least, before and after what happens, so that connections of the API server are in use."""


class Load:
    """The calls of one `under_load`; `lost` is known at its end."""

    def __init__(self, admitting: Admitting) -> None:
        self.admitting = admitting
        self.lost: list[Admission] = []


@contextmanager
def under_load(api: Api, claim: str, what: str, *, clients: int) -> Iterator[Load]:
    """Create pods with one claim until the end of the block, none of which is kept; prints how many, and how many lost.

    A call is lost if its pod was admitted without a decision. The API server must count the same, and refuse no pod.
    """
    counted = Counted(api)
    with Admitting(api, claim, clients=clients) as admitting:
        load = Load(admitting)
        admitting.until(more=_CALLS)
        yield load
        admitting.until(more=_CALLS)
    more = counted.more()
    load.lost = [pod for pod in admitting.admissions if not pod.decision]
    sys.stdout.write(f"{what}: {len(admitting.admissions)} calls, {len(load.lost)} lost\n")
    assert (admitting.refused, admitting.away, more(REJECTIONS, name=WEBHOOK)) == ([], [], 0)
    assert more(FAIL_OPEN, name=WEBHOOK) == len(load.lost)
