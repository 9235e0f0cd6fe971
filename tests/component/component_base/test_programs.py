"""Both programs as processes: what every command line of ours does with its words, its streams and its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from support.drivers.command_lines import CERTS, EXAMPLES, WEBHOOK, Program, ended
from support.drivers.serving import ROOT
from support.fakes.live import write_kubeconfig
from support.waits import MAX_WAIT_SECONDS

pytestmark = pytest.mark.slow

each_program = pytest.mark.parametrize("program", [WEBHOOK, CERTS], ids=lambda program: program.executable)


@each_program
def test_a_mistake_is_a_sentence_what_was_meant_and_exit_code_2(program: Program) -> None:
    """And where to read on; nothing on standard output."""
    meant = program.prints.split()[0]
    option = {"webhook": "--selector", "certs": "--lifetime"}[program.module]
    for words, kind, wrong, right in (
        ([program.misspelled], "command", program.misspelled, meant),
        ([meant, f"{option}x", "y"], "option", f"{option}x", option),
    ):
        told = program.run(*words)
        _, see, _, sentence = told.stderr.splitlines()
        assert (told.returncode, told.stdout) == (2, "")
        assert sentence == f"Error: No such {kind} {wrong!r}. Did you mean {right!r}?"
        assert see.endswith(" --help' for help.")


@pytest.mark.parametrize("module", ["webhook", "certs"])
def test_a_python_without_the_packages_says_what_to_do(module: str) -> None:
    """As a user's own Python, outside the virtual environment; -S hides what is installed."""
    told = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-S", "-m", module], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(f"Error: {sys.executable} lacks a package of this program, or has an old one: ")
    assert told.stderr.endswith("run `make venv`, and take .venv/bin/python\n")
    assert told.stderr.count("\n") == 1


READ_BY_NOBODY: Final = {
    "help": (WEBHOOK, "--help", 0, ""),
    "a VM that is together": (WEBHOOK, WEBHOOK.prints, 0, "1 VM: 1 together; 100 % together\n"),
    "VMs that are apart": (WEBHOOK, f"status -A -o json --manifests {EXAMPLES}", 1, "5 VMs: "),
    "no node": (WEBHOOK, f"explain win01 -n prod-vms -o json --manifests {EXAMPLES}", 1, ""),
    "help of certs": (CERTS, "--help", 0, ""),
    "files of certs": (CERTS, CERTS.prints, 0, ""),
}


@pytest.mark.parametrize(("program", "words", "code", "summary"), READ_BY_NOBODY.values(), ids=READ_BY_NOBODY)
def test_a_reader_that_has_gone_is_no_error(
    program: Program, words: str, code: int, summary: str, tmp_path: Path
) -> None:
    """As with `| head`, where head was faster. The exit code is of the answer, and standard error is still there."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        told = program.run(*words.format(tmp_path).split(), stdout=writer)
    finally:
        os.close(writer)
    assert (told.returncode, bool(told.stderr), told.stderr.startswith(summary)) == (code, bool(summary), True)


@each_program
@pytest.mark.parametrize("words", ["--help", "{prints}"])
def test_a_full_disk_is_a_sentence(program: Program, words: str, tmp_path: Path) -> None:
    """What was to be shown is not there, so that the exit code says so."""
    with Path("/dev/full").open("w") as full:
        told = program.run(*words.format(prints=program.prints.format(tmp_path)).split(), stdout=full.fileno())
    assert (told.returncode, told.stderr) == (2, "Error: can't write standard output: No space left on device\n")


def test_a_full_disk_for_both_streams_is_an_error_too() -> None:
    """Nothing can be said then; the exit code says it."""
    told = ended(["bash", "-c", f"{sys.executable} -m webhook status --help > /dev/full 2> /dev/full"])
    assert told.returncode == 2


def test_what_a_shell_makes_of_a_command_is_a_file() -> None:
    """`--manifests <(...)` is a pipe, and /dev/null a device."""
    words = "status -n vms --manifests <(cat tests/golden/fleet.yaml) -o name"
    told = ended(["bash", "-c", f"{sys.executable} -m webhook {words}"])
    assert (told.returncode, len(told.stdout.splitlines())) == (1, 7), told.stderr
    told = WEBHOOK.run("status", "--manifests", os.devnull)
    assert (told.returncode, told.stderr[:30]) == (2, f"Error: {os.devnull}: no Pod is de")


@each_program
def test_a_closed_stream_takes_whatever_is_written(program: Program, tmp_path: Path) -> None:
    """As cron and some supervisors start programs."""
    for closed in ("1", "2", "1 2"):
        closing = " ".join(f"{number}>&-" for number in closed.split())
        words = f"{sys.executable} -m {program.module} {program.prints.format(tmp_path)} {closing}"
        told = ended(["bash", "-c", words])
        assert (told.returncode, "Traceback" in told.stderr) == (0, False)


def test_the_name_of_a_file_need_not_be_text(tmp_path: Path) -> None:
    """Linux' names are bytes."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    told = CERTS.run("issue", "--dir", name)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(f"{tmp_path}/\\udcff: tls.crt for localhost")
    told = WEBHOOK.run("status", "--manifests", f"{name}.yaml")
    problem = f"Error: {tmp_path}/\\udcff.yaml: no such file or directory; expected manifests of a cluster\n"
    assert (told.returncode, told.stderr) == (2, problem)


