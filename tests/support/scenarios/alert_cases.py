"""Series of metrics, and the alert that fires for them or does not."""

from __future__ import annotations

from typing import Final, NamedTuple

from webhook.component_base.health import PREFIX
from webhook.objects.kinds import VIRTUAL_MACHINE

DAY: Final = 86_400
HOOK: Final = "virt-launcher.kubevirt-coschedule.io"
POD: Final = 'pod="kubevirt-coschedule-7d9-x"'
FAIL_OPEN: Final = "apiserver_admission_webhook_fail_open_count"
DURATION: Final = "apiserver_admission_webhook_admission_duration_seconds"


class Case(NamedTuple):
    """Series by minutes, when they are judged, the labels of the alerts that fire then, and what their words are about.

    `labels` is None where none fires. `value`: what stands for the alert's value in its words.
    """

    alert: str
    series: dict[str, str]
    at: str
    labels: dict[str, str] | list[dict[str, str]] | None = None
    value: str = ""


def ours(name: str, labels: str = "") -> str:
    """Return a series of the webhook."""
    return f"{PREFIX}{name}{{{labels}}}"


def hook(name: str = HOOK) -> str:
    """Return the API server's count for a webhook."""
    return f'{FAIL_OPEN}{{name="{name}",type="admit",instance="a"}}'


def calls(fast: str, every: str, name: str = HOOK) -> dict[str, str]:
    """Return the API server's counts of calls for a webhook: those within half a second, and all."""
    labels = f'name="{name}",type="admit",instance="a"'
    return {f'{DURATION}_bucket{{{labels},le="0.5"}}': fast, f"{DURATION}_count{{{labels}}}": every}


NOT_BEFORE: Final = ours("certificate_not_before_timestamp_seconds", POD)
STARTS: Final = ours("vm_starts_total", 'decision="nothing"')
CALLS: Final = ours("admission_duration_seconds_count", 'entry="virt-launcher"')
FRESH: Final = ours("cache_fresh", f'cache="nodes",{POD}')
VMS_FRESH: Final = ours("cache_fresh", f'cache="{VIRTUAL_MACHINE.title}",{POD}')
EXPIRY: Final = ours("certificate_expiry_timestamp_seconds", POD)
PROBLEM: Final = ours("certificate_problem", POD)
ONE_POD: Final = {"pod": "kubevirt-coschedule-7d9-x"}


def named(state: str, vm: str = "db01", replica: str = "a") -> str:
    """Return the series of a VM in trouble, as one replica has it."""
    return ours("vm_in_trouble_timestamp_seconds", f'state="{state}",vm="{vm}",vm_namespace="vms",pod="{replica}"')


def alert_of(vm: str) -> dict[str, str]:
    """Return the labels of an alert about a VM."""
    return {"vm": vm, "vm_namespace": "vms", "namespace": "vms"}


DB01: Final = alert_of("db01")


def fleet(apart: int, *, together: int = 0, free: int = 0, stuck: int = 0) -> dict[str, str]:
    """Return the number of VMs by state, as both replicas count them, for two hours."""
    counts = {"apart": apart, "together": together, "free": free, "stuck": stuck}
    return {ours("vms", f'state="{state}",pod="{pod}"'): f"{n}x120" for state, n in counts.items() for pod in "ab"}


