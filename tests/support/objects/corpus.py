"""The corpus `cases/*.yaml`: rows in a short form, read and expanded to full API objects.

`cases/README.md` describes the form. Nothing here knows the program under test: a row is a pod, a cluster and what is
expected. Invariant: a row that does not read as described is an error, never skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from support.objects import builders, owners
from support.objects.short import cluster, pod, share_manager_pod
from support.objects.short_yaml import BadRow, Object, Text, copied, deep_merge, names, only, spelled

DIRECTORY: Final = Path(__file__).parents[2] / "cases"
UNCHANGED: Final = "unchanged"

_FILE_KEYS: Final = frozenset({"rule", "let", "given", "rows"})
_GIVEN_KEYS: Final = frozenset({"entry", "pod", "cluster", "mode", "optInAll", "request"})
_ROW_KEYS: Final = frozenset({"name", *_GIVEN_KEYS, "owner", "expect", "replay", "why"})
_EXPECT_KEYS: Final = frozenset(
    {"decision", "reason", "nodes", "affinity", "shortlist", "warning", "annotation", "patched", "binds", "pending"}
)
_REQUEST_KEYS: Final = frozenset({"operation", "kind", "subResource", "namespace", "object"})
_DECISIONS: Final = ("required", "preferred", UNCHANGED)
_MODES: Final = ("required", "preferred", "off")
_OPT_IN_ALL: Final = ("off", "true", "required", "preferred")
VIRT_LAUNCHER: Final = "virt-launcher"
SHARE_MANAGER: Final = "share-manager"
_NAMESPACES: Final = {
    VIRT_LAUNCHER: builders.NAMESPACE,
    SHARE_MANAGER: builders.LONGHORN_NAMESPACE,
}


@dataclass(frozen=True, kw_only=True)
class Expect:
    """What a row expects. `binds` is None where it does not say; `pending` says that no node may take the pod.

    `affinity` is the whole spec.affinity of the pod afterwards, or UNCHANGED, without a short list. `shortlist` are the
    nodes that are ANDed into its required terms, or their number. `patched` is False if the pod already carries
    everything, the annotation included.
    """

    decision: str
    reason: str
    nodes: tuple[str, ...]
    affinity: Object | str
    shortlist: int | frozenset[str]
    warning: str | None
    annotation: tuple[str, ...]
    patched: bool
    binds: frozenset[str] | None
    pending: bool


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
        content = copied(yaml.load(path.read_text(encoding="utf-8"), Loader=Text))  # noqa: S506 - a SafeLoader
        only(content, _FILE_KEYS, "the file")
        given = only(content.get("given", {}), _GIVEN_KEYS, "given")
        rows = _rows(content)
    except (BadRow, yaml.YAMLError) as error:
        raise BadCorpus(f"{path.name}: {error}") from error
    for index, row in enumerate(rows):
        name = row.get("name") if isinstance(row, dict) else None
        place = f"{path.name}: row {name!r}" if isinstance(name, str) else f"{path.name}: row {index + 1}"
        try:
            yield _case(deep_merge(given, only(row, _ROW_KEYS, "the row")), path)
        except BadRow as error:
            raise BadCorpus(f"{place}: {error}") from error
        except (TypeError, KeyError, AttributeError, ValueError) as error:  # from deep inside an expander
            raise BadCorpus(f"{place}: {type(error).__name__}: {error}") from error


def _rows(content: Mapping[str, Any]) -> list[Any]:
    rows = content.get("rows")
    if not isinstance(rows, list) or not rows:
        raise BadRow("rows: expected a list of rows")
    return rows


def _case(row: Mapping[str, Any], path: Path) -> Case:
    name = row.get("name")
    if not isinstance(name, str) or " " not in name:
        raise BadRow(f"name: got {name!r}, expected a sentence")
    mode = row.get("mode", "required")
    if mode not in _MODES:
        raise BadRow(f"mode: got {mode!r}, expected one of {', '.join(_MODES)} (quoted)")
    opt_in_all = row.get("optInAll", "off")
    if opt_in_all not in _OPT_IN_ALL:
        raise BadRow(f"optInAll: got {opt_in_all!r}, expected one of {', '.join(_OPT_IN_ALL)} (quoted)")
    entry = row.get("entry", VIRT_LAUNCHER)
    if entry not in _NAMESPACES:
        raise BadRow(f"entry: got {entry!r}, expected one of {', '.join(_NAMESPACES)}")
    if not isinstance(row.get("pod"), dict):
        raise BadRow("pod: expected a mapping")
    replay, why = row.get("replay", True), row.get("why")
    if not isinstance(replay, bool) or replay is (why is not None):
        raise BadRow("replay: false and why: a sentence, go together")
    asked = only(row.get("request", {}), _REQUEST_KEYS, "request")
    full_pod = _pod(row["pod"], entry, path)
    asked_namespace = asked.get("namespace") or _NAMESPACES[entry]
    review = builders.review(full_pod, **{"namespace": _NAMESPACES[entry], **asked})
    described = list(cluster(row.get("cluster", {}), instance_managers=entry == SHARE_MANAGER))
    if "virtualMachines" not in row.get("cluster", {}):
        described += owners.vms_of([full_pod, *described], asked_namespace)
    case = Case(
        name=name,
        source=path.name,
        entry=entry,
        pod=full_pod,
        objects=tuple(owners.with_owner(described, review, row.get("owner", owners.EXISTS))),
        mode=mode,
        opt_in_all=opt_in_all,
        review=review,
        expect=_expect(only(row.get("expect", {}), _EXPECT_KEYS, "expect")),
        replay=replay,
        why=why,
    )
    _check_scheduling(case)
    return case


def _pod(row: Mapping[str, Any], entry: str, path: Path) -> Object:
    if entry == SHARE_MANAGER:
        return share_manager_pod(row)
    return pod(row, lambda name: _fixture(path, name))


def _expect(expect: Mapping[str, Any]) -> Expect:
    for key in ("decision", "reason", "affinity"):
        if key not in expect:
            raise BadRow(f"expect.{key}: got nothing")
    if expect["decision"] not in _DECISIONS:
        raise BadRow(f"expect.decision: got {expect['decision']!r}, expected one of {', '.join(_DECISIONS)}")
    nodes = tuple(names(expect.get("nodes", []), "expect.nodes"))
    if (expect["decision"] == UNCHANGED) is bool(nodes):
        raise BadRow("expect.nodes: expected names where the decision is not unchanged, and only there")
    affinity = spelled(expect["affinity"])
    if affinity != UNCHANGED and not isinstance(affinity, dict):
        raise BadRow(f"expect.affinity: got {affinity!r}, expected a v1.Affinity or {UNCHANGED}")
    annotation = expect.get("annotation", [])
    return Expect(
        decision=expect["decision"],
        reason=expect["reason"],
        nodes=nodes,
        affinity=affinity,
        shortlist=_shortlist(expect.get("shortlist", 0)),
        warning=expect.get("warning"),
        annotation=(annotation,) if isinstance(annotation, str) else tuple(annotation),
        patched=expect.get("patched", True),
        binds=frozenset(names(expect["binds"], "expect.binds")) if "binds" in expect else None,
        pending=expect.get("pending", False),
    )


def _shortlist(told: Any) -> int | frozenset[str]:
    return told if isinstance(told, int) else frozenset(names(told, "expect.shortlist"))


def _check_scheduling(case: Case) -> None:
    """Check that `binds`, `pending` or `shortlist` says what a scheduler does with a pod that is created."""
    told = (case.expect.binds is not None) + case.expect.pending + bool(case.expect.shortlist)
    if told != (1 if case.creates_pod and case.replay else 0) and not (told == 1 and not case.replay):
        raise BadRow(
            "expect: one of binds, pending and shortlist for the creation of a pod (optional without replay), else none"
        )
    if case.expect.binds is not None and not case.expect.binds:
        raise BadRow("expect.binds: got no node, expected some, or pending: true")


def _fixture(path: Path, name: str) -> Object:
    file = path.parent / "pods" / f"{name}.json"
    if not file.is_file():
        raise BadRow(f"pod.fixture: no file pods/{name}.json")
    found: Object = json.loads(file.read_text(encoding="utf-8"))
    return found
