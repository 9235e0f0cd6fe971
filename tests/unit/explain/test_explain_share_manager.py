"""explain for share-manager pods: the VMs of the volume, and the decision that follows from them."""

from __future__ import annotations

import json

import pytest
from support.drivers.explaining import a_review
from support.scenarios import cold_start
from support.scenarios.cold_start import PASSPHRASE, encrypted, explain

from webhook.objects.documents import BadDocument


@pytest.mark.parametrize("output", ["text", "yaml", "json"])
@pytest.mark.parametrize("node", [{}, {"nodeName": "node-a"}], ids=["created", "running"])
@pytest.mark.parametrize("reviewed", [False, True], ids=["pod", "review"])
def test_the_passphrase_of_an_encrypted_volume_is_never_printed(
    output: str, node: dict[str, str], *, reviewed: bool
) -> None:
    """The pod has the passphrase; explain prints only its affinity and the webhook's annotation."""
    pod = encrypted(**node)
    ran = explain(
        a_review(pod, namespace="longhorn-system") if reviewed else pod,
        [*cold_start.cluster(), pod],
        output=output,
    )
    assert "share-manager-pvc-disk" in ran.out
    assert PASSPHRASE not in ran.out + ran.err
    assert "PASSPHRASE" not in ran.out + ran.err


def test_an_error_does_not_print_the_passphrase() -> None:
    """The error about a pod that can't be read has the name and the type of the field only."""
    pod = encrypted()
    pod["spec"]["nodeSelector"] = pod["spec"]["containers"][0]["env"]
    with pytest.raises(BadDocument) as refused:
        explain(pod, cold_start.cluster())
    assert "spec.nodeSelector" in str(refused.value)
    assert PASSPHRASE not in str(refused.value)


def test_an_object_that_is_not_a_pod_is_refused_by_core() -> None:
    """The entry is chosen for any object; the error is the one that the webhook gives."""
    review = a_review({"metadata": {"labels": {"longhorn.io/component": "share-manager"}}, "spec": 7})
    with pytest.raises(BadDocument, match="spec"):
        explain(json.loads(json.dumps(review)), cold_start.cluster())
