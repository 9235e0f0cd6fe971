"""The corpus `cases/*.yaml`: rows in a short form, read and expanded to full API objects.

`cases/README.md` describes the form. Nothing here knows the program under test: a row is a pod, a cluster and what is
expected. Invariant: a row that does not read as described is an error, never skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml
from msgspec import UNSET, Meta, Struct
from support.objects import builders, owners
from support.objects.short import cluster, pod, share_manager_pod
from support.objects.short_yaml import BadRow, Object, Text, copied, deep_merge, spelled

DIRECTORY: Final = Path(__file__).parents[2] / "cases"
UNCHANGED: Final = "unchanged"
VIRT_LAUNCHER: Final = "virt-launcher"
SHARE_MANAGER: Final = "share-manager"
_NAMESPACES: Final = {
    VIRT_LAUNCHER: builders.NAMESPACE,
    SHARE_MANAGER: builders.LONGHORN_NAMESPACE,
}


class _Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of a file. A key that is not named here is an error."""


class Expect(_Form, frozen=True, kw_only=True):
    """What a row expects. `binds` is None where it does not say; `pending` says that no node may take the pod.

    `affinity` is the whole spec.affinity of the pod afterwards, or UNCHANGED, without a short list. `shortlist` are the
    nodes that are ANDed into its required terms, or their number. `patched` is False if the pod already carries
    everything, the annotation included.
    """

    decision: Literal["required", "preferred", "unchanged"]
    reason: str
    affinity: Object | Literal["unchanged"]
    nodes: tuple[str, ...] = ()
    shortlist: int | frozenset[str] = 0
    warning: str | None = None
    annotation: tuple[str, ...] = ()
    patched: bool = True
    binds: Annotated[frozenset[str], Meta(min_length=1)] | None = None
    pending: bool = False


class _Request(_Form, frozen=True, kw_only=True):
    """What differs in the request of the review."""

    operation: Any = UNSET
    kind: Any = UNSET
    sub_resource: Any = UNSET
    namespace: Any = UNSET
    object: Any = UNSET


class _Row(_Form, frozen=True, kw_only=True):
    """A row, with what its file gives to all rows."""

    name: Annotated[str, Meta(pattern=" ")]
    pod: Object
    expect: Expect
    entry: Literal["virt-launcher", "share-manager"] = "virt-launcher"
    cluster: Object = {}
    mode: Literal["required", "preferred", "off"] = "required"
    opt_in_all: Literal["off", "true", "required", "preferred"] = "off"
    owner: Literal["exists", "absent", "other-uid"] = "exists"
    request: _Request = _Request()
    replay: bool = True
    why: str | None = None


class _File(_Form, frozen=True, kw_only=True):
    """A file: the rule that its rows are about, parts to refer to, what is given to each row, and the rows."""

    rows: Annotated[list[Object], Meta(min_length=1)]
    rule: str = ""
    given: Object = {}
    let: Any = None


