"""Why a VM that is apart is not moved now, and why a stuck VM is not restarted: the table of rules, in their order.

`decide` has those for a VM that is apart, and `stuck` those for a stuck VM.
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
    """Every rule: its code and the template of its sentence. Codes are stable: Events and `status` show them."""

    def __init__(self, code: str, template: str) -> None:
        self.code = code
        self.template = template

    def says_no(self, **names: object) -> NotYet:
        """Return the refusal of this rule with the names that its template needs."""
        return NotYet(self, self.template.format_map(names))

    # KubeVirt: can it be asked now?
    KUBEVIRT_UNKNOWN = "KubeVirtUnknown", "KubeVirt's version is not known: {because}"
    KUBEVIRT_TOO_OLD = (
        "KubeVirtTooOld",
        "KubeVirt {version} has no addedNodeSelector, and 1.5 is the first version that has it",
    )
    KUBEVIRT_CHANGES = "KubeVirtChanges", "KubeVirt is being installed, upgraded or removed: {because}"
    # The VM: does it take part, and can it be moved at all?
    NOT_ASKED = "NotAsked", "the VM's annotation kubevirt-scheduler/reunite is {value}"
    SEVERAL_NODES = (
        "SeveralNodes",
        "its share-managers are on {nodes}; a migration leads to only one of these nodes",
    )
    NOT_RUNNING = "NotRunning", "the VM is not running: its phase is {phase}"
    NOT_MIGRATABLE = "NotMigratable", "KubeVirt can't migrate the VM: {because}"
    VM_BUSY = "VMBusy", "the VM is not left alone: {because}"
    VM_CHANGED = (
        "VMChanged",
        "the VM's {field} is another one than when its pod was made, so its target can't be judged by the pod",
    )
    # Others decide about the VM.
    MIGRATING = "Migrating", "a migration of the VM runs now"
    EVACUATING = "Evacuating", "KubeVirt moves the VM away from {node} now"
    TARGET_NAMED = (
        "TargetNamed",
        "migration {migration} named this node for the VM; it stays until others move it, or until its next start",
    )
    MOVED_AGAIN = (
        "MovedAgain",
        "migration {migration} moved it away after `reunite` had brought it back once; it stays until its next start",
    )
    NODE_EVACUATED = "NodeEvacuated", "KubeVirt moves VMs away from its share-manager's node {node} now"
    # When.
    FAILED_OFTEN = (
        "FailedOften",
        "{failures} migrations in a row failed, the last is {migration}; the VM stays until its next start",
    )
    TOO_SOON = "TooSoon", "it has been apart and without a migration since {since}, less than {seconds} s"
    NODE_NOT_CALM = (
        "NodeNotCalm",
        "the last VM that had to leave its share-manager's node {node} left less than {seconds} s ago",
    )
    NODE_JUST_READY = (
        "NodeJustReady",
        "its share-manager's node {node} has been Ready since {since}, less than {seconds} s",
    )
    MOVED_BY_OTHERS = (
        "MovedByOthers",
        "migration {migration} brought it here at {at}, for no known drain or update; it stays for {seconds} s",
    )
    COOLDOWN = "Cooldown", "it came home at {at}; the next migration is {seconds} s later"
    ENOUGH_TODAY = "EnoughToday", "it had {count} migrations since {since}, and two within a day are enough"
    # How many.
    STOPPED = (
        "Stopped",
        "the migrations of {count} different VMs failed within a day, so none starts now; the last one is {migration}",
    )
    # The node, by the rules of a pin.
    NOT_PLACEABLE = "NotPlaceable", "{because}"
    TARGET_TAINTED = (
        "TargetTainted",
        "node {node} has the taint {taint}, so the VM would be moved again soon",
    )
    # How many at once. These come last: a VM with one of them waits only for its turn.
    CLUSTER_BUSY = "ClusterBusy", "its turn comes later: {running} migrations count now, and {limit} is the limit"
    NODE_BUSY = (
        "NodeBusy",
        "its turn comes later: {running} migrations of node {node} count now, and {limit} is the limit",
    )
    # A stuck VM: would KubeVirt start it again, does it wait for the webhook's nodes, and would another node take it?
    NO_VIRTUAL_MACHINE = "NoVirtualMachine", "{advice}"
    RUN_STRATEGY = "RunStrategy", "the VM's runStrategy is {strategy}, so its user restarts it: {command}"
    STARTS_PAUSED = "StartsPaused", "the VM's startStrategy is Paused, so its user starts it"
    RESTART_GOES_ON = (
        "RestartGoesOn",
        "the pod of {vm} was deleted at {at}, and KubeVirt has not started that VM yet",
    )
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
