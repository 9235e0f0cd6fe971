"""Files of a cluster: what is read of them, and what is wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fakes.views import cluster
from support.objects.builders import (
    longhorn_node,
    node,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
)

from webhook.core import refs
from webhook.core.api.longhorn import Need
from webhook.core.api.meta import NamespacedName
from webhook.core.view import NoObject
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument
from webhook.objects.files import read_file

Object = dict[str, Any]


def write(directory: Path, name: str, *objects: Object) -> Path:
    """A YAML file of these objects."""
    path = directory / name
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return path


def load(path: Path) -> Cluster:
    """The cluster in a path."""
    return Cluster.load(path, longhorn_namespace="longhorn-system")


def problems(path: Path) -> tuple[str, ...]:
    """The messages about a path that can't be loaded."""
    with pytest.raises(BadDocument) as caught:
        load(path)
    return caught.value.problems


def name_of(found: Any) -> Any:
    """The name of an object, or the gap itself."""
    return found if isinstance(found, NoObject) else found.metadata.name


@pytest.mark.parametrize(
    ("objects", "shown"),
    [([], False), ([longhorn_node("n1")], True), ([longhorn_node("n1", namespace="elsewhere"), node("n1")], False)],
)
def test_whether_longhorn_nodes_are_known(objects: list[Object], *, shown: bool) -> None:
    """Without any nodes.longhorn.io in Longhorn's namespace, core does not ask for them."""
    assert cluster(*objects).has_longhorn_nodes() is shown


def test_what_all_longhorn_nodes_lack() -> None:
    """As long as their list could be read."""
    lacking = [longhorn_node(name, conditions={"NFSClientInstalled": "NFSClientIsNotFound: none"}) for name in "ab"]
    assert cluster(*lacking).all_longhorn_nodes_lack(Need.NFS_CLIENT)
    assert not cluster(*lacking).all_longhorn_nodes_lack(Need.ENCRYPTION)
    assert not cluster(*lacking, longhorn_node("c")).all_longhorn_nodes_lack(Need.NFS_CLIENT)


def test_longhorn_is_looked_for_in_its_namespace_alone() -> None:
    """ShareManagers, their pods and nodes.longhorn.io of another namespace do not count."""
    view = cluster(share_manager("h", namespace="x"), share_manager_pod("h", namespace="x"))
    assert view.get(refs.share_manager("h")) is NoObject.NOT_FOUND
    assert view.get(refs.share_manager_pod("h")) is NoObject.NOT_FOUND


def test_what_has_no_namespace_is_in_default() -> None:
    """It is where kubectl would create it; a node has no namespace, even if the file names one."""
    claim, stray, pod = persistent_volume_claim("disk"), node("n1"), virt_launcher_pod(claims=["disk"])
    del claim["metadata"]["namespace"]
    pod["metadata"] |= {"name": "p", "namespace": None}
    stray["metadata"]["namespace"] = "vms"
    view, disk = cluster(claim, stray, pod), NamespacedName("default", "disk")
    assert name_of(view.get(refs.persistent_volume_claim(disk))) == "disk"
    assert name_of(view.get(refs.node("n1"))) == "n1"
    found = view.virt_launchers(disk)
    assert not isinstance(found, NoObject)
    assert [each.metadata.name for each in found] == ["p"]


