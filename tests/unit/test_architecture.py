"""docs/architecture.md shows the code as it is: `python tests/unit/test_architecture.py` writes its generated parts.

Every document names only files, modules, headings and make targets that exist.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import grimp
import pytest

ROOT: Final = Path(__file__).parents[2]
ARCHITECTURE: Final = ROOT / "docs/architecture.md"
PICTURES: Final = ("webhook", "webhook.core")
DOCUMENTS: Final = [
    str(path.relative_to(ROOT))
    for place in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "tests/*/README.md")
    for path in sorted(ROOT.glob(place))
]
_PATH: Final = re.compile(r"(?<![\w./-])(?:webhook|certs|tests|manifests|docs|\.ci)/[\w./*-]*[\w*]")
_DOTTED: Final = re.compile(r"`((?:webhook|certs)(?:\.\w+)+)`")
_LINK: Final = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_MAKE: Final = re.compile(r"`make ([a-z0-9-]+)")
_CODE_BLOCK: Final = re.compile(r"```.*?```", re.DOTALL)


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("webhook", "certs", cache_dir=None)


def _arrows(package: str) -> dict[str, set[str]]:
    """Room of `package` -> the rooms of `package` that it imports. A room is a folder or module directly below."""
    graph = _graph()

    def room(module: str) -> str:
        return ".".join(module.split(".")[: package.count(".") + 2])

    arrows: dict[str, set[str]] = {}
    for module in sorted(graph.modules):
        if module.startswith(f"{package}.") and not module.endswith(".__main__"):
            imported = {room(name) for name in graph.find_modules_directly_imported_by(module)}
            inside = {name for name in imported if name.startswith(f"{package}.")}
            arrows.setdefault(room(module), set()).update(inside - {room(module)})
    return arrows


def _without_shortcuts(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows without those that a longer way implies.

    Raises:
        CycleError: imports run in a circle.
    """
    below: dict[str, set[str]] = {}
    for name in TopologicalSorter(arrows).static_order():
        below[name] = arrows[name].union(*(below[each] for each in arrows[name]))
    return {name: to.difference(*(below[each] for each in to)) for name, to in arrows.items()}


def picture(package: str) -> str:
    """The rooms of a package as a Mermaid flowchart: an arrow leads from a room to a room that it imports."""
    arrows = _without_shortcuts(_arrows(package))
    short = {name: name.removeprefix(f"{package}.") for name in sorted(arrows)}
    lines = [
        f"  {label} --> {' & '.join(short[each] for each in sorted(arrows[name]))}"
        for name, label in short.items()
        if arrows[name]
    ]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def render(text: str) -> str:
    """The document with its generated parts written again."""
    for package in PICTURES:
        title, made = f"picture of {package}", picture(package)
        before, opening, rest = text.partition(f"<!-- {title} -->")
        _, closing, after = rest.partition(f"<!-- /{title} -->")
        text = f"{before}{opening}\n\n{made}\n\n{closing}{after}"
    return text


def test_the_pictures_show_the_imports_of_the_code() -> None:
    """Otherwise run `python tests/unit/test_architecture.py`."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert render(text) == text


def test_an_arrow_that_a_longer_way_implies_is_left_out() -> None:
    """Cli imports app and core, app imports core: two arrows are drawn."""
    arrows = {"cli": {"app", "core"}, "app": {"core"}, "core": set[str]()}
    assert _without_shortcuts(arrows) == {"cli": {"app"}, "app": {"core"}, "core": set()}


def _missing(text: str) -> Iterator[str]:
    for path in _PATH.findall(text):
        if not any(ROOT.glob(path.rstrip("/"))):
            yield path
    for dotted in _DOTTED.findall(text):
        if not _exists(dotted):
            yield dotted
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    yield from (f"make {target}" for target in _MAKE.findall(text) if target not in targets)


def _exists(dotted: str) -> bool:
    """Whether `dotted` is a module, or a name in one."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_module_and_target_that_a_document_names_exists(document: str) -> None:
    """A path in any text, a dotted name in backticks, and `make TARGET`."""
    assert list(_missing((ROOT / document).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        pytest.param("`webhook/core/admit.py`", [], id="file"),
        pytest.param("see webhook/core/admitted.py.", ["webhook/core/admitted.py"], id="no such file"),
        pytest.param("tests/cases/*.yaml", [], id="pattern"),
        pytest.param("tests/cases/*.yml", ["tests/cases/*.yml"], id="pattern without a file"),
        pytest.param("`webhook.core.admit.read`", [], id="name in a module"),
        pytest.param("`webhook.core.admit.reads`", ["webhook.core.admit.reads"], id="no such name"),
        pytest.param("`webhook.nothing`", ["webhook.nothing"], id="no such module"),
        pytest.param("run `make lint`", [], id="target"),
        pytest.param("run `make lent`", ["make lent"], id="no such target"),
    ],
)
def test_what_is_missing_is_found(text: str, missing: list[str]) -> None:
    """The check of documents can fail."""
    assert list(_missing(text)) == missing


def _anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    text = _CODE_BLOCK.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_of_a_document_leads_to_a_file_and_a_heading(document: str) -> None:
    """Links to this repository; none to the world is followed."""
    path = ROOT / document
    for target, anchor in _LINK.findall(_CODE_BLOCK.sub("", path.read_text(encoding="utf-8"))):
        linked = path.parent / target if target else path
        assert linked.exists(), target
        assert not anchor or anchor in _anchors(linked), f"{target}#{anchor}"


def test_the_decisions_have_numbers() -> None:
    """That follow one another."""
    numbers = re.findall(r"^## (\d{4}): ", (ROOT / "docs/decisions.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, len(numbers) + 1))


if __name__ == "__main__":
    ARCHITECTURE.write_text(render(ARCHITECTURE.read_text(encoding="utf-8")), encoding="utf-8")
