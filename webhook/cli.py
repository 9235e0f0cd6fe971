"""The program kubevirt-coschedule: its commands, and what their help says.

A command imports what it needs when it runs, so that help, errors and completion come at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

import click
from click.shell_completion import ShellComplete

from webhook.app.settings import ServeSettings
from webhook.component_base import command_line
from webhook.invocation import EXECUTABLE, PLUGIN, PROGRAM
from webhook.reunite.settings import ReuniteSettings
from webhook.settings import ENVIRONMENT_PREFIX, BundleSettings, CandidatesSettings, ExplainSettings, StatusSettings

COMMANDS: Final = command_line.program(
    PROGRAM,
    executable=EXECUTABLE,
    description="Starts KubeVirt VMs on the node of the Longhorn share-manager that serves their ReadWriteMany disk.",
)
_command: Final = partial(command_line.command, COMMANDS, prefix=ENVIRONMENT_PREFIX)


@_command(
    settings=ServeSettings,
    examples=f"""\
# A cluster that files describe, on loopback only
{PROGRAM} serve --listen 127.0.0.1:9443 \\
  --tls-cert-file tls.crt --tls-private-key-file tls.key \\
  --manifests manifests/examples/cluster""",
    exit_codes="0 after SIGTERM or SIGINT, 1 when a second signal ended it early, 2 for a setting, file, "
    "certificate or address that can't be used.",
)
def serve(settings: ServeSettings) -> int:
    """Run the admission webhook.

    It serves over TLS. The API server posts AdmissionReviews to /mutate/virt-launcher and /mutate/share-manager. The
    webhook lists and watches the objects that it needs, and answers from memory.
    """
    from webhook.app import run  # noqa: PLC0415 - see the module

    return run.serve(settings)


@_command(
    settings=ExplainSettings,
    examples=f"""\
# What decides about the next start of my VM?
{PROGRAM} explain vm/db01 -n prod-vms

# Several objects, in another cluster: why is that pod where it is?
{PROGRAM} explain --context staging \\
  vm/db01 vm/db02 pod/virt-launcher-db03-x7k2p

# Every VM with a label, stopped ones too
{PROGRAM} explain -n prod-vms -l app=db

# A VM that does not exist yet, without any cluster
{PROGRAM} explain -f manifests/examples/virtual-machine.yaml \\
  --manifests manifests/examples/cluster""",
    exit_codes="0 when the webhook asks for a node for every object, or would, 1 when it asks for none for one. 2 "
    "for bad input, for an object that does not exist, where what decides could not be read, and for a namespace of "
    "Longhorn without a ShareManager.",
)
def explain(settings: ExplainSettings) -> int:
    """Show what is decided for a pod or about a VM, and why.

    Of a Pod or an AdmissionReview show what the webhook decides: core decides about it as the server does. Of a
    VirtualMachine or VirtualMachineInstance show the claims, their share-managers and the evidence. Show for which
    node the webhook would ask, and which rules of the VM kube-scheduler and the webhook then check. The pod of the
    next start does not exist yet, so nothing says whether it can run there.

    Name objects of the live cluster, choose VMs by -A and -l as for `status`, or describe objects in FILE. The program
    reads the cluster as kubectl would, and needs no kubectl; with --manifests it reads files instead.
    """
    from webhook.explain import run  # noqa: PLC0415 - see the module

    return run.run(settings, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)


@_command(
    settings=StatusSettings,
    examples=f"""\
# The VMs of all namespaces, with more columns
{PROGRAM} status -A -o wide

# The names of the VMs with a label that are apart, for other programs
{PROGRAM} status -n prod-vms -l app=db --apart -o name

# Is this VM with its share-manager? The exit code says so
{PROGRAM} status db01 -n prod-vms && echo yes""",
    exit_codes="0 when no VM is apart, stuck or not running; of named VMs, when every one is together. 1 when "
    "one is not, or does not run or ask. 2 where something could not be read, for bad input, for a VM that does not "
    "exist, and for a namespace of Longhorn without a ShareManager.",
)
def status(settings: StatusSettings) -> int:
    """Show which VMs are with their share-manager.

    Show each VM that runs and asks for co-scheduling: its node, the node of each share-manager, whether they are
    together, since when, and why. The program reads the cluster as kubectl would.
    """
    from webhook.vms import status as command  # noqa: PLC0415 - see the module

    return command.run(settings, stdout=sys.stdout, stderr=sys.stderr, color=_color())


@_command(
    settings=CandidatesSettings,
    examples=f"""\
# What would the whole cluster gain?
{PROGRAM} candidates -A -o wide