def test_an_interrupt_ends_it_without_a_word(tmp_path: Path) -> None:
    """Ctrl-C, while the program waits for a server that is silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(MAX_WAIT_SECONDS)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", f"http://{address}")
        command = [sys.executable, "-m", "webhook", "explain", "vm/db", "--kubeconfig", str(kubeconfig)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603 - our own programs
        with process, server.accept()[0]:
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=MAX_WAIT_SECONDS)
    assert (process.returncode, told) == (-signal.SIGINT, b"")  # a shell shows 130


@each_program
def test_an_interrupt_of_an_import_is_no_traceback(program: Program, tmp_path: Path) -> None:
    """The import of a package can take a second."""
    (tmp_path / "click.py").write_text("import time\nprint(flush=True)\ntime.sleep(60)\n")
    given = os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    process = subprocess.Popen(  # noqa: S603 - our own programs
        [sys.executable, "-m", program.module], env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()  # the import has begun
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=MAX_WAIT_SECONDS)
    assert (process.returncode, told) == (-signal.SIGINT, b"")


@pytest.mark.parametrize(
    ("environment", "colored"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False)],
    ids=["color", "empty", "NO_COLOR"],
)
def test_a_terminal_gets_colors_unless_it_wants_none(environment: dict[str, str], colored: bool) -> None:  # noqa: FBT001 - a column
    """The program writes to a terminal of its own."""
    ours, its = os.openpty()
    words = ["status", "-A", "--manifests", EXAMPLES]
    given = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | environment
    with subprocess.Popen([sys.executable, "-m", "webhook", *words], cwd=ROOT, env=given, stdout=its) as process:  # noqa: S603 - our own program
        os.close(its)
        shown = b""
        with suppress(OSError):  # Linux' word for a terminal that nobody holds any more
            while piece := os.read(ours, 4096):
                shown += piece
    os.close(ours)
    assert (process.returncode, b"apart" in shown, b"\x1b[" in shown) == (1, True, colored)


@each_program
def test_help_and_mistakes_come_before_every_heavy_import(program: Program) -> None:
    """What takes long to import is for commands that run."""
    command = program.prints.split()[0]
    script = (
        f"import sys; from {program.module} import cli\n"
        f"for words in (['--help'], ['{command}', '--help'], ['{program.misspelled}'], ['--version']):\n"
        "    cli.main(words)\n"
        "    heavy = {'aiohttp', 'asyncio', 'cryptography', 'kubernetes_asyncio', 'msgspec', 'webhook.core', 'yaml'}\n"
        "    print('imported', *heavy & sys.modules.keys())"
    )
    told = ended([sys.executable, "-c", script])
    assert told.returncode == 0
    assert [line for line in told.stdout.splitlines() if line.startswith("imported")] == ["imported"] * 4


OF_FILES: Final = {
    "demo": "demo",
    "serve": f"serve --manifests {EXAMPLES} --tls-cert-file {{0}}/tls.crt --tls-private-key-file {{0}}/tls.key",
    "status": f"status -A --manifests {EXAMPLES}",
    "explain": f"explain -f manifests/examples/virtual-machine.yaml --manifests {EXAMPLES}",
}


@pytest.mark.parametrize("words", OF_FILES.values(), ids=OF_FILES)
def test_a_described_cluster_needs_no_api_client(words: str, tmp_path: Path) -> None:
    """kubernetes-asyncio costs 1 s and 66 MB."""
    script = "import sys; from webhook import cli; cli.main(sys.argv[1:]); print('kubernetes_asyncio' in sys.modules)"
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("no certificate")  # serve ends when it looks at it, which it does last
    told = ended([sys.executable, "-c", script, *words.format(tmp_path).split()])
    assert told.stdout.splitlines()[-1] == "False", told.stderr
    assert words != OF_FILES["serve"] or f"{tmp_path}/tls.crt: " in told.stderr
