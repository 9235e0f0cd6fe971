"""derive_share_manager: the share-manager pod that Longhorn would create for a volume, with notes and hints."""

from __future__ import annotations

from typing import Final

import pytest
from support.drivers.explaining import the_cluster
from support.objects.deriving_share_manager import (
    NAMESPACE,
    PV,
    ClusterOfObjects,
    Object,
    derived,
    storage_class,
    volume,
)

from webhook.explain.derive import share_manager
from webhook.objects.api.storage import Volume

SERVES: Final = [{"name": "share-manager", "args": ["--volume", "pvc-disk", "--data-engine", "v1"]}]


def test_the_pod_is_the_one_that_longhorn_makes() -> None:
    """Name, labels and namespace.

    Without a StorageClass nothing restricts its nodes. The container names the volume.
    """
    assert derived({}).pod == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "share-manager-pvc-disk",
            "namespace": NAMESPACE,
            "labels": {"longhorn.io/component": "share-manager", "longhorn.io/share-manager": "pvc-disk"},
            "ownerReferences": [
                {"apiVersion": "longhorn.io/v1beta2", "kind": "ShareManager", "name": "pvc-disk", "uid": "explained"}
            ],
        },
        "spec": {"nodeSelector": {}, "tolerations": [], "containers": SERVES},
    }


def test_the_pod_says_which_data_engine_its_volume_has() -> None:
    """Longhorn puts the data engine into the container's arguments."""
    (container,) = derived({}, volume(dataEngine="v2")).pod["spec"]["containers"]
    assert container["args"] == ["--volume", "pvc-disk", "--data-engine", "v2"]


def test_each_object_is_looked_up_where_it_is() -> None:
    """Settings are in Longhorn's namespace; PersistentVolume and StorageClass are in none."""
    cluster = ClusterOfObjects(storage_class())
    share_manager.derive_share_manager(volume(), cluster, NAMESPACE)
    assert cluster.asked == [
        "longhorn-system/settings/taint-toleration",
        "longhorn-system/settings/system-managed-components-node-selector",
        "/persistentvolumes/pv-disk",
        "/storageclasses/fast",
    ]


def toleration(key: str, operator: str, value: str, effect: str) -> Object:
    """A toleration with all fields."""
    return {"key": key, "operator": operator, "value": value, "effect": effect}


TOLERATION_ROWS: dict[str, tuple[str, list[Object]]] = {
    "nothing": ("", []),
    "a key and an effect": ("nfs:NoSchedule", [toleration("nfs", "Exists", "", "NoSchedule")]),
    "a value": ("nfs=yes:NoExecute", [toleration("nfs", "Equal", "yes", "NoExecute")]),
    "any effect": ("nfs:", [toleration("nfs", "Exists", "", "")]),
    "several, with blanks": (
        " a:NoSchedule ; b = c :PreferNoSchedule",
        [toleration("a", "Exists", "", "NoSchedule"), toleration("b", "Equal", "c", "PreferNoSchedule")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), TOLERATION_ROWS.values(), ids=TOLERATION_ROWS)
def test_tolerations_are_read_as_longhorn_reads_them(text: str, expected: list[Object]) -> None:
    """The form is the same in the StorageClass and in Longhorn's setting."""
    assert derived(storage_class(shareManagerTolerations=text)).pod["spec"]["tolerations"] == expected
    assert derived({"settings/taint-toleration": {"value": text}}).pod["spec"]["tolerations"] == expected


SELECTOR_ROWS: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": ("", {}),
    "blanks": ("  ", {}),
    "one": ("disk:ssd", {"disk": "ssd"}),
    "several, with blanks": (" example.com/a : b ; c:", {"example.com/a": "b", "c": ""}),
}


@pytest.mark.parametrize(("text", "expected"), SELECTOR_ROWS.values(), ids=SELECTOR_ROWS)
def test_node_selectors_are_read_as_longhorn_reads_them(text: str, expected: dict[str, str]) -> None:
    """The form is the same in the StorageClass and in Longhorn's setting."""
    setting = "settings/system-managed-components-node-selector"
    assert derived(storage_class(shareManagerNodeSelector=text)).pod["spec"]["nodeSelector"] == expected
    assert derived({setting: {"value": text}}).pod["spec"]["nodeSelector"] == expected


def test_the_class_comes_after_the_settings() -> None:
    """Tolerations add up. If both select by one label, the value of the StorageClass counts."""
    found = derived(
        storage_class(shareManagerTolerations="b:NoSchedule", shareManagerNodeSelector="k:class")
        | {
            "settings/taint-toleration": {"value": "a:NoSchedule"},
            "settings/system-managed-components-node-selector": {"value": "k:setting;m:n"},
        }
    ).pod["spec"]
    assert [each["key"] for each in found["tolerations"]] == ["a", "b"]
    assert found["nodeSelector"] == {"k": "class", "m": "n"}


