import pytest

from webhook.core.causes import short_cause
from webhook.core.reasons import Reason

OF_VMS = [reason for reason in Reason if reason.code.startswith("Vm")]
_HELD = (Reason.VM_NODE_NOT_READY, Reason.VM_POD_TERMINATING)  # a remedy has these, and no row


@pytest.mark.parametrize("reason", Reason, ids=lambda each: each.code)
def test_a_cause_fits_a_column(reason: Reason) -> None:
    """At most 60 characters, whatever the names of the objects are."""
    longest = max((each.code for each in Reason), key=len)
    for because in (longest, "x" * 500):
        assert 0 < len(short_cause(reason.why(because=f"{because}: something"))) <= 60


@pytest.mark.parametrize("reason", [each for each in OF_VMS if each not in _HELD], ids=lambda each: each.code)
def test_each_short_cause_a_row_is_in_words(reason: Reason) -> None:
    """A code stands only for a reason that a row seldom has."""
    assert short_cause(reason.why(because="")) != reason.code


def test_a_preference_names_its_own_reason() -> None:
    """Another text in the annotation adds nothing."""
    assert short_cause(Reason.VM_PREFERRED.why(because="NoRoom: node a is full")) == "only preferred: NoRoom"
    assert short_cause(Reason.VM_PREFERRED.why(because="a text of somebody")) == "only preferred"