@pytest.mark.parametrize("kind", [("apps/v1", "Deployment"), ("longhorn.io/v1beta1", "Node")], ids=" ".join)
def test_kinds_and_versions_that_no_rule_reads_are_counted(kind: tuple[str, str]) -> None:
    """They are neither decoded nor stored."""
    ignored = dict(zip(("apiVersion", "kind"), kind, strict=True))
    objects = cluster(ignored, ignored, vms=False).objects
    assert (objects.ignored, objects.size) == ({" ".join(kind): 2}, 0)


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        pytest.param([{**node("n1"), "metadata": {}}], ["-:1: Node: metadata.name", "nothing"], id="no name"),
        pytest.param([{"apiVersion": "v1", "kind": "Node"}], ["-:1: Node", "metadata"], id="no metadata"),
        pytest.param([{**node("n1"), "status": 1}], ["-:1: Node: status", "got a number"], id="a wrong type"),
        pytest.param([node("n1"), node("n1")], ["-:1: Node n1 is described twice, first in -:1"], id="two of one name"),
        pytest.param(
            [persistent_volume_claim("a"), persistent_volume_claim("a")],
            ["PersistentVolumeClaim vms/a is described twice"],
            id="two in one namespace",
        ),
    ],
)
def test_an_object_that_cannot_be_held_is_refused(objects: list[Object], words: list[str]) -> None:
    """The message has the line and the problem."""
    with pytest.raises(BadDocument) as caught:
        cluster(*objects)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_directory_is_read_whole(tmp_path: Path) -> None:
    """Its .yaml, .yml and .json files, with those below it, but no kustomizations, no other files and no `.git`."""
    write(tmp_path, "a.yaml", node("n1"))
    write(tmp_path, "b.yml", node("n2"))
    (tmp_path / "c.json").write_text('{\n\t"apiVersion": "v1",\n\t"kind": "Node", "metadata": {"name": "n3"}}')
    for name in ("kustomization.yaml", "kustomization.yml", "README.md"):
        (tmp_path / name).write_text("resources: [a.yaml]\n")
    for name, hidden in (("below", "n4"), (".git", "n5")):
        (tmp_path / name).mkdir()
        write(tmp_path / name, "d.yaml", node(hidden))
    assert load(tmp_path).node_names() == ["n1", "n2", "n3", "n4"]
    assert load(write(tmp_path, "cluster.txt", node("n6"))).node_names() == ["n6"]  # a file, whatever its name


@pytest.mark.parametrize("name", [None, "kustomization.yaml", "README.md"])
def test_a_directory_without_manifests_is_refused(tmp_path: Path, name: str | None) -> None:
    """A mistyped path must not become an empty cluster."""
    if name:
        (tmp_path / name).write_text("")
    assert problems(tmp_path)[0].startswith(f"{tmp_path}: no .yaml, .yml or .json file in this directory; ")
    assert "no such file or directory" in problems(tmp_path / "absent")[0]


def test_every_problem_of_every_file_is_reported_at_once(tmp_path: Path) -> None:
    """Broken files, wrong fields and duplicate objects: each with its file and line."""
    (tmp_path / "a.yaml").write_text("x: [\n")
    (tmp_path / "c.yaml").write_bytes(b"\xff")
    write(tmp_path, "d.yaml", node("n1"), {**node("n2"), "spec": []})
    write(tmp_path, "e.yaml", node("n3"), node("n1"))
    told = [text.removeprefix(f"{tmp_path}/") for text in problems(tmp_path)]
    assert [text.split(":")[0] for text in told] == ["a.yaml", "c.yaml", "d.yaml", "e.yaml"]
    assert "spec" in told[2]
    assert "described twice, first in" in told[3]
    assert f"{tmp_path}/d.yaml:1" in told[3]


UNREADABLE: dict[str, tuple[bytes | None, str]] = {
    "bytes that are no UTF-8": (b"a: \xff\n", r": not UTF-8 text \(.* at byte 3\)$"),
    "compressed": (gzip.compress(b"{}"), ": compressed by gzip; expected text: gunzip it first$"),
    "broken YAML": (b"a: [\n", ":2: "),
    "no file": (None, ": No such file or directory; "),
}


@pytest.mark.parametrize(("content", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    """The message starts with the path."""
    path = tmp_path / "cluster.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadDocument, match=f"^{path}{said}"):
        list(read_file(path))


@pytest.mark.parametrize(("count", "last"), [(1, "problem 0"), (20, "problem 19"), (21, "and 1 more")])
def test_many_problems_are_cut(count: int, last: str) -> None:
    """An error has all problems, and shows twenty."""
    error = BadDocument(*(f"problem {index}" for index in range(count)))
    assert len(error.problems) == count
    assert str(error).splitlines()[-1] == last
    assert len(str(error).splitlines()) <= 21
