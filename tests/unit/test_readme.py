"""README.md stays short, and the generated tables and lists of docs/reference follow the code.

`PYTHONPATH=tests python tests/unit/test_readme.py` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import pytest
from support import tested_versions

from certs import cli as certs
from webhook import cli
from webhook.cluster_options import ENVIRONMENT_PREFIX
from webhook.component_base.metrics import MetricFamily
from webhook.core.observe.vm_status import State
from webhook.core.reasons import Reason
from webhook.core.reunite.reports import EventReason
from webhook.telemetry.exposition import Family

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
REFERENCE: Final = ROOT / "docs/reference"
README_LINES: Final = 130
FIRST_SCREEN_LINES: Final = 40
_NAME, _EMPHASIS = re.compile(r"{([a-z]+)}"), r"*\1*"
_COMMANDS: Final = cli.COMMANDS.commands
_CERTS_COMMANDS: Final = certs.COMMANDS.commands


def reasons() -> str:
    """The list of reasons, without the claim that most of them begin with."""
    texts = {reason.code: reason.template.removeprefix("claim {claim}: ") for reason in Reason}
    return "\n".join(f"- `{code}`: {_NAME.sub(_EMPHASIS, text)}" for code, text in texts.items())


def metrics() -> str:
    """The list of metrics, with their types and labels."""
    return "\n".join(f"- `{each.title}` ({each.kind}{_labels(each)}): {each.help}" for each in Family)


def reunite_events() -> str:
    """The table of the Events of `reunite`."""
    rows = [f"| `{each.code}` | {each.kind} | {each.when} |" for each in EventReason]
    return "\n".join(["| Reason | Type | When |", "|---|---|---|", *rows])


def serve() -> str:
    """The list of serve's flags."""
    return (
        f"{of(_COMMANDS['serve'])()}\n\nEach flag is also an environment variable: "
        f"`{ENVIRONMENT_PREFIX}_LISTEN` for `--listen`, and so on. The flag wins."
    )


def of(command: click.Command) -> Callable[[], str]:
    """What makes the list of a command's flags, without those that several commands have."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    common = [each for each in options if _key(each) in COMMON]
    named = ", ".join(map(_names, common))
    page = "../reference/states.md" if command.name == "reunite" else "states.md"
    besides = f"\n\nAnd [options of several commands]({page}#options-of-several-commands): {named}." if common else ""
    return lambda: _flags([each for each in options if each not in common]) + besides


def common_options() -> str:
    """The list of the flags that several commands have. The page of each command names its own of them."""
    return _flags(list(COMMON.values()))


def _key(option: click.Option) -> tuple[str, str | None]:
    return option.opts[0], option.help


def certs_flags() -> str:
    """The flags of each command of the certificate controller."""
    return "\n\n".join(f"### {name}\n\n{of(command)()}" for name, command in _CERTS_COMMANDS.items())


def exit_codes() -> str:
    """The list of the exit codes of all commands."""
    named = {f"kubevirt-coschedule {name}": each for name, each in _COMMANDS.items()}
    named |= {f"python -m certs {name}": each for name, each in _CERTS_COMMANDS.items()}
    return "\n".join(f"- `{name}`. {(each.epilog or '').removeprefix('Exit codes: ')}" for name, each in named.items())


def _flags(options: Sequence[click.Option]) -> str:
    return "\n".join(map(_flag, options))


def _flag(option: click.Option) -> str:
    return f"- {_names(option)}{_default(option)}: {option.help}"


def _names(option: click.Option) -> str:
    return ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))


def _labels(family: MetricFamily) -> str:
    return "".join(f", `{label}`" for label in family.labels)


def _default(option: click.Option) -> str:
    if option.required:
        return " (required)"
    default = ", ".join(option.default) if isinstance(option.default, tuple) else option.default
    return f" (`{default}`)" if isinstance(default, str) and default else ""


def states() -> str:
    """The table of states."""
    rows = [f"| `{state}` | {state.meaning} |" for state in State]
    return "\n".join(["| State | What it means |", "|---|---|", *rows])


_OPTIONS: Final = [
    (f"`{prefix}{command.name}`", each)
    for prefix, commands in (("", _COMMANDS), ("certs ", _CERTS_COMMANDS))
    for command in commands.values()
    for each in command.params
    if isinstance(each, click.Option)
]
_SEVERAL: Final = 2  # commands
COMMON: Final = {
    _key(each): each for _, each in _OPTIONS if sum(_key(each) == _key(other) for _, other in _OPTIONS) >= _SEVERAL
}

TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "reasons": reasons,
    "metrics": metrics,
    "reunite-events": reunite_events,
    "serve": serve,
    "explain": of(_COMMANDS["explain"]),
    "status": of(_COMMANDS["status"]),
    "candidates": of(_COMMANDS["candidates"]),
    "bundle": of(_COMMANDS["bundle"]),
    "reunite": of(_COMMANDS["reunite"]),
    "certs": certs_flags,
    "exit-codes": exit_codes,
    "common-options": common_options,
    "states": states,
    "compatibility": tested_versions.table,
}
PAGES: Final = {
    "reunite": "../concepts/reunite",
    "reunite-events": "states",
    "exit-codes": "states",
    "common-options": "states",
}
"""The page of a table that has not the page's name."""


def page_of(name: str) -> Path:
    """Return the page that has this table."""
    return REFERENCE / f"{PAGES.get(name, name)}.md"


def render(name: str, text: str) -> str:
    """Return a page of docs/reference with its generated part as the code has it now."""
    before, start, rest = text.partition(f"<!-- {name}: ")
    opening, _, rest = rest.partition("\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    assert start, f"the page has no line <!-- {name}: ... -->"
    assert end, f"the page has no line <!-- /{name} -->"
    return f"{before}{start}{opening}\n\n{TABLES[name]()}\n\n{end}{after}"


@pytest.mark.parametrize("name", TABLES)
def test_a_page_of_the_reference_shows_what_the_code_has(name: str) -> None:
    """Otherwise run `PYTHONPATH=tests python tests/unit/test_readme.py`."""
    text = page_of(name).read_text(encoding="utf-8")
    assert render(name, text) == text


def test_the_readme_is_short_and_shows_the_annotation_at_once() -> None:
    """At most 130 lines, and the annotation in the first 40, which is one screen."""
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES
    assert any('kubevirt-scheduler/co-schedule: "true"' in line for line in lines[:FIRST_SCREEN_LINES])


def test_the_readme_names_the_versions_that_the_tests_take() -> None:
    """Of Kubernetes, KubeVirt and Longhorn; docs/reference/compatibility.md has the others."""
    _, _, section = README.read_text(encoding="utf-8").partition("## What was tested")
    section, _, _ = section.partition("\n## ")
    kubernetes = " and ".join(tested_versions.SERVERS.values())
    kubevirt, _, _ = tested_versions.KUBEVIRT.rpartition(".")
    assert f"| Kubernetes | {kubernetes} |" in section
    assert f"| KubeVirt | {kubevirt}, " in section
    assert f"| Longhorn | {tested_versions.LONGHORN}, " in section


if __name__ == "__main__":
    for table in TABLES:
        file = page_of(table)
        file.write_text(render(table, file.read_text(encoding="utf-8")), encoding="utf-8")