# Opt in all VMs of one namespace: look at the lines, then run them
{PROGRAM} candidates -n prod-vms -o commands
{PROGRAM} candidates -n prod-vms -o commands | sh""",
    exit_codes="0 when the report is complete, 2 where something could not be read. 2 also for bad input, for a VM "
    "that does not exist, for a namespace of Longhorn without a ShareManager, and for a cluster that can't be "
    "reached.",
)
def candidates(settings: CandidatesSettings) -> int:
    """Show which VMs would gain by co-scheduling.

    Show each VM that has a volume with a share-manager and does not ask for co-scheduling, running or stopped. The
    table shows whether the VM is with its share-manager now, and for which node the webhook would ask at its next
    start. A column says which VMs need no share-manager at all. Whether a VM can run on that node is not foretold: -o
    wide names the rules of the VM that are then checked. VMs that would gain come first.

    The webhook need not be installed. The program reads the cluster as kubectl would, and writes nothing; it needs to
    list the pods of all namespaces, and VirtualMachines for those that are stopped.
    """
    from webhook.vms import candidates as command  # noqa: PLC0415 - see the module

    return command.run(settings, stdout=sys.stdout, stderr=sys.stderr, color=_color())


@_command(
    settings=BundleSettings,
    examples=f"""\
# For somebody who helps you
{PROGRAM} bundle --file cluster.json

# What that person does with the file
{PROGRAM} explain vm/db01 -n prod-vms --manifests cluster.json""",
    exit_codes="0 when the file is complete. 2 where something could not be read, which the file says; such a "
    "bundle replaces no file. 2 also for bad input, a cluster that can't be reached, and a file that can't be "
    "written.",
)
def bundle(settings: BundleSettings) -> int:
    """Write a file of the cluster, to examine it elsewhere.

    Write what explain and status read of a cluster into one file, for --manifests. Only the fields that the program
    reads are in the file: no Secret, no environment variable, no cloud-init. The program reads the cluster as kubectl
    would, and writes nothing into the cluster.
    """
    from webhook.bundle import run  # noqa: PLC0415 - see the module

    return run(settings, stdout=sys.stdout, stderr=sys.stderr)


@_command(
    settings=ReuniteSettings,
    examples=f"""\
# What would it do now, and why not yet? Writes nothing
{PROGRAM} reunite -A

# What could you do yourself, now? kubectl create -f - creates it
{PROGRAM} reunite db01 -n prod-vms -o yaml --now

# One run; the CronJob repeats it each ten minutes
{PROGRAM} reunite -A --dry-run=none""",
    exit_codes="0 when nothing failed, 1 when the API server or KubeVirt refused a migration. 2 for "
    "bad input, for a VM that does not exist, for a missing right, and for a cluster that can't be read.",
)
def reunite(settings: ReuniteSettings) -> int:
    """Live-migrate VMs that are apart to their share-manager.

    Live-migrate each VM that has been apart from its share-manager to the share-manager's node. A CronJob repeats the
    run. The program reads the cluster once, decides about each VM, and prints a line for each. It needs KubeVirt 1.6.0
    or newer. It migrates a few VMs at a time, and only where the node has room. Without --dry-run=none it only says
    what it would do. It keeps nothing between two runs, and deletes no migration.
    """
    from webhook.reunite import run  # noqa: PLC0415 - see the module

    return run.run(settings, stdout=sys.stdout, stderr=sys.stderr)


@COMMANDS.command(epilog="Exit codes: 0 when every answer is the expected one, 1 when one is not, 2 for bad input.")
def demo() -> int:
    """Serve the example cluster, and check the answers.

    Start the webhook on loopback, with a throwaway certificate and the example cluster. Send the example
    AdmissionReviews through a real TLS connection, and show the answers, scenario by scenario.
    """
    from webhook.demo import run  # noqa: PLC0415 - see the module

    return run.run(sys.stdout, color=_color())


def _color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def main(words: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit code: 0, 1 where a command documents it, 2 for bad input."""
    return command_line.main(COMMANDS, EXECUTABLE, words)


def complete() -> int:
    """Print the completions for kubectl, which runs `kubectl_complete-coschedule` with the words of the user.

    The last line is Cobra's ShellCompDirective: 0 lets the shell complete names of files, 4 does not.
    """
    *before, begun = sys.argv[1:] or [""]
    found = ShellComplete(COMMANDS, {}, PLUGIN, "").get_completions(before, begun)
    plain = [item for item in found if item.type == "plain"]
    lines = [f"{item.value}\t{item.help or ''}".rstrip() for item in plain]
    click.echo("\n".join([*lines, ":4" if len(plain) == len(found) else ":0"]))
    return 0
