"""The command explain: find objects by name, or in FILE; explain each; print the explanations.

`subjects` knows what can be explained, and `pod` explains a pod. Invariant: no pod of a VM is guessed. The VM's own
rules are named, and neither kube-scheduler's answer nor the webhook's is foretold.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.events import latest
from webhook.core.observe.remedy import with_message
from webhook.core.opt_in import Policy
from webhook.explain.explanation import PodExplanation, Subject, VMExplanation, render_explanation
from webhook.explain.pod import Context, explain_pod
from webhook.explain.subjects import (
    EXPECTED,
    REVIEW_KIND,
    V1_POD,
    Named,
    namespace_of,
    parse,
    read_subjects,
    request_for_existing,
    request_for_pod,
    request_for_review,
)
from webhook.invocation import Invocation
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument, Document
from webhook.objects.kinds import (
    CONFIG_MAP,
    EVENT,
    POD,
    VIRT_LAUNCHER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    APIResource,
)
from webhook.objects.kubevirt import AnyVM, VirtualMachine
from webhook.objects.objects import Part, parts_of_nodes, parts_of_rows
from webhook.objects.unread import no_share_managers, unread, webhook_settings
from webhook.objects.vm_rows import VMRow, chosen, vm_row, vm_rows, where_else
from webhook.settings import ExplainSettings, namespace_in_words, opt_in_all_unknown, vm_names
from webhook.terminal import to_json
from webhook.vms.collected import exit_code, open_cluster
from webhook.vms.output import told, unread_lines, with_next_start

_NO_USERS: Final = "who else uses the volumes is not known ({problem})"
_NO_PODS: Final = "whether the VM runs, and where, is not known ({problem})"
AnyExplanation = PodExplanation | VMExplanation


def run(settings: ExplainSettings, *, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command with these settings, as `explain_in` does.

    Returns the exit code. Raises UserError as `explain_in` does, and if no cluster can be reached or read.
    """
    # A word that is not a name is an error before a cluster is asked.
    vm_names(settings.names) if settings.chooses else parse(settings.names)
    with open_cluster(settings, stderr) as cluster:
        return explain_in(cluster, settings, stdin=stdin, stdout=stdout, stderr=stderr)


