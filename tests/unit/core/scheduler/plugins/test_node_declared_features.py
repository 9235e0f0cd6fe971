"""NodeDeclaredFeatures: what the nodes declare is not known, so a pod that may need a feature is not decided."""

from __future__ import annotations

from typing import Any

import pytest
from support.models.plugin_input import cycle_of

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import node_declared_features

_RULES = {"restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]}
_MOUNTS = {"volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "bindMountOptions": ["noexec"]}]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({}, None, id="a launcher pod"),
        pytest.param({"hostNetwork": True}, None, id="the node's network"),
        pytest.param({"hostUsers": False}, None, id="users of its own"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, None, id="the node's network and users"),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False}, "hostUsers: false beside hostNetwork", id="users without network"
        ),
        pytest.param({"containers": [{"name": "compute"}, {"name": "x", **_RULES}]}, "restartPolicyRules", id="rules"),
        pytest.param({"initContainers": [{"name": "x", **_RULES}]}, "restartPolicyRules", id="rules of an init"),
        pytest.param({"containers": [{"name": "x", **_MOUNTS}]}, "bindMountOptions", id="options of a mount"),
        pytest.param({"containers": [{"name": "x", "volumeMounts": [{"name": "a"}]}]}, None, id="a mount"),
        pytest.param({"containers": None, "initContainers": None}, None, id="no containers"),
    ],
)
def test_a_pod_that_may_need_a_feature_is_not_decided(spec: dict[str, Any], field: str | None) -> None:
    """By the fields from which Kubernetes 1.37 infers a feature for scheduling."""
    found = node_declared_features.pre_filter(cycle_of(**spec))
    assert found == (None if field is None else Reason.NODE_FEATURES.why(field=field))
