"""The README's tables follow the code. `python tests/unit/test_readme.py` writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from webhook.app.settings import SERVE
from webhook.cluster_options import ENVIRONMENT_PREFIX
from webhook.component_base.options import Option
from webhook.core.reasons import Reason
from webhook.reunite.settings import REUNITE
from webhook.telemetry.exposition import Family

_NAME, _EMPHASIS = re.compile(r"{([a-z]+)}"), r"*\1*"
README = Path(__file__).parents[2] / "README.md"


def reasons() -> str:
    """The table of reasons."""
    rows = [f"| `{reason.code}` | {_NAME.sub(_EMPHASIS, reason.template)} |" for reason in Reason]
    return "\n".join(["| Code | Sentence |", "|---|---|", *rows])


def options_table() -> str:
    """The table of serve's options."""
    return (
        f"{_rows(SERVE)}\n\nEach flag is also an environment variable: "
        f"`{ENVIRONMENT_PREFIX}LISTEN` for `--listen`, and so on. The flag wins."
    )


def reunite_table() -> str:
    """The table of reunite's options, without those that every command has."""
    return _rows([option for option in REUNITE if option not in SERVE])


def _rows(options: Sequence[Option]) -> str:
    rows = "\n".join(f"| `{option.opts[0]}` | {_default(option)} | {option.help} |" for option in options)
    return f"| Flag | Default | What it is |\n|---|---|---|\n{rows}"


def metrics() -> str:
    """The table of metrics."""
    rows = [f"| `{each.title}` | {each.kind} | {_labels(each)} | {each.help} |" for each in Family]
    return "\n".join(["| Metric | Type | Labels | What it tells |", "|---|---|---|---|", *rows])


def _labels(family: Family) -> str:
    return ", ".join(f"`{label}`" for label in family.labels)


def _default(option: Option) -> str:
    if option.required:
        return "required"
    return f"`{option.default}`" if isinstance(option.default, str) and option.default else "none"


def render(text: str) -> str:
    """Return the README with current generated parts."""
    tables = {"reasons": reasons(), "options": options_table(), "reunite": reunite_table(), "metrics": metrics()}
    for name, table in tables.items():
        head, _, rest = text.partition(f"<!-- {name}: ")
        opening, _, rest = rest.partition("\n")
        _, closing, tail = rest.partition(f"<!-- /{name} -->")
        text = f"{head}<!-- {name}: {opening}\n\n{table}\n\n{closing}{tail}"
    return text


def test_the_readme_shows_the_reasons_options_and_metrics_that_the_code_has() -> None:
    """Otherwise run `python tests/unit/test_readme.py`."""
    text = README.read_text(encoding="utf-8")
    assert render(text) == text


if __name__ == "__main__":
    README.write_text(render(README.read_text(encoding="utf-8")), encoding="utf-8")
