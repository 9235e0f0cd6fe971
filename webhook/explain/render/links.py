"""The objects behind a claim or a volume: for each object a title and a text. Neither rules nor layout are here."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.explain.chain.claim_chain import ClaimChain, PodLink, ShareManagerLink
from webhook.explain.chain.volume_chain import ClaimLink, VMLink, VolumeChain

Link = tuple[str, str]


def claim_links(chain: ClaimChain) -> Iterator[Link]:
    """Return a title and a text for each object from the claim to its share-manager pod."""
    if chain.phase or chain.access_modes:
        yield "PersistentVolumeClaim", _claim_state(chain.phase, chain.access_modes)
    if chain.persistent_volume:
        yield "PersistentVolume", chain.persistent_volume
    if chain.volume_handle:
        yield "Longhorn volume", chain.volume_handle
    yield from _share_manager(chain.share_manager, chain.pod)


def volume_links(chain: VolumeChain) -> Iterator[Link]:
    """Return a title and a text for the share-manager, each claim with its VMs, and each attachment ticket."""
    yield from _share_manager(chain.share_manager, chain.pod)
    for claim in chain.claims:
        yield from _claim(claim)
    for ticket in chain.tickets:
        yield "Ticket", f"{ticket.type or 'no type'}, {ticket.node or 'no node'}"


def _share_manager(found: ShareManagerLink | None, pod: PodLink | None) -> Iterator[Link]:
    if found:
        yield "ShareManager", f"{found.state or 'no state'}, ownerID {found.owner_id or 'none'}"
    if pod:
        yield "Pod", _pod(pod)


def _claim(claim: ClaimLink) -> Iterator[Link]:
    if claim.persistent_volume:
        yield "PersistentVolume", claim.persistent_volume
    known = claim.phase or claim.access_modes
    state = _claim_state(claim.phase, claim.access_modes) if known else "could not be read or does not exist"
    yield "PersistentVolumeClaim", f"{claim.claim}, {state}"
    for vm in claim.vms or ():
        yield "VM", f"{vm.vm}, {_opt_in(vm)}: pod {_pod(vm.pod)}"


def _claim_state(phase: str | None, modes: list[str]) -> str:
    return f"{phase or 'no phase'}, {', '.join(modes) or 'no access mode'}"


def _pod(pod: PodLink) -> str:
    state = f"{pod.phase or 'no phase'}{', terminating' if pod.terminating else ''}"
    return f"{pod.name}, {state}, {f'on {pod.node}' if pod.node else 'not scheduled'}"


def _opt_in(vm: VMLink) -> str:
    value = "no annotation" if vm.annotation is None else f'"{vm.annotation}"'
    return f"{'opted in' if vm.mode else 'not opted in'} ({value})"
