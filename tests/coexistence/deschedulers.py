"""The descheduler in its own process, once for each policy: which of the pods on nodes it evicts.

Nodes node-a to node-g are more than half full, and the others are empty. KubeVirt is not here: where it is, an eviction
of a VM that can migrate becomes a live migration. KubeVirtRelieveAndMigrate is a profile of OpenShift's operator
(cluster-kube-descheduler-operator pkg/operator/profiles.go). Here it has requests in place of Prometheus' metrics, no
limit on evictions, so that a row shows each pod, and not OpenShift's own plugin KubevirtMigrationAware.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from coexistence import share_managers
from coexistence.cluster import FEW, MANY, Cluster, nodes
from coexistence.forms import NOTHING, PIN, PREFERENCE, SEVERAL, SHORTLIST, TARGET, Form, filler, shortlist
from coexistence.rows import Row, pinned
from controlplane import build
from support.control_plane.cluster_state import UNSCHEDULED
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import NODES
from support.waits import MAX_WAIT_SECONDS

AWAY: Final = "node-h"
STAYS, EVICTED = "stays", "evicted"
_LOAD_GIB: Final = 300
_AFFINITY: Final = "RemovePodsViolatingNodeAffinity"
_LOW: Final = "LowNodeUtilization"
_REQUIRED: Final = {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}
_PREFERRED: Final = {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]}
_THRESHOLDS: Final = {"thresholds": {"memory": 20}, "targetThresholds": {"memory": 50}}


class Policy(NamedTuple):
    """A policy. `evicts` are the subjects that it evicts: titles of `_subjects`."""

    settings: str
    plugin: str
    args: Mapping[str, Any]
    evictor: Mapping[str, Any]
    evicts: frozenset[str] = frozenset()


_LOCAL: Final = {"evictLocalStoragePods": True}
_FIT: Final = {"nodeFit": True}
_NO_CLAIMS: Final = {"ignorePvcPods": True}
_MANDATORY: Final = {"noEvictionPolicy": "Mandatory"}
_RELIEVE: Final = "KubeVirtRelieveAndMigrate's settings, by requests"
_RELIEVE_ARGS: Final = {**_LOCAL, "ignorePvcPods": False, **_MANDATORY}
_DEVIATION: Final = {"thresholds": {"memory": 0}, "targetThresholds": {"memory": 10}, "useDeviationThresholds": True}
_FORMS: Final = (PIN, SEVERAL, PREFERENCE, TARGET, NOTHING)
_PREFERENCE_AWAY: Final = PREFERENCE.away("node-g")
_LIST_AWAY: Final = SHORTLIST.away("node-g")
_VMS_AWAY: Final = frozenset({_PREFERENCE_AWAY.title, _LIST_AWAY.title})
# With a preferred node affinity: of somebody else, and of the webhook's own beside a soft taint.
_BY_NODE: Final = frozenset({share_managers.BY_NODE.title, share_managers.SOFT.title})
_VMS: Final = frozenset(form.title for form in (*_FORMS, SHORTLIST))
_SMS: Final = frozenset({share_managers.HOME.title, share_managers.PLAIN_HOME.title})

POLICIES: Final = (
    Policy(f"{_AFFINITY} required, evictLocalStoragePods", _AFFINITY, _REQUIRED, _LOCAL),
    Policy(f"{_AFFINITY} preferred", _AFFINITY, _PREFERRED, {}),
    Policy(
        f"{_AFFINITY} preferred, evictLocalStoragePods",
        _AFFINITY,
        _PREFERRED,
        _LOCAL,
        _VMS_AWAY | _BY_NODE,
    ),
    Policy(
        f"{_AFFINITY} preferred, evictLocalStoragePods, nodeFit",
        _AFFINITY,
        _PREFERRED,
        {**_LOCAL, **_FIT},
        _VMS_AWAY | _BY_NODE,
    ),
    Policy(
        f"{_AFFINITY} preferred, evictLocalStoragePods, ignorePvcPods",
        _AFFINITY,
        _PREFERRED,
        {**_LOCAL, **_NO_CLAIMS},
        _BY_NODE,
    ),
    Policy(
        f"{_AFFINITY} preferred, evictLocalStoragePods, noEvictionPolicy Mandatory",
        _AFFINITY,
        _PREFERRED,
        {**_LOCAL, **_MANDATORY},
        _VMS_AWAY | {share_managers.BY_NODE.title},
    ),
    Policy(
        f"{_AFFINITY} preferred, evictLocalStoragePods, without the namespace longhorn-system",
        _AFFINITY,
        {**_PREFERRED, "namespaces": {"exclude": ["longhorn-system"]}},
        _LOCAL,
        _VMS_AWAY,
    ),
    Policy(f"{_LOW} by requests", _LOW, _THRESHOLDS, {}),
    Policy(f"{_LOW} by requests, evictLocalStoragePods", _LOW, _THRESHOLDS, _LOCAL, _VMS | _SMS),
    Policy(
        f"{_LOW} by requests, evictLocalStoragePods, nodeFit",
        _LOW,
        _THRESHOLDS,
        {**_LOCAL, **_FIT},
        (_VMS - {PIN.title, TARGET.title}) | _SMS,
    ),
    Policy(_RELIEVE, _LOW, _DEVIATION, _RELIEVE_ARGS, _VMS | {share_managers.PLAIN_HOME.title}),
    Policy(
        f"{_RELIEVE}, nodeFit",
        _LOW,
        _DEVIATION,
        {**_RELIEVE_ARGS, **_FIT},
        (_VMS - {PIN.title, TARGET.title}) | {share_managers.PLAIN_HOME.title},
    ),
)

BALANCES: Final = next(each for each in POLICIES if each.settings == f"{_LOW} by requests, evictLocalStoragePods")


class _Subject(NamedTuple):
    title: str
    pod: Object


def rows(cluster: Cluster) -> Iterator[Row]:
    """Each form under each policy."""
    found: dict[str, list[Row]] = {policy.settings: [] for policy in POLICIES}
    with cluster.webhook():
        for policy in POLICIES:
            cluster.become(_described())
            found[policy.settings] += _outcome(cluster, policy, _subjects(cluster))
    cluster.become([*nodes(MANY), *_fillers(), *SHORTLIST.objects(), *_LIST_AWAY.objects()])
    with cluster.webhook():
        for policy in POLICIES:
            found[policy.settings] += _outcome(cluster, policy, _listed(cluster))
    for some in found.values():
        yield from some


def _outcome(cluster: Cluster, policy: Policy, subjects: Sequence[_Subject]) -> Iterator[Row]:
    deschedule(cluster, policy)
    version = pinned(build.DESCHEDULER, "sigs.k8s.io/descheduler")
    for subject in subjects:
        expected = EVICTED if subject.title in policy.evicts else STAYS
        seen = EVICTED if cluster.evicted(subject.pod) else STAYS
        yield Row(f"descheduler {version}", policy.settings, subject.title, expected, seen)


def _fillers() -> list[Object]:
    return [filler("load", name, _LOAD_GIB) for name in NODES if name != AWAY]


def _described() -> list[Object]:
    claims = [each for form in (*_FORMS, _PREFERENCE_AWAY) for each in form.objects()]
    return [*nodes(FEW), *_fillers(), *claims, *share_managers.objects()]


def _subjects(cluster: Cluster) -> list[_Subject]:
    made = [_Subject(form.title, _bound(cluster, form, form.node)) for form in _FORMS]
    made.append(_Subject(_PREFERENCE_AWAY.title, _bound(cluster, _PREFERENCE_AWAY, AWAY)))
    return [*made, *(_Subject(each.title, each.bound(cluster)) for each in share_managers.ALL)]


def _listed(cluster: Cluster) -> list[_Subject]:
    made = []
    for form in (SHORTLIST, _LIST_AWAY):
        pod = _unbound(cluster, form)
        others = [name for name in shortlist(pod) if name not in NODES]
        cluster.bind(pod, form.node if form is SHORTLIST else others[0])
        made.append(_Subject(form.title, pod))
    return made


def _unbound(cluster: Cluster, form: Form) -> Object:
    cluster.api.delete(form.pod(), missing_ok=True)
    return cluster.create(form, schedulerName=UNSCHEDULED)


def _bound(cluster: Cluster, form: Form, on: str) -> Object:
    pod = _unbound(cluster, form)
    cluster.bind(pod, on)
    return pod


def deschedule(cluster: Cluster, policy: Policy) -> None:
    """Run the descheduler once."""
    directory = cluster.plane.directory
    file = directory / "descheduler-policy.json"
    file.write_text(json.dumps(_policy(policy)))
    kubeconfig = cluster.plane.kubeconfig(directory / "descheduler.kubeconfig", cluster.plane.admin)
    words = [f"--policy-config-file={file}", f"--kubeconfig={kubeconfig}", "--descheduling-interval=0", "--v=4"]
    words += ["--bind-address=127.0.0.1", "--secure-port=0", f"--cert-dir={directory / 'descheduler'}"]
    ran = subprocess.run(  # noqa: S603 - a program that we have built
        [build.descheduler(), *words], capture_output=True, text=True, check=False, timeout=MAX_WAIT_SECONDS
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    (directory / "descheduler.log").write_text(ran.stdout + ran.stderr)


def _policy(policy: Policy) -> Mapping[str, Any]:
    kind = "deschedule" if policy.plugin == _AFFINITY else "balance"
    configs = [
        {"name": "DefaultEvictor", "args": dict(policy.evictor)},
        {"name": policy.plugin, "args": dict(policy.args)},
    ]
    profile = {"name": "coexistence", "pluginConfig": configs, "plugins": {kind: {"enabled": [policy.plugin]}}}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}
