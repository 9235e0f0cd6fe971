import pytest

from webhook.core.reasons import Reason
from webhook.core.scheduler.status import PASSED, Rejected, Status, Unknown, merge

NO, PERHAPS = Rejected(Reason.EXCLUDED_BY_POD, {}), Unknown(Reason.INTER_POD_AFFINITY, {})


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param([], PASSED, id="no rule"),
        pytest.param([PASSED, PASSED], PASSED, id="all admit"),
        pytest.param([PASSED, PERHAPS, PASSED], PERHAPS, id="one is not settled"),
        pytest.param([PERHAPS, NO, PASSED], NO, id="a refusal after what is not settled"),
        pytest.param([PERHAPS, Unknown(Reason.EXCLUDED_BY_POD, {})], PERHAPS, id="the first of several"),
    ],
)
def test_several_rules_must_all_admit(statuses: list[Status], expected: Status) -> None:
    """One refusal refuses; what is not settled is so only where nothing refuses."""
    assert merge(statuses) == expected


def test_a_refusal_ends_it() -> None:
    """What comes after a refusal is not asked."""
    asked = iter([NO, PERHAPS])
    assert merge(asked) == NO
    assert list(asked) == [PERHAPS]


def test_a_ruling_tells_why() -> None:
    """The cause with its names, whether it refuses or is not settled."""
    names = {"which": "affinity", "key": "app"}
    for status in (Rejected(Reason.INTER_POD_AFFINITY, names), Unknown(Reason.INTER_POD_AFFINITY, names)):
        assert status.why == Reason.INTER_POD_AFFINITY.why(**names)