CASES: Final = {
    # What the API server sees.
    "a count that goes up": Case("FailOpen", {hook(): "3x10 4x10"}, "12m", {"name": HOOK}),
    "a count that begins": Case("FailOpen", {hook(): "_x10 1x10"}, "12m", {"name": HOOK}),
    "a count that went up long ago": Case("FailOpen", {hook(): "3x10 4x30"}, "30m"),
    "a count that stays": Case("FailOpen", {hook(): "3x30"}, "20m"),
    "another's webhook": Case("FailOpen", {hook("x.example.io"): "0 5x20"}, "12m"),
    "two calls of 100 over half a second": Case("Slow", calls("0+98x60", "0+100x60"), "50m", {"name": HOOK}, "2%"),
    "one call of 200 over half a second": Case("Slow", calls("0+199x60", "0+200x60"), "50m"),
    "slow calls for a moment": Case("Slow", calls("0+100x50 4950+50x10", "0+100x60"), "52m"),
    "slow calls of another's webhook": Case("Slow", calls("0+50x60", "0+100x60", "x.example.io"), "50m"),
    "no call": Case("Slow", calls("7x60", "7x60"), "50m"),
    # Starts without calls.
    "a start that nobody was asked about": Case("NotAsked", {STARTS: "0x10 1x30", CALLS: "7x40"}, "20m", {}),
    "the same of one replica, while the other is new": Case("NotAsked", {STARTS: "0x10 1x30"}, "20m", {}),
    "a start that was missed among others": Case("NotAsked", {STARTS: "0x10 1x30", CALLS: "7x8 8x32"}, "20m"),
    "no start": Case("NotAsked", {STARTS: "3x40", CALLS: "7x40"}, "30m"),
    "a start 2 minutes ago": Case("NotAsked", {STARTS: "0x10 1x30", CALLS: "7x40"}, "13m"),
    "a start an hour ago": Case("NotAsked", {STARTS: "0x10 1x90", CALLS: "7x100"}, "80m"),
    # The pods.
    "no pod from the start": Case("Absent", {}, "15m", {}),
    "pods that went away": Case("Absent", {ours("build_info"): "1x10 _x30"}, "30m", {}),
    "a pod": Case("Absent", {ours("build_info"): "1x40"}, "30m"),
    "a rollout": Case("Absent", {ours("build_info", 'pod="a"'): "1x10 _x30", ours("build_info"): "_x14 1x30"}, "30m"),
    # Caches.
    "a cache that is stale": Case("CacheStale", {FRESH: "1x10 0x20"}, "17m", {"cache": "nodes", **ONE_POD}),
    "a cache of VMs that is stale": Case(
        "CacheStale", {VMS_FRESH: "1x10 0x20"}, "17m", {"cache": VIRTUAL_MACHINE.title, **ONE_POD}
    ),
    "a cache that was stale for a moment": Case("CacheStale", {FRESH: "1x10 0x2 1x20"}, "17m"),
    "a cache that is fresh": Case("CacheStale", {FRESH: "1x20"}, "17m"),
    # The certificate.
    "a fifth of 30 days left": Case(
        "CertificateExpiry", {NOT_BEFORE: f"{-24 * DAY}x20", EXPIRY: f"{6 * DAY}x20"}, "15m", ONE_POD, "19.97%"
    ),
    "a seventh of an hour left": Case(
        "CertificateExpiry", {NOT_BEFORE: "-1800x30", EXPIRY: "1800x30"}, "21m", ONE_POD, "15%"
    ),
    "expired": Case("CertificateExpiry", {NOT_BEFORE: f"{-30 * DAY}x20", EXPIRY: "0x20"}, "15m", ONE_POD, "-0.03472%"),
    "a third of 30 days left": Case(
        "CertificateExpiry", {NOT_BEFORE: f"{-20 * DAY}x20", EXPIRY: f"{10 * DAY}x20"}, "15m"
    ),
    "a third of an hour left": Case("CertificateExpiry", {NOT_BEFORE: "-1500x20", EXPIRY: "2100x20"}, "15m"),
    "a certificate that was renewed in time": Case(
        "CertificateExpiry",
        {NOT_BEFORE: f"{-28 * DAY}x5 0x20", EXPIRY: f"{2 * DAY}x5 {30 * DAY}x20"},
        "15m",
    ),
    "a pair that can't be taken": Case("CertificateNotTaken", {PROBLEM: "0x5 1x30"}, "17m", ONE_POD),
    "a torn pair for a moment": Case("CertificateNotTaken", {PROBLEM: "0x5 1x2 0x30"}, "17m"),
    # VMs.
    "a VM apart since an hour": Case("VMApart", {named("apart"): "0x90", **fleet(1)}, "70m", [DB01], "1h 10m 0s"),
    "one replica knows it longer": Case(
        "VMApart",
        {named("apart"): "3600x90", named("apart", replica="b"): "0x90", **fleet(1)},
        "70m",
        [DB01],
        "1h 10m 0s",
    ),
    "two VMs of 30 apart": Case(
        "VMApart",
        {named("apart"): "0x90", named("apart", "db02"): "0x90", **fleet(2, together=28)},
        "70m",
        [DB01, alert_of("db02")],
        "1h 10m 0s",
    ),
    "one of two VMs apart for long": Case(
        "VMApart",
        {named("apart"): "0x90", named("apart", "db02"): "3600x90", **fleet(2, together=28)},
        "70m",
        [DB01],
        "1h 10m 0s",
    ),
    "one VM of 20 apart": Case("VMApart", {named("apart"): "0x90", **fleet(1, together=19)}, "70m"),
    "free VMs do not count": Case(
        "VMApart", {named("apart"): "0x90", **fleet(1, together=9, free=500)}, "70m", [DB01], "1h 10m 0s"
    ),
    "a VM apart since a moment": Case("VMApart", {named("apart"): "3600x90", **fleet(1)}, "70m"),
    "a VM that is stuck is not apart": Case("VMApart", {named("stuck"): "0x90", **fleet(0, stuck=1)}, "70m"),
    "no VM apart any more": Case("VMApart", {named("apart"): "0x60 _x30", **fleet(1)}, "80m"),
    "two VMs that fit nowhere": Case(
        "VMStuck",
        {named("stuck"): "0x5 300x20", named("stuck", "db02"): "_x5 300x20"},
        "17m",
        [DB01, alert_of("db02")],
        "12m 0s",
    ),
    "a VM that waited for a moment": Case("VMStuck", {named("stuck"): "_x5 300x3 _x20"}, "17m"),
    "a VM that is apart is not stuck": Case("VMStuck", {named("apart"): "0x20"}, "17m"),
    "a pod that has a node and does not run": Case(
        "VMNotRunning", {named("not-running"): "_x10 0x20"}, "17m", [DB01], "17m 0s"
    ),
    "a pod that runs after all": Case("VMNotRunning", {named("not-running"): "_x10 0x1 _x20"}, "17m"),
    "a VM that is stuck has no node": Case("VMNotRunning", {named("stuck"): "0x20"}, "17m"),
}
