"""FilesPlanner: the steps of a plan for a cluster that files describe. It reads nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from webhook.core.api.meta import NamespacedName
from webhook.core.observe.restart import assumed_owner
from webhook.core.observe.vm_status import VMStatus
from webhook.core.view import NeedObjects
from webhook.objects.manifests import Manifests
from webhook.plan.planner import details_of
from webhook.plan.step import Step, counted, step

_KUBEVIRT = "kubevirt.io/v1"


class FilesPlanner:
    """Makes the steps of a plan, as Planner does at an API server."""

    def __init__(self, manifests: Manifests) -> None:
        self._manifests = manifests
        self._snapshot, self._notes = counted(manifests.snapshot())

    def steps(self, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
        """Return a step for each of these rows; and the version of KubeVirt, which files do not say.

        A migration takes resources of its target node from the later ones. It stays in the snapshot of the manifests.
        """
        return [self._step(row) for row in rows], ""

    def _step(self, row: VMStatus) -> Step:
        vmi = self._document(_KUBEVIRT, "VirtualMachineInstance", row.namespace, row.name)
        owner = assumed_owner(vmi, row.name)
        vm = self._document(_KUBEVIRT, "VirtualMachine", row.namespace, owner) if owner else {}
        details = details_of(owner, self._document("v1", "Pod", row.namespace, row.pod), vmi, vm)
        unknown = [] if vmi else ["the VM's condition LiveMigratable is not known: no VMI is described"]
        details = replace(details, notes=[*self._notes, *unknown])
        found = step(row, details, self._manifests, self._manifests, self._snapshot)
        assert not isinstance(found, NeedObjects)  # noqa: S101 - files hold everything
        return found

    def _document(self, api_version: str, kind: str, namespace: str, name: str) -> Mapping[str, Any]:
        found = self._manifests.objects.documents(api_version, kind).get(NamespacedName(namespace, name))
        return found.value if found else {}
