"""Which claims a VM names, and how it uses them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from webhook.core.api.virtual_machine import VMClaim, VMISpec

VOLUMES: dict[str, tuple[dict[str, Any], VMClaim | None]] = {
    "a claim": ({"persistentVolumeClaim": {"claimName": "disk"}}, VMClaim("disk")),
    "a hotpluggable claim": (
        {"persistentVolumeClaim": {"claimName": "disk", "hotpluggable": True}},
        VMClaim("disk", hotpluggable=True),
    ),
    "a DataVolume, whose claim has its name": ({"dataVolume": {"name": "disk"}}, VMClaim("disk")),
    "a hotpluggable DataVolume": (
        {"dataVolume": {"name": "disk", "hotpluggable": True}},
        VMClaim("disk", hotpluggable=True),
    ),
    "an ephemeral disk over a claim": (
        {"ephemeral": {"persistentVolumeClaim": {"claimName": "disk"}}},
        VMClaim("disk"),
    ),
    "a memory dump, which no VM starts with": ({"memoryDump": {"claimName": "disk", "hotpluggable": True}}, None),
    "a container disk": ({"containerDisk": {"image": "fedora"}}, None),
    "a claim without a name": ({"persistentVolumeClaim": {}}, None),
    "an ephemeral disk over nothing": ({"ephemeral": {}}, None),
}


@pytest.mark.parametrize(("volume", "expected"), VOLUMES.values(), ids=VOLUMES)
def test_the_claim_of_a_volume(volume: dict[str, Any], expected: VMClaim | None) -> None:
    """The kinds of volumes with a claim, and some without."""
    spec = convert({"volumes": [{"name": "root", **volume}]}, VMISpec)
    assert spec.claims == ((expected,) if expected else ())
    assert (spec.volumes or [])[0].claim == (expected.name if expected and not expected.hotpluggable else None)


@pytest.mark.parametrize(
    ("device", "cdrom"), [({"cdrom": {}}, True), ({"cdrom": {"bus": "sata"}}, True), ({"disk": {}}, False), ({}, False)]
)
def test_a_claim_is_a_cdrom_by_the_disk_of_its_volumes_name(device: dict[str, Any], *, cdrom: bool) -> None:
    """A volume of virtiofs has no disk, and is no CD-ROM; nor is a disk that is another volume's."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-claim"}} for name in ("tools", "share")]
    domain = {"devices": {"disks": [{"name": "tools", **device}], "filesystems": [{"name": "share", "virtiofs": {}}]}}
    spec = convert({"domain": domain, "volumes": volumes}, VMISpec)
    assert spec.claims == (VMClaim("tools-claim", cdrom=cdrom), VMClaim("share-claim"))
