"""Every metric of `serve`: name, type, labels and help text. /metrics and the table in docs are made from it.

Names and units follow Prometheus' rules. Every label has few values, which are known in advance. Names that a caller or
a cluster chooses are labels of one metric only, which has at most 100 samples.
"""

from __future__ import annotations

from enum import unique

from webhook.component_base.metrics import MetricFamily


@unique
class Family(MetricFamily):
    """Each metric of `serve`."""

    BUILD = "build_info", "gauge", ("version", "python"), "1, with the version that runs as label."
    ADMISSIONS = (
        "admissions_total",
        "counter",
        ("entry", "decision", "reason"),
        "Answers, by entry of the webhook, decision (required, preferred, unchanged) and reason code.",
    )
    DURATION = (
        "admission_duration_seconds",
        "histogram",
        ("entry",),
        "Time from the complete body of a call to its answer.",
    )
    STAGE_DURATION = (
        "admission_stage_duration_seconds",
        "histogram",
        ("entry", "stage"),
        "The same time by stage: decide (computing the answer) and read (waiting for reads from the API server).",
    )
    READS = (
        "admission_reads",
        "histogram",
        ("entry",),
        "Objects that an admission read from the API server, because no cache had them.",
    )
    REFUSED_CALLS = (
        "refused_calls_total",
        "counter",
        ("status",),
        "Calls that got an HTTP error, by its status. 400 is a body that is not a valid AdmissionReview.",
    )
    LOOKUPS = (
        "lookups_total",
        "counter",
        ("kind", "source", "outcome"),
        "Lookups of objects in the cache (hit, miss, stale) and by requests to the API server (found, absent, failed).",
    )
    LATE_READS = (
        "late_reads_total",
        "counter",
        ("kind",),
        "Reads from the API server that had no answer before the deadline of their call.",
    )
    CACHE_FRESH = (
        "cache_fresh",
        "gauge",
        ("cache",),
        "1 while calls use the cache, 0 while they read each object from the API server, or do without VMs and VMIs.",
    )
    CACHE_OBJECTS = "cache_objects", "gauge", ("cache",), "Objects in the cache."
    CACHE_LAST_EVENT = (
        "cache_last_event_timestamp_seconds",
        "gauge",
        ("cache",),
        "Time of the last answer or event from the API server, bookmarks included; absent before the first one.",
    )
    CACHE_INTERRUPTIONS = (
        "cache_interruptions_total",
        "counter",
        ("cache", "cause"),
        "Lists and watches that ended with an error and were started again, by cause.",
    )
    CACHE_UNREADABLE = (
        "cache_unreadable_objects_total",
        "counter",
        ("cache",),
        "Objects from the API server that could not be decoded, and are not in the cache.",
    )
    CERTIFICATE_EXPIRY = (
        "certificate_expiry_timestamp_seconds",
        "gauge",
        (),
        "Time at which the served certificate expires; absent while there is no certificate.",
    )
    CERTIFICATE_NOT_BEFORE = (
        "certificate_not_before_timestamp_seconds",
        "gauge",
        (),
        "Time from which the served certificate is valid; absent while there is no certificate.",
    )
    CERTIFICATE_RELOADS = (
        "certificate_reloads_total",
        "counter",
        (),
        "Certificates that were loaded after the first one.",
    )
    CERTIFICATE_FAILURES = (
        "certificate_failures_total",
        "counter",
        ("problem",),
        "Certificates that were not loaded, by the problem of their files.",
    )
    CERTIFICATE_PROBLEM = (
        "certificate_problem",
        "gauge",
        (),
        "1 while the certificate's files can't be served; the webhook then serves the previous pair, if any.",
    )
    HANDSHAKE_FAILURES = (
        "tls_handshake_failures_total",
        "counter",
        ("reason",),
        "Failed TLS handshakes, by OpenSSL's reason.",
    )
    EVENTS = (
        "events_total",
        "counter",
        ("outcome",),
        "Events on VirtualMachineInstances (--events), by outcome.",
    )
    TASK_FAILURES = (
        "background_task_failures_total",
        "counter",
        ("task",),
        "Background tasks that ended. No such task may end, so the process ends too, and the kubelet restarts it.",
    )
    VMS = (
        "vms",
        "gauge",
        ("state",),
        "VMs that asked for co-scheduling, by state: where they run now relative to their share-managers.",
    )
    VMS_SINCE = (
        "vms_oldest_timestamp_seconds",
        "gauge",
        ("state",),
        "Time since which the VM that is longest in this state has been in it; absent if no VM is in it.",
    )
    VM_DECISIONS = (
        "vm_decisions",
        "gauge",
        ("decision",),
        "The same VMs, by the decision for their pod. migrated: by a live migration, no call. nothing: no answer.",
    )
    VM_NAMED = (
        "vm_in_trouble_timestamp_seconds",
        "gauge",
        ("vm_namespace", "vm", "state"),
        "Time since which this VM has been stuck, not running or apart. At most 100 VMs, in this order.",
    )
    VMS_NOT_NAMED = (
        "vms_in_trouble_not_named",
        "gauge",
        ("state",),
        "VMs that are stuck, not running or apart beyond the 100 VMs that vm_in_trouble_timestamp_seconds names.",
    )
    VM_STARTS = (
        "vm_starts_total",
        "counter",
        ("decision",),
        "Starts of such VMs, by the decision for their pod, except of pods that came and went while no watch was up.",
    )
    VM_SECONDS = (
        "vm_seconds_total",
        "counter",
        ("state",),
        "Time of such VMs in each state, in VM-seconds. Each replica counts every VM: use max or avg over replicas.",
    )
