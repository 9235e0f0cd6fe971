from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fakes.views import cluster
from support.objects.builders import (
    longhorn_node,
    node,
    persistent_volume,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
)

from webhook.core import refs
from webhook.core.api.longhorn import Need
from webhook.core.api.meta import NamespacedName
from webhook.core.view import NoObject
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument

Object = dict[str, Any]
WHOLE = [
    persistent_volume_claim("disk", volume_name="pv"),
    persistent_volume_claim("state"),
    persistent_volume_claim("disk", namespace="other"),
    persistent_volume("pv", claim="disk"),
    share_manager("h", state="running"),
    share_manager_pod("h", nodeName="n1"),
    node("n2"),
    node("n1"),
    longhorn_node("n1"),
]


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
    ("method", "there", "name", "absent"),
    [
        pytest.param(
            "persistent_volume_claim",
            NamespacedName("vms", "disk"),
            "disk",
            NamespacedName("none", "disk"),
            id="claims",
        ),
        pytest.param("persistent_volume", "pv", "pv", "disk", id="volumes"),
        pytest.param("share_manager", "h", "h", "pv", id="ShareManagers"),
        pytest.param("share_manager_pod", "h", "share-manager-h", "share-manager-h", id="share-manager pods"),
        pytest.param("node", "n1", "n1", "n3", id="nodes"),
        pytest.param("longhorn_node", "n1", "n1", "n2", id="Longhorn's nodes"),
    ],
)
def test_what_is_described_is_found_and_all_else_is_absent(method: str, there: Any, name: str, absent: Any) -> None:
    """Nothing is ever missing."""
    view = cluster(*WHOLE)
    assert name_of(view.get(getattr(refs, method)(there))) == name
    assert view.get(getattr(refs, method)(absent)) is NoObject.NOT_FOUND


def test_what_is_held_can_be_listed() -> None:
    """For demo: nodes by name."""
    view = cluster(*WHOLE, vms=False)
    assert view.objects.size == len(WHOLE)
    assert view.node_names() == ["n1", "n2"]
    assert view.objects.ignored == Counter()


@pytest.mark.parametrize(
    ("objects", "shown"),
    [
        pytest.param([], False, id="none"),
        pytest.param([longhorn_node("n1")], True, id="in Longhorn's namespace"),
        pytest.param([longhorn_node("n1", namespace="elsewhere")], False, id="in another"),
        pytest.param([node("n1")], False, id="a Kubernetes node is none"),
    ],
)
def test_whether_longhorn_nodes_are_known(objects: list[Object], *, shown: bool) -> None:
    """Without any nodes.longhorn.io, core does not ask for them."""
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


def test_a_claim_without_a_namespace_is_in_default() -> None:
    """It is where kubectl would create it; a node has no namespace, even if the file names one."""
    claim = persistent_volume_claim("disk")
    del claim["metadata"]["namespace"]
    stray = node("n1")
    stray["metadata"]["namespace"] = "vms"
    view = cluster(claim, stray)
    assert name_of(view.get(refs.persistent_volume_claim(NamespacedName("default", "disk")))) == "disk"
    assert name_of(view.get(refs.node("n1"))) == "n1"


@pytest.mark.parametrize(
    ("ignored", "counted"),
    [
        pytest.param({"apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v1 Deployment", id="another kind"),
        pytest.param({"apiVersion": "longhorn.io/v1beta1", "kind": "Node"}, "longhorn.io/v1beta1 Node", id="a version"),
    ],
)
def test_kinds_that_no_rule_reads_are_counted(ignored: Object, counted: str) -> None:
    """They are neither decoded nor stored."""
    view = cluster(ignored, ignored, vms=False)
    assert view.objects.ignored == {counted: 2}
    assert view.objects.size == 0


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


def test_a_single_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    """The path can name a file."""
    assert load(write(tmp_path, "cluster.txt", node("n1"))).node_names() == ["n1"]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([], id="an empty directory"),
        pytest.param(["kustomization.yaml"], id="a kustomization alone"),
        pytest.param(["README.md"], id="no manifests"),
    ],
)
def test_a_directory_without_manifests_is_refused(tmp_path: Path, names: list[str]) -> None:
    """A mistyped path must not become an empty cluster."""
    for name in names:
        (tmp_path / name).write_text("")
    (told,) = problems(tmp_path)
    assert told.startswith(str(tmp_path))
    assert "no .yaml, .yml or .json file" in told


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A path that does not exist must not become an empty cluster."""
    (told,) = problems(tmp_path / "absent")
    assert "no such file or directory" in told


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
