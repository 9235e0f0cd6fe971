"""The image's recipe: what goes in is locked and there, what runs is what the Deployment expects.

No container engine is needed: the Dockerfile is read, instruction by instruction.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from support.control_plane import rendering
from support.control_plane.rendering import CERTS, at, the

from certs import cli as certs_cli
from webhook import cli

ROOT: Final = rendering.ROOT


class Instruction(NamedTuple):
    """Return one instruction of a Dockerfile, with its continued lines joined."""

    word: str
    rest: str


def instructions(text: str) -> list[Instruction]:
    """Return every instruction, without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


RECIPE: Final = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
RUNS: Final = RECIPE[max(place for place, instruction in enumerate(RECIPE) if instruction.word == "FROM") :]
"""The last stage, which is the image."""


def the_only(word: str, among: list[Instruction] = RUNS) -> str:
    """Return the content of the only instruction of this kind."""
    (found,) = (instruction.rest for instruction in among if instruction.word == word)
    return found


def copied_from_here() -> list[str]:
    """Return what is copied from the checkout."""
    copies = [instruction.rest.split() for instruction in RECIPE if instruction.word == "COPY"]
    return [source for words in copies if not words[0].startswith("--from") for source in words[:-1]]


def let_in(path: str) -> bool:
    """Whether .dockerignore, which refuses everything and then names exceptions, has one for this path."""
    refused, *patterns = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert refused == "*"
    return f"!{path}" in patterns


def test_everything_that_is_copied_is_there_and_let_in() -> None:
    """Otherwise the build fails where no engine tests it. And every exception is used."""
    sources = copied_from_here()
    assert {"webhook", "certs", "requirements.lock", "manifests/examples"} <= set(sources)
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert [source for source in sources if not let_in(source)] == []
    assert (ROOT / ".dockerignore").read_text().count("\n!") == len(sources)


def test_packages_are_installed_by_hash_from_the_lock_and_never_built() -> None:
    """Each of them has a hash to check."""
    (install,) = (item.rest for item in RECIPE if item.word == "RUN" and "pip install" in item.rest)
    assert {"--require-hashes", "--only-binary=:all:", "--no-cache-dir"} <= set(install.split())
    assert "-r requirements.lock" in install
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text())
    locked = [entry for entry in entries if not entry.startswith("#")]
    assert len(locked) > 10
    assert [entry for entry in locked if "--hash=sha256:" not in entry] == []


def test_it_runs_as_a_user_that_is_a_number() -> None:
    """A kubelet can't check that a name is not root, and the pods name no user of their own."""
    assert the_only("USER") == "65532:65532"
    assert at("spec.template.spec.securityContext.runAsUser", the("Deployment")) is None


def test_it_starts_the_program_without_a_shell() -> None:
    """Signals reach it, and arguments are not interpreted. The Deployment gives arguments and no command."""
    assert json.loads(the_only("ENTRYPOINT")) == ["python", "-m", "webhook"]
    (command,) = json.loads(the_only("CMD"))
    assert command == at("spec.template.spec.containers.0.args.0", the("Deployment"))
    assert command in cli.COMMANDS.commands


def test_the_controller_is_started_as_the_webhook_is() -> None:
    """Its Deployment names the other program of the image."""
    container = at("spec.template.spec.containers.0", the("Deployment", name=CERTS))
    assert container["command"] == [*json.loads(the_only("ENTRYPOINT"))[:-1], "certs"]
    assert container["args"][0] in certs_cli.COMMANDS.commands
