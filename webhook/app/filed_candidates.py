"""Candidates from files: the VMs with a share-manager that did not ask for co-scheduling, for the page."""

from __future__ import annotations

import time

from webhook.core.api.meta import NamespacedName, utc_text
from webhook.core.observe.candidate import Candidate, has_opted_in, status_if_asked
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Mode, Policy
from webhook.files.candidates import candidate_in, owner_in
from webhook.files.manifests import Manifests
from webhook.files.vm_rows import pods_of_vms, unread
from webhook.kube.candidates import CHANGED, OFF, Candidates
from webhook.kube.slices import Slices


class FiledCandidates:
    """The candidates that files describe. They never change, and are computed when a page asks for the first time."""

    def __init__(self, cluster: Manifests, policy: Policy) -> None:
        self._cluster = cluster
        self._policy = policy
        self._pods = pods_of_vms(cluster)
        self._at = utc_text(time.time())
        self._found: Candidates | None = None

    async def refresh(self) -> Candidates:
        """Return the VMs of the files."""
        if self._policy.mode is Mode.OFF:
            return Candidates(at=self._at, rows=(), late=(OFF,), known=False)
        if self._found is None:
            slices, rows = Slices(), []
            for pods in self._pods.values():
                await slices.step()
                row = status_if_asked(pods, self._cluster, self._policy)
                if row and not has_opted_in(pods, self._cluster, self._policy):
                    rows.append(row)
            self._found = Candidates(at=self._at, rows=tuple(rows), late=tuple(unread(self._cluster)))
        return self._found

    def candidate(self, row: VMStatus) -> Candidate | str:
        """Return what the webhook would decide for the VM of this row."""
        pods = self._pods[NamespacedName(row.namespace, row.name)]
        return candidate_in(self._cluster, pods, self._policy) or CHANGED

    def owner(self, row: VMStatus) -> str | None:
        """Return the VirtualMachine that owns the VM; without its instance in the files, as KubeVirt names it."""
        return owner_in(self._cluster, NamespacedName(row.namespace, row.name))