def explain_in(cluster: Cluster, settings: ExplainSettings, *, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Explain the objects that the settings name, or those of their file. Standard error names the objects left out.

    Returns:
        0 if the webhook asks for a node for each object, or would. 1 if it asks for none for one of them. 2 if what
        decides could not be read.

    Raises:
        UserError: an object can't be read, or there is nothing to explain. The others were printed to `stdout`.
    """
    namespace, left_out = settings.namespace or cluster.namespace, ""
    lists, problems = list[str](), list[str]()
    asked: Sequence[Document | Named | VMRow]
    if settings.chooses:
        cluster.collect(parts_of_rows(settings.namespace_of(cluster.namespace)))
        found, lists = webhook_settings(cluster), unread(cluster)
        asked, problems = _chosen(cluster, settings, found.policy)
    else:
        named: Sequence[Document | Named] = parse(settings.names)
        if not named:
            named, left_out = read_subjects(settings.filename or "", stdin)
        cluster.collect(_parts(named, namespace, cluster.longhorn_namespace))
        found, asked = webhook_settings(cluster), named
    context = Context(cluster, namespace, found, Invocation.of(settings))
    explanations: list[AnyExplanation] = []
    for each in asked:
        try:
            explanations.append(_explain(each, context))
        except UserError as error:
            problems += error.problems
    if left_out:
        stderr.write(told([f"left out {left_out}: expected a {EXPECTED}"]))
    unlisted = [*lists, *no_share_managers(cluster)]
    if found.problem and any(each.may_be_opted_in for each in explanations):
        unlisted.append(opt_in_all_unknown(found.problem))
    stderr.write(told(unread_lines(unlisted)))
    with suppress(BrokenPipeError):  # the decisions alone set the exit code, even if no program reads the output
        stdout.write(_render(explanations, settings.output, several=settings.chooses or len(asked) > 1))
        stdout.flush()
    if problems:
        raise BadDocument(*problems)
    return exit_code(
        unknown=unlisted or any(each.is_unread for each in explanations),
        no=not all(each.asks_for_a_node for each in explanations),
    )


def _parts(asked: Sequence[Document | Named], namespace: str, longhorn_namespace: str) -> list[Part]:
    """Return what is read of a live cluster: of the VMs' namespace, and for a pod also what its nodes are judged by.

    VMs in several namespaces, or in any, can use the volume of a share-manager.
    """
    found = {namespace if isinstance(each, Named) else namespace_of(each, namespace) for each in asked}
    rows = parts_of_rows(found.pop() if len(found) == 1 and longhorn_namespace not in found else "")
    kinds = {each.kind.kind if isinstance(each, Named) else each.kind for each in asked}
    return [*rows, *parts_of_nodes(), Part(kind=CONFIG_MAP)] if kinds & {POD.kind, REVIEW_KIND[1]} else rows


def _chosen(cluster: Cluster, settings: ExplainSettings, policy: Policy) -> tuple[list[VMRow], list[str]]:
    """Return the rows of the VMs that the settings choose, and a sentence for each name, or choice, without one.

    Raises:
        UserError: the VMs' pods could not be listed.
    """
    namespace, names = settings.namespace_of(cluster.namespace), vm_names(settings.names)
    every = cluster.ask(lambda _: vm_rows(cluster, policy, settings.selector))
    rows, where = chosen(every, namespace, names), namespace_in_words(namespace)
    existing = {row.vm.name for row in rows}
    absent = [
        f"{cluster.origin}: {name}: no VM of this name in {where}{where_else(name, namespace, every)}"
        for name in names
        if name not in existing
    ]
    if not (rows or absent):
        absent = [f"{cluster.origin}: no VM{settings.whose} in {where}; check --selector, --namespace and --context"]
    return sorted(rows, key=lambda row: row.vm), absent


def _explain(asked: Document | Named | VMRow, context: Context) -> AnyExplanation:
    if isinstance(asked, VMRow):
        is_vm = isinstance(asked.described, VirtualMachine)
        kind, short = (VIRTUAL_MACHINE, "vm") if is_vm else (VIRTUAL_MACHINE_INSTANCE, "vmi")
        return explain_vm(asked, kind, f"{short}/{asked.vm.name}", context)
    if isinstance(asked, Named):
        found = context.cluster.find(asked.kind, asked.name, context.namespace, str(asked))
        if asked.kind is POD:
            return explain_pod(request_for_existing(found, context.namespace, str(asked)), context)
        return explain_vm(_row_of(found, context), asked.kind, str(asked), context)
    stated = asked.api_version, asked.kind
    if stated == REVIEW_KIND:
        return explain_pod(request_for_review(asked, context.namespace), context)
    if stated == V1_POD:
        return explain_pod(request_for_pod(asked.read(Pod), asked.value, context.namespace, asked.place), context)
    kind = VIRTUAL_MACHINE if asked.kind == VIRTUAL_MACHINE.kind else VIRTUAL_MACHINE_INSTANCE
    vm = asked.read(kind.type)
    if not vm.metadata.name:
        raise BadDocument(f"{asked.place}: {kind.kind}: metadata.name: got nothing, expected a name")
    return explain_vm(_row_of(vm, context), kind, asked.place, context)


def _row_of(vm: AnyVM, context: Context) -> VMRow:
    """Return the row of a VM that was named or described, as `vm_rows` makes those that are listed."""
    cluster, key = context.cluster, NamespacedName(vm.metadata.namespace or context.namespace, vm.metadata.name or "")
    pods = () if cluster.unread(VIRT_LAUNCHER_POD) else cluster.virt_launchers_of_vms().get(key, ())
    row = context.ask(lambda _, policy: vm_row(key, pods, vm, cluster, policy))
    message = latest(cluster.objects.of(EVENT).values()).get(key, "")
    return replace(row, status=with_message(row.status, message))


def explain_vm(row: VMRow, kind: APIResource[Any], source: str, context: Context) -> VMExplanation:
    """Return the explanation of a VM. `source`: from where it is, in words."""
    cluster, settings, key = context.cluster, context.webhook, row.vm
    unlisted, users = cluster.unread(VIRT_LAUNCHER_POD), cluster.users_unread()
    item = cluster.ask(lambda view: with_next_start(row, view)).shown_by(context.invocation)
    unread = item.next_start.unread if item.next_start else ()
    return VMExplanation(
        object=Subject(kind=kind.kind, namespace=key.namespace, name=key.name, source=source),
        cluster=cluster.origin,
        settings=settings.sentence,
        notes=[
            *settings.notes,
            *([_NO_PODS.format(problem=unlisted)] if unlisted else []),
            *([_NO_USERS.format(problem=users)] if users else []),
            *unread,
        ],
        hints=item.hints,
        vm=item,
    )


def _render(explanations: Sequence[AnyExplanation], output: str, *, several: bool) -> str:
    if not explanations:
        return ""
    if output == "text":
        return "\n\n".join(render_explanation(explained) for explained in explanations)
    return to_json({"items": explanations} if several else explanations[0])
