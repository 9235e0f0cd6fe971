"""A page of the documentation, with a part that a test makes."""

from __future__ import annotations


def with_part(text: str, name: str, part: str) -> str:
    """The page with this part between the comments of its name."""
    before, start, rest = text.partition(f"<!-- {name}: ")
    opening, _, rest = rest.partition("\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    assert start, f"the page has no line <!-- {name}: ... -->"
    assert end, f"the page has no line <!-- /{name} -->"
    return f"{before}{start}{opening}\n\n{part}\n\n{end}{after}"
