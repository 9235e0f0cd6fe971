"""What conditions of nodes.longhorn.io say a node lacks: words of a closed set, whatever the messages have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.api.longhorn import LonghornNodeStatus, Need, near, near_nodes
from webhook.core.api.meta import Condition

TYPES = ["Ready", "RequiredPackages", "KernelModulesLoaded", "NFSClientInstalled", "Multipathd", None]
REASONS = [
    "PackagesNotInstalled",
    "KernelModulesNotLoaded",
    "CheckKernelConfigFailed",
    "NamespaceExecutorErr",
    "NFSClientIsNotFound",
    "NFSClientIsMisconfigured",
    "UnknownOS",
    "",
    None,
]
WORDS = [
    "nfs-common",
    "nfs-client",
    "net-fs/nfs-utils",
    "sys-fs/cryptsetup",
    "cryptsetup",
    "dm_crypt",
    "open-iscsi",
    "x",
]
CONDITIONS = st.builds(
    Condition,
    type=st.sampled_from(TYPES),
    status=st.sampled_from(["True", "False", "Unknown", None]),
    reason=st.sampled_from(REASONS),
    message=st.none() | st.lists(st.sampled_from(WORDS)).map(lambda words: f"Missing packages: [{' '.join(words)}]"),
)


@given(st.lists(CONDITIONS, max_size=4))
def test_the_known_conditions_say_the_same(conditions: list[Condition]) -> None:
    """They are what a cache stores of a node: no message, and the same answers."""
    status = LonghornNodeStatus(conditions=conditions)
    known = status.known()
    assert (known.ready, known.lacks, known.known()) == (status.ready, status.lacks, known)
    assert all(each.message is None for each in known.conditions or ())


@pytest.mark.parametrize(
    ("type_", "reason", "message", "expected"),
    [
        pytest.param(
            "RequiredPackages", "PackagesNotInstalled", "Missing packages: [nfs-common]", True, id="a package"
        ),
        pytest.param("RequiredPackages", None, "nfs-common", True, id="without a reason"),
        pytest.param("RequiredPackages", "NamespaceExecutorErr", "no nfs-common", False, id="it could not look"),
        pytest.param("NFSClientInstalled", "NFSClientIsNotFound", "", True, id="no client"),
        pytest.param("NFSClientInstalled", "CheckKernelConfigFailed", "", False, id="no configuration"),
        pytest.param("NFSClientInstalled", "", None, False, id="no reason"),
        pytest.param("RequiredPackages", "PackagesNotInstalled", "my-nfs-common-2", None, id="a longer word"),
        pytest.param("Multipathd", "MultipathdIsRunning", "nfs-common", None, id="another condition"),
    ],
)
def test_a_node_lacks_the_nfs_client(
    type_: str, reason: str | None, message: str | None, *, expected: bool | None
) -> None:
    """`expected`: whether Longhorn is certain; None if nothing says so."""
    condition = Condition(type=type_, status="False", reason=reason, message=message)
    assert [(lack.need, lack.certain) for lack in LonghornNodeStatus(conditions=[condition]).lacks] == (
        [] if expected is None else [(Need.NFS_CLIENT, expected)]
    )


_OURS = near("node-a", 100)
_TERM = _OURS["podAffinityTerm"]


@pytest.mark.parametrize(
    "term",
    [
        pytest.param(None, id="null"),
        pytest.param("text", id="a text"),
        pytest.param({}, id="empty"),
        pytest.param({"podAffinityTerm": _TERM}, id="without a weight"),
        pytest.param({"weight": 1, "podAffinityTerm": {"topologyKey": "x"}}, id="without a selector"),
        pytest.param({**_OURS, "podAffinityTerm": {**_TERM, "namespaces": ["vms"]}}, id="of another namespace"),
        pytest.param({**_OURS, "podAffinityTerm": {**_TERM, "topologyKey": "zone"}}, id="of another topology"),
    ],
)
def test_a_term_of_somebody_else_names_no_node(term: Any) -> None:
    """The terms after it still count."""
    assert list(near_nodes([term, near("node-b", 50)])) == ["node-b"]
