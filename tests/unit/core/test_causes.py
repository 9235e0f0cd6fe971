import pytest

from webhook.core.causes import short_cause
from webhook.core.reasons import Reason


@pytest.mark.parametrize("reason", Reason, ids=lambda each: each.code)
def test_a_cause_is_in_words_and_fits_a_column(reason: Reason) -> None:
    """At most 60 characters, alone and behind a decision, whatever the names of the objects are."""
    alone = short_cause(reason.why(because="x" * 500))
    assert 0 < len(alone) <= 60
    assert reason.code not in alone
    for decision in (Reason.VM_PREFERRED, Reason.VM_LEFT_UNCHANGED):
        behind = short_cause(decision.why(because=f"{reason.code}: something"))
        assert len(behind) <= 60 or reason.code.startswith("Vm")  # no decision has the reason of a VM


def test_a_preference_names_its_own_reason() -> None:
    """Another text in the annotation adds nothing."""
    full = "only preferred: the node has no room"
    assert short_cause(Reason.VM_PREFERRED.why(because="NoRoom: node a is full")) == full
    assert short_cause(Reason.VM_PREFERRED.why(because="a text of somebody")) == "only preferred"