@dataclass(frozen=True, kw_only=True, eq=False)  # two rows are never one
class Case:
    """One row: an AdmissionReview, the objects of a cluster, the cluster's settings, and what is expected.

    `replay` is False where no API server could store what the row has; `why` then says so.
    """

    name: str
    source: str
    entry: str
    pod: Object
    objects: tuple[Object, ...]
    mode: str
    opt_in_all: str
    review: Object
    expect: Expect
    replay: bool
    why: str | None

    @property
    def creates_pod(self) -> bool:
        """Whether the review creates a pod, so that a scheduler can be asked afterwards."""
        request = self.review["request"]
        pods = request["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
        return pods and request["operation"] == "CREATE" and not request.get("subResource")

    @property
    def nodes(self) -> tuple[Object, ...]:
        """The Kubernetes nodes of the cluster."""
        return tuple(o for o in self.objects if (o["apiVersion"], o["kind"]) == ("v1", "Node"))


@cache
def load(directory: Path = DIRECTORY) -> tuple[Case, ...]:
    """Every row of every file, by file name, read once in a process.

    Raises:
        BadCorpus: a file or row that does not read as described, or a name that stands twice.
    """
    cases: list[Case] = []
    places: dict[str, str] = {}
    for path in sorted(directory.glob("*.yaml")):
        for case in load_file(path):
            if case.name in places:
                raise BadCorpus(f"{path.name}: row {case.name!r}: the name stands already in {places[case.name]}")
            places[case.name] = path.name
            cases.append(case)
    return tuple(cases)


class BadCorpus(Exception):
    """A row that can't be read; the message says file, row, field, got and expected."""


def load_file(path: Path) -> Iterator[Case]:
    """The rows of one file, expanded.

    Raises:
        BadCorpus: as `load`.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=Text)  # noqa: S506 - a SafeLoader
        file = msgspec.convert(copied(content), _File)
    except (BadRow, yaml.YAMLError, msgspec.ValidationError) as error:
        raise BadCorpus(f"{path.name}: {error}") from error
    for index, row in enumerate(file.rows):
        place = f"{path.name}: row {row.get('name', index + 1)!r}"
        try:
            yield _case(msgspec.convert(_spelled(deep_merge(file.given, row)), _Row), path)
        except (BadRow, msgspec.ValidationError) as error:
            raise BadCorpus(f"{place}: {error}") from error
        except (TypeError, KeyError, AttributeError, ValueError) as error:  # from deep inside an expander
            raise BadCorpus(f"{place}: {type(error).__name__}: {error}") from error


def _spelled(row: Object) -> Object:
    """The row, whose `expect` may have an affinity in short words, and one annotation in place of a list."""
    expect = row.get("expect") or {}
    annotation = expect.get("annotation", ())
    whole = {"annotation": [annotation] if isinstance(annotation, str) else annotation}
    if "affinity" in expect:
        whole["affinity"] = spelled(expect["affinity"])
    return {**row, "expect": {**expect, **whole}}


def _case(row: _Row, path: Path) -> Case:
    if row.replay is (row.why is not None):
        raise BadRow("replay: false and why: a sentence, go together")
    if (row.expect.decision == UNCHANGED) is bool(row.expect.nodes):
        raise BadRow("expect.nodes: expected names where the decision is not unchanged, and only there")
    asked: Object = msgspec.to_builtins(row.request)
    namespace = asked.get("namespace") or _NAMESPACES[row.entry]
    full_pod = (
        share_manager_pod(row.pod) if row.entry == SHARE_MANAGER else pod(row.pod, lambda name: _fixture(path, name))
    )
    review = builders.review(full_pod, **{"namespace": _NAMESPACES[row.entry], **asked})
    described = list(cluster(row.cluster, instance_managers=row.entry == SHARE_MANAGER))
    if "virtualMachines" not in row.cluster:
        described += owners.vms_of([full_pod, *described], namespace)
    case = Case(
        name=row.name,
        source=path.name,
        entry=row.entry,
        pod=full_pod,
        objects=tuple(owners.with_owner(described, review, row.owner)),
        mode=row.mode,
        opt_in_all=row.opt_in_all,
        review=review,
        expect=row.expect,
        replay=row.replay,
        why=row.why,
    )
    _check_scheduling(case)
    return case


def _check_scheduling(case: Case) -> None:
    """Check that `binds`, `pending` or `shortlist` says what a scheduler does with a pod that is created."""
    told = (case.expect.binds is not None) + case.expect.pending + bool(case.expect.shortlist)
    if told != (1 if case.creates_pod and case.replay else 0) and not (told == 1 and not case.replay):
        raise BadRow(
            "expect: one of binds, pending and shortlist for the creation of a pod (optional without replay), else none"
        )


def _fixture(path: Path, name: str) -> Object:
    file = path.parent / "pods" / f"{name}.json"
    if not file.is_file():
        raise BadRow(f"pod.fixture: no file pods/{name}.json")
    found: Object = json.loads(file.read_text(encoding="utf-8"))
    return found
