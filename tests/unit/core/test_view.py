import pytest

from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind, NeedObjects, NoObject, ObjectRef, Ref, VirtLaunchersOnNode, need_objects

NODE, CLAIM = (
    ObjectRef(Kind.NODE, NamespacedName("", "n1")),
    ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk")),
)


@pytest.mark.parametrize(
    ("node", "claim", "refs"),
    [
        pytest.param(NoObject.NOT_CACHED, NoObject.NOT_CACHED, (NODE, CLAIM), id="both"),
        pytest.param(NoObject.NOT_CACHED, NoObject.NOT_FOUND, (NODE,), id="absent is an answer"),
        pytest.param(NoObject.UNAVAILABLE, NoObject.NOT_CACHED, (CLAIM,), id="unavailable is an answer"),
        pytest.param(object(), NoObject.NOT_CACHED, (CLAIM,), id="an object is an answer"),
    ],
)
def test_only_what_is_not_cached_is_needed(node: object, claim: object, refs: tuple[Ref, ...]) -> None:
    """The references whose answer was NOT_CACHED, in order."""
    assert need_objects((NODE, node), (CLAIM, claim)) == NeedObjects(refs)


def test_a_reference_has_a_kind_and_a_name() -> None:
    """Messages and counters show both: the object's name, or the node's for the pods on a node."""
    pods = VirtLaunchersOnNode("vms", "n1")
    assert (pods.kind, pods.name) == (Kind.VIRT_LAUNCHERS_ON_NODE, "n1")
    assert (NODE.kind, NODE.name) == (Kind.NODE, NODE.key.name)
