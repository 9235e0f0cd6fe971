"""The settings of the installed webhook that decide, as its running pods state them.

Without a pod that could be read, an annotation of the webhook's configuration tells one of them. Invariant: a value
that nobody states is the default of `serve`, and is called assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from webhook.core.opt_in import Policy, opt_in_all_of
from webhook.core.reasons import ANNOTATION_OPT_IN_ALL
from webhook.objects.cluster import Cluster
from webhook.objects.installed import CONFIGURATION, UNKNOWN, VALUES
from webhook.objects.kinds import WEBHOOK_CONFIGURATION, WEBHOOK_POD
from webhook.settings import policy_of


class WebhookSettings(Struct, frozen=True, kw_only=True):
    """The settings, and what is known of them.

    Attributes:
        policy: the settings as core takes them.
        assumed: the options whose value nobody states.
        problem: why it is not known whether the cluster opts in all VMs; empty if it is, or if no webhook is described.
        notes: what contradicts what, a sentence each.
    """

    policy: Policy
    assumed: Sequence[str] = ()
    problem: str = ""
    notes: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The settings in words."""
        policy = self.policy
        values = {
            "mode": policy.mode.value,
            "opt-in-all": policy.opt_in_all,
            "audit": "on" if policy.audit else "off",
            "shortlist": "auto" if policy.shortlist else "off",
        }
        assumed = dict.fromkeys(self.assumed, " (assumed)")
        return ", ".join(f"{name} {value}{assumed.get(name, '')}" for name, value in values.items())


def webhook_settings(cluster: Cluster) -> WebhookSettings:
    """Return the settings of the cluster's webhook."""
    pods = () if cluster.want(WEBHOOK_POD) else cluster.objects.of(WEBHOOK_POD).values()
    stated = [options for pod in pods for options in pod.stated]
    known = {name: _agreed({each[name] for each in stated}) for name in VALUES}
    notes = [f"the webhook's pods differ in --{name}" for name in VALUES if len({each[name] for each in stated}) > 1]
    unread = cluster.why_unread(WEBHOOK_CONFIGURATION, CONFIGURATION)
    if cluster.objects.configuration():
        annotated = opt_in_all_of(cluster.objects.configuration())
        if known["opt-in-all"] not in (UNKNOWN, annotated):
            notes.append(
                f"the webhook's pods run with --opt-in-all={known['opt-in-all']}, and the annotation "
                f"{ANNOTATION_OPT_IN_ALL} of its configuration stands for {annotated}: the pods count"
            )
        known["opt-in-all"] = known["opt-in-all"] or annotated
    where = known["longhorn-namespace"]
    if where not in (UNKNOWN, cluster.longhorn_namespace):
        notes.append(
            f"the webhook reads Longhorn's objects in namespace {where}, and this command in "
            f"{cluster.longhorn_namespace}: --longhorn-namespace {where}"
        )
    values = {name: known[name] or allowed[0] for name, allowed in VALUES.items()}
    return WebhookSettings(
        policy=policy_of({name.replace("-", "_"): value for name, value in values.items()}),
        assumed=[name for name, value in known.items() if value == UNKNOWN],
        problem="" if known["opt-in-all"] else unread,
        notes=notes,
    )


def _agreed(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else UNKNOWN
