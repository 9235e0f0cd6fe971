import pytest

from webhook.core.reasons import Reason
from webhook.core.scheduler.status import ALLOWED, Refused, Ruling, Undecided, overall

NO, PERHAPS = Refused(Reason.REPELLED, {}), Undecided(Reason.LABEL_NOT_KEPT, {})


@pytest.mark.parametrize(
    ("rulings", "expected"),
    [
        pytest.param([], ALLOWED, id="no rule"),
        pytest.param([ALLOWED, ALLOWED], ALLOWED, id="all admit"),
        pytest.param([ALLOWED, PERHAPS, ALLOWED], PERHAPS, id="one is not settled"),
        pytest.param([PERHAPS, NO, ALLOWED], NO, id="a refusal after what is not settled"),
        pytest.param([PERHAPS, Undecided(Reason.REPELLED, {})], PERHAPS, id="the first of several"),
    ],
)
def test_several_rules_must_all_admit(rulings: list[Ruling], expected: Ruling) -> None:
    """One refusal refuses; what is not settled is so only where nothing refuses."""
    assert overall(rulings) == expected


def test_a_refusal_ends_it() -> None:
    """What comes after a refusal is not asked."""
    asked = iter([NO, PERHAPS])
    assert overall(asked) == NO
    assert list(asked) == [PERHAPS]


def test_a_ruling_tells_why() -> None:
    """The cause with its names, whether it refuses or is not settled."""
    names = {"rule": "a rule", "key": "app"}
    for ruling in (Refused(Reason.LABEL_NOT_KEPT, names), Undecided(Reason.LABEL_NOT_KEPT, names)):
        assert ruling.why == Reason.LABEL_NOT_KEPT.why(**names)
