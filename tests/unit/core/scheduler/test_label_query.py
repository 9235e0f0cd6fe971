"""The label selector of -l, as kubectl takes it."""

from __future__ import annotations

from typing import Final

import pytest

from webhook.core.scheduler.label_selector import parse_query

LABELS: Final = {"app": "db", "kubevirt.io/domain": "db01", "old": ""}
QUERIES: Final = {
    "app=db": True,
    "app==db": True,
    "app=web": False,
    "app!=web": True,
    "tier!=test": True,
    "app in (web, db)": True,
    "app notin (web,db)": False,
    "tier notin (a)": True,
    "app": True,
    "tier": False,
    "!app": False,
    "!tier": True,
    "old=": True,
    "kubevirt.io/domain=db01,app in (db,web),!tier": True,
    "app=db, tier": False,
}


@pytest.mark.parametrize(("text", "matches"), QUERIES.items(), ids=QUERIES)
def test_a_query_matches_as_in_kubectl(text: str, *, matches: bool) -> None:
    """Also where the label is absent. The text that is sent to the API server has the same meaning."""
    selector = parse_query(text)
    assert selector.matches(LABELS) is matches
    sent = ",".join(map(str, selector.requirements))
    assert parse_query(sent) == selector


@pytest.mark.parametrize("text", ["", "a b", "a=b=c", "=b", "a in b", "a in ()", "a>1", "a,,b", "-a=b", "a=b c"])
def test_another_text_is_refused(text: str) -> None:
    """With examples of what was expected."""
    with pytest.raises(ValueError, match="expected a label selector such as app=db"):
        parse_query(text)
