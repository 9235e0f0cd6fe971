"""An opt-in annotation in a wrong place: where it is, and where it belongs.

KubeVirt copies the annotations of a VirtualMachine's template to the pod, and none of the VirtualMachine itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.core.api.meta import ObjectMeta
from webhook.core.api.virtual_machine import VirtualMachine
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE

TEMPLATE: Final = "spec.template.metadata"


def misplaced_in(vm: VirtualMachine) -> list[str]:
    """Return a hint for each wrong place of this VirtualMachine that has the annotation."""
    return list(misplaced(vm.spec.template.metadata or ObjectMeta(), vm.metadata, TEMPLATE))


def misplaced(meta: ObjectMeta, owner: ObjectMeta | None, place: str) -> Iterator[str]:
    """Return a hint for each wrong place that has the opt-in annotation, unless the right place has it too.

    Args:
        meta: the metadata that KubeVirt copies to the pod.
        owner: the metadata of the VirtualMachine, which KubeVirt does not copy to the pod.
        place: the field path of `meta`.
    """
    if meta.annotation(ANNOTATION_CO_SCHEDULE) is not None:
        return
    values = {
        "metadata.annotations": owner and owner.annotation(ANNOTATION_CO_SCHEDULE),
        "metadata.labels": owner and owner.label(ANNOTATION_CO_SCHEDULE),
        f"{place}.labels": meta.label(ANNOTATION_CO_SCHEDULE),
    }
    for where, value in values.items():
        if value is not None:
            yield (
                f'{ANNOTATION_CO_SCHEDULE}: "{value}" is in {where}, where the webhook does not read it; '
                f"expected in {place}.annotations: move it there"
            )
