from webhook.core import refs
from webhook.core.view import Kind


def test_a_reference_has_a_kind_and_a_name() -> None:
    """Messages and counters show both: the object's name, or the node's for the pods on a node."""
    pods, node = refs.virt_launchers_on("vms", "n1"), refs.node("n1")
    assert (pods.kind, pods.name) == (Kind.VIRT_LAUNCHERS_ON_NODE, "n1")
    assert (node.kind, node.name) == (Kind.NODE, node.key.name)
