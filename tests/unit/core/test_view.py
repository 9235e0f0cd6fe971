import pytest

from webhook.core.api.meta import Key
from webhook.core.view import Gap, Kind, Needs, Ref, unread

NODE, CLAIM = Ref(Kind.NODE, Key("", "n1")), Ref(Kind.PERSISTENT_VOLUME_CLAIM, Key("vms", "disk"))


@pytest.mark.parametrize(
    ("node", "claim", "refs"),
    [
        pytest.param(Gap.UNREAD, Gap.UNREAD, (NODE, CLAIM), id="both"),
        pytest.param(Gap.UNREAD, Gap.ABSENT, (NODE,), id="absent is an answer"),
        pytest.param(Gap.UNAVAILABLE, Gap.UNREAD, (CLAIM,), id="unavailable is an answer"),
        pytest.param(object(), Gap.UNREAD, (CLAIM,), id="an object is an answer"),
    ],
)
def test_what_is_unread_is_needed(node: object, claim: object, refs: tuple[Ref, ...]) -> None:
    """Only references whose answer was UNREAD are asked for, in order."""
    assert unread((NODE, node), (CLAIM, claim)) == Needs(refs)
