"""A toleration tolerates a taint, as in kube-scheduler."""

from typing import Any

import pytest
from msgspec import convert
from support.models import oracle
from support.objects.builders import taint

from webhook.core.api.node import Taint
from webhook.core.api.pod import Toleration
from webhook.core.scheduler.node_rules import tolerates


@pytest.mark.parametrize(
    ("toleration", "text", "tolerated"),
    [
        pytest.param({"operator": "Exists"}, "a=b:NoSchedule", True, id="everything"),
        pytest.param({"key": "a", "operator": "Exists"}, "a=b:NoSchedule", True, id="a key"),
        pytest.param({"key": "b", "operator": "Exists"}, "a=b:NoSchedule", False, id="another key"),
        pytest.param({"key": "a", "value": "b"}, "a=b:NoSchedule", True, id="Equal by default"),
        pytest.param({"key": "a", "value": "b", "operator": ""}, "a=b:NoSchedule", True, id="an empty operator"),
        pytest.param({"key": "a", "value": "c"}, "a=b:NoSchedule", False, id="another value"),
        pytest.param({"key": "a"}, "a:NoSchedule", True, id="no value equals no value"),
        pytest.param({"key": "a", "operator": "Exists", "effect": "NoExecute"}, "a:NoSchedule", False, id="effect"),
        pytest.param({"key": "a", "operator": "Exists", "effect": ""}, "a:NoSchedule", True, id="an empty effect"),
        pytest.param({"key": "a", "operator": "Bogus"}, "a:NoSchedule", False, id="an unknown operator"),
        pytest.param({"key": "a", "operator": "Gt", "value": "4"}, "a=5:NoSchedule", True, id="Gt"),
        pytest.param({"key": "a", "operator": "Gt", "value": "5"}, "a=5:NoSchedule", False, id="Gt equal"),
        pytest.param({"key": "a", "operator": "Lt", "value": "6"}, "a=5:NoSchedule", True, id="Lt"),
        pytest.param({"key": "a", "operator": "Lt", "value": "5"}, "a=5:NoSchedule", False, id="Lt equal"),
        pytest.param({"key": "a", "operator": "Gt", "value": "-6"}, "a=-5:NoSchedule", True, id="negative numbers"),
        pytest.param({"key": "a", "operator": "Gt", "value": "04"}, "a=5:NoSchedule", False, id="a leading zero"),
        pytest.param({"key": "a", "operator": "Lt", "value": "6"}, "a=05:NoSchedule", False, id="in the taint"),
        pytest.param({"key": "a", "operator": "Gt", "value": "-0"}, "a=5:NoSchedule", False, id="minus zero"),
        pytest.param({"key": "a", "operator": "Gt"}, "a=5:NoSchedule", False, id="Gt of nothing"),
        pytest.param(
            {"key": "a", "operator": "Gt", "value": "1"}, "a=9223372036854775807:NoSchedule", True, id="int64's end"
        ),
        pytest.param(
            {"key": "a", "operator": "Gt", "value": "1"}, "a=9223372036854775808:NoSchedule", False, id="past int64"
        ),
        pytest.param(
            {"key": "a", "operator": "Lt", "value": "9223372036854775808"}, "a=1:NoSchedule", False, id="past it too"
        ),
    ],
)
def test_a_toleration_is_read_as_the_scheduler_reads_it(
    toleration: dict[str, Any], text: str, *, tolerated: bool
) -> None:
    """Each row is what toleration.go does; the oracle is held to the same rows."""
    assert tolerates([convert(toleration, Toleration)], convert(taint(text), Taint)) is tolerated
    assert oracle.tolerates(toleration, taint(text)) is tolerated


def test_no_toleration_tolerates_nothing() -> None:
    """One of several is enough, none is not."""
    dedicated = convert(taint("a:NoSchedule"), Taint)
    assert not tolerates([], dedicated)
    assert tolerates([Toleration(key="b", operator="Exists"), Toleration(key="a", operator="Exists")], dedicated)
