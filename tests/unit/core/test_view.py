import pytest

from webhook.core.api.meta import NamespacedName
from webhook.core.view import Gap, Kind, NeedObjects, Ref, unread

NODE, CLAIM = Ref(Kind.NODE, NamespacedName("", "n1")), Ref(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk"))


@pytest.mark.parametrize(
    ("node", "claim", "refs"),
    [
        pytest.param(Gap.NOT_CACHED, Gap.NOT_CACHED, (NODE, CLAIM), id="both"),
        pytest.param(Gap.NOT_CACHED, Gap.ABSENT, (NODE,), id="absent is an answer"),
        pytest.param(Gap.UNAVAILABLE, Gap.NOT_CACHED, (CLAIM,), id="unavailable is an answer"),
        pytest.param(object(), Gap.NOT_CACHED, (CLAIM,), id="an object is an answer"),
    ],
)
def test_what_is_unread_is_needed(node: object, claim: object, refs: tuple[Ref, ...]) -> None:
    """Only references whose answer was NOT_CACHED are asked for, in order."""
    assert unread((NODE, node), (CLAIM, claim)) == NeedObjects(refs)
