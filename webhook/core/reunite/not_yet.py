"""Why a VM that is apart is not moved now, and why a stuck VM is not restarted: the table of rules, in their order.

`decide` asks those for a VM that is apart, and `stuck` those for a stuck VM.
"""

from __future__ import annotations

from enum import Enum, unique

from msgspec import Struct


class NotYet(Struct, frozen=True):
    """The first rule that says no, with its sentence."""

    rule: Rule
    sentence: str

    def __str__(self) -> str:
        return f"{self.rule.code}: {self.sentence}"


@unique
class Rule(Enum):
    """Every rule: its code and the template of its sentence. Codes are stable: they are metric labels."""

    def __init__(self, code: str, template: str) -> None:
        self.code = code
        self.template = template

    def says_no(self, **names: object) -> NotYet:
        """Return the refusal of this rule with the names that its template needs."""
        return NotYet(self, self.template.format_map(names))

    # The VM: does it take part, and can it be moved at all?
    KUBEVIRT_UNKNOWN = (
        "KubeVirtUnknown",
        "KubeVirt's version could not be read, and versions before 1.5 have no addedNodeSelector",
    )
    KUBEVIRT_TOO_OLD = (
        "KubeVirtTooOld",
        "KubeVirt {version} has no addedNodeSelector, and 1.5 is the first version that has it",
    )
    NOT_ASKED = "NotAsked", "the VM's annotation kubevirt-scheduler/reunite is {value}"
    SEVERAL_NODES = (
        "SeveralNodes",
        "its share-managers are on {nodes}; a migration leads to only one of these nodes",
    )
    NOT_RUNNING = "NotRunning", "the VM is not running: its phase is {phase}"
    NOT_MIGRATABLE = "NotMigratable", "KubeVirt can't migrate the VM: {because}"
    # Others decide about the VM.
    MIGRATING = "Migrating", "a migration of the VM runs now"
    EVACUATING = "Evacuating", "KubeVirt moves the VM away from {node} now"
    TARGET_NAMED = (
        "TargetNamed",
        (
            "migration {migration} named its target node; the VM stays until its next start, as long as KubeVirt "
            "stores this migration"
        ),
    )
    MOVED_AWAY = (
        "MovedAway",
        (
            "others moved it away {times} times from home; it stays until its next start, as long as KubeVirt "
            "stores these migrations"
        ),
    )
    MOVED_AWAY_OR_DRAINED = (
        "MovedAwayOrDrained",
        "others moved it away {times} times, the last perhaps by a drain; KubeVirt does not say, so it stays",
    )
    NODE_EVACUATED = "NodeEvacuated", "VMs have to leave node {node} now"
    NODE_NOT_CALM = "NodeNotCalm", "VMs had to leave node {node} less than {seconds} s ago"
    NODE_JUST_READY = "NodeJustReady", "node {node} is Ready since {since}, less than {seconds} s"
    # Time.
    TOO_SOON = "TooSoon", "the VM is apart since {since}, less than {seconds} s"
    MOVED_OFTEN = (
        "MovedOften",
        "KubeVirt keeps no migration of the VM before {since}, so it can have come home in these {seconds} s",
    )
    COOLDOWN = "Cooldown", "the VM came home at {at}, less than {seconds} s ago"
    EVICTED = "Evicted", "something evicted the VM at {at}, less than {seconds} s ago, and no drain is known"
    BACKOFF = (
        "Backoff",
        "{failures} migrations in a row failed, the last at {at}; the next try is {seconds} s later",
    )
    NOT_BEGUN = (
        "NotBegun",
        "KubeVirt did not begin the last migration within a minute; the next try is {seconds} s later",
    )
    OUTSIDE_WINDOW = "OutsideWindow", "migrations start only in the time windows {windows}"
    # How many.
    STOPPED = "Stopped", "{failures} migrations failed within a day, so none starts now; the last one is {migration}"
    CLUSTER_BUSY = "ClusterBusy", "{running} migrations run in the cluster, and {limit} is the limit for one more"
    NODE_BUSY = "NodeBusy", "{running} migrations from or to node {node} run, and {limit} is the limit for one more"
    # The node, by the rules of a pin.
    NOT_PLACEABLE = "NotPlaceable", "{because}"
    # A stuck VM: would KubeVirt start it again, does it wait for the webhook's nodes, and would another node take it?
    NO_VIRTUAL_MACHINE = "NoVirtualMachine", "{advice}"
    RUN_STRATEGY = "RunStrategy", "the VM's runStrategy is {strategy}, so its user restarts it: {command}"
    NOT_STUCK = "NotStuck", "pod {pod}: {because}"
    NOT_OURS = "NotOurs", "pod {pod} has no required node that the webhook wrote"
    STUCK_TOO_SOON = "StuckTooSoon", "kube-scheduler finds no node for the pod since {since}, less than {seconds} s"
    STARTED_AGAIN = (
        "StartedAgain",
        "{failures} starts of the VM failed, and the present one began at {at}, less than {seconds} s ago",
    )
    NOT_EVALUATED = "NotEvaluated", "it is not known whether another node would take the pod: {because}"
    OWN_NODE_FITS = (
        "OwnNodeFits",
        "node {node}, which the webhook required, takes the pod by all known rules; a new pod could wait for it again",
    )
    NO_OTHER_NODE = "NoOtherNode", "none of the {count} other nodes is known to take the pod; {because}"


def why_not_asked(annotation: str | None, *, default_on: bool) -> NotYet | None:
    """Return that a VM with this value of `kubevirt-scheduler/reunite` takes no part; None if it takes part."""
    if annotation == "true" or (annotation is None and default_on):
        return None
    return Rule.NOT_ASKED.says_no(value="not set, and the default is off" if annotation is None else annotation)