def test_all_topologies_are_one_term() -> None:
    """Longhorn puts all topologies into one term, although Kubernetes means them as alternatives."""
    zone, rack = {"key": "zone", "values": ["a", "b"]}, {"key": "rack", "values": ["7"]}
    topologies = [{"matchLabelExpressions": [zone]}, {"matchLabelExpressions": [rack]}]
    found = derived({**PV, "storageclasses/fast": {"allowedTopologies": topologies}}).pod["spec"]["affinity"]
    assert found == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{**zone, "operator": "In"}, {**rack, "operator": "In"}]},
                ]
            }
        }
    }


NOTE_ROWS: dict[str, tuple[dict[str, Object | str], str]] = {
    "a setting that may not be read": (
        {"settings/taint-toleration": "403 Forbidden: no"},
        "not derived: what Longhorn's setting taint-toleration adds: 403 Forbidden: no",
    ),
    "a PersistentVolume that may not be read": (
        {"persistentvolumes/pv-disk": "403 Forbidden: no"},
        (
            "not derived: what the StorageClass of PersistentVolume pv-disk adds (topology, node selector, "
            "tolerations): 403 Forbidden: no"
        ),
    ),
    "a class that may not be read": (
        {**PV, "storageclasses/fast": "403 Forbidden: no"},
        "not derived: what StorageClass fast adds (topology, node selector, tolerations): 403 Forbidden: no",
    ),
    "a class that is gone": (PV, "StorageClass fast does not exist, so Longhorn does without it"),
    "a toleration that is none": (
        storage_class(shareManagerTolerations="nfs"),
        (
            "shareManagerTolerations of its StorageClass can't be read (got 'nfs', expected key=value:effect or "
            "key:effect), so Longhorn ignores it"
        ),
    ),
    "an effect that is none": (
        storage_class(shareManagerTolerations="nfs:Never"),
        (
            "shareManagerTolerations of its StorageClass can't be read (got 'nfs:Never', expected key=value:effect or "
            "key:effect), so Longhorn ignores it"
        ),
    ),
    "a selector that is none": (
        storage_class(shareManagerNodeSelector="a:b;a=b"),
        (
            "shareManagerNodeSelector of its StorageClass can't be read (got 'a=b', expected key:value), so Longhorn "
            "ignores it"
        ),
    ),
    "a selector with two colons": (
        storage_class(shareManagerNodeSelector="a:b:c"),
        (
            "shareManagerNodeSelector of its StorageClass can't be read (got 'a:b:c', expected key:value), so Longhorn "
            "ignores it"
        ),
    ),
}


@pytest.mark.parametrize(("objects", "note"), NOTE_ROWS.values(), ids=NOTE_ROWS)
def test_what_could_not_be_read_is_noted(objects: dict[str, Object | str], note: str) -> None:
    """The note has the missing permission, or the text that Longhorn can't read either; nothing is derived from it."""
    found = derived(objects)
    assert found.notes[1:] == [note]
    assert found.pod["spec"] == {"nodeSelector": {}, "tolerations": [], "containers": SERVES}


HINT_ROWS: dict[str, tuple[Volume, list[str]]] = {
    "a shared volume": (volume(), []),
    "ReadWriteOnce": (
        volume(accessMode="rwo"),
        ["the volume's access mode is rwo, not rwx: Longhorn makes no share-manager for it"],
    ),
    "no mode": (
        volume(accessMode=None),
        ["the volume's access mode is not set, not rwx: Longhorn makes no share-manager for it"],
    ),
    "migratable": (
        volume(migratable=True),
        ["the volume is migratable: Longhorn attaches it as a block device, without a share-manager"],
    ),
    "no PersistentVolume": (
        volume(pv=None),
        ["the volume has no PersistentVolume: Longhorn makes no share-manager pod before that exists"],
    ),
}


@pytest.mark.parametrize(("found", "hints"), HINT_ROWS.values(), ids=HINT_ROWS)
def test_a_volume_that_gets_no_share_manager_has_a_hint(found: Volume, hints: list[str]) -> None:
    """The decision is still shown, with a hint that Longhorn will not create this pod."""
    assert derived({}, found).hints == hints


def test_a_class_without_a_name_is_none() -> None:
    """A PersistentVolume that a user wrote can have no StorageClass, and a missing PersistentVolume has none."""
    assert len(derived({"persistentvolumes/pv-disk": {"spec": {}}}).notes) == 1
    assert len(derived({}).notes) == 1


def test_files_have_no_such_objects() -> None:
    """A cluster in files can lack kinds that only explain reads; a note says so."""
    found = share_manager.derive_share_manager(volume(), the_cluster(), NAMESPACE)
    assert found.notes[-1].endswith("adds: cluster.yaml: no Setting is described")
