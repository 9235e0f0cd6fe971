"""The answers of /api/candidates: VMs with a share-manager that did not ask, and what a start would decide for them."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.drivers.command_lines import values
from support.drivers.paging import Object, Paged, answer, asking, other_vm, paged, vm
from support.fakes.api_server import ApiServer, until
from support.fakes.live import cluster_of, write_kubeconfig
from support.models.candidate_caches import files
from support.objects import builders
from support.objects.fleets import LATEST, served

from webhook import cli
from webhook.app.background import Background
from webhook.app.filed_candidates import FiledCandidates
from webhook.app.live_sources import live_sources
from webhook.app.settings import ServeSettings
from webhook.core.opt_in import Mode, Policy
from webhook.kube.candidates import OFF
from webhook.page.candidates import ROWS_MAX, CandidateFeed, CandidateQuery
from webhook.page.routes import WATCHERS_MAX

NODES = [made for name in ("node-a", "node-b") for made in (builders.node(name), builders.longhorn_node(name))]


def fleet() -> list[Object]:
    """One VM that asks, and four that do not: one is apart, one said no, one has no share-manager."""
    return [
        *NODES,
        *vm("asks", "node-a", "node-b"),
        *other_vm("mail", "node-a", "node-b"),
        *other_vm("cache", "node-a", "node-a", annotation="false"),
        *other_vm("cold", "node-b", None),
        builders.vm_pod("diskless", opt_in=None, node="node-a"),
    ]


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Paged]:
    """The page of the fleet."""
    async with paged(tmp_path, fleet()) as found:
        yield found


async def candidates(page: Paged, query: str = "limit=50") -> dict[str, Any]:
    """The answer to this query."""
    reply = await answer(page, asking(f"/api/candidates?{query}"))
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    told: dict[str, Any] = json.loads(gzip.decompress(reply.body))
    return told


def names(told: dict[str, Any]) -> list[str]:
    """The VMs of an answer in its order."""
    return [row["name"] for row in told["rows"]]


async def test_each_vm_has_its_state_its_next_start_and_the_line_that_opts_it_in(page: Paged) -> None:
    """VMs that are apart come first. The API server is asked nothing."""
    asked = len(page.server.reads)
    told = await candidates(page)
    assert len(page.server.reads) == asked
    assert names(told) == ["mail", "cold", "cache"]
    mail, cold, cache = told["rows"]
    assert (mail["state"], mail["node"], mail["annotation"], cache["annotation"]) == ("apart", "node-a", None, "false")
    assert mail["next"] == {
        "decision": "required", "nodes": ["node-b"], "reason": "ShareManagerPod", "followed": False,
        "because": "claim mail-root: pod share-manager-mail-root is on node node-b",
    }  # fmt: skip
    assert mail["volumes"] == [
        {"claim": "mail-root", "volume": "mail-root", "node": "node-b", "together": False, "reason": "ShareManagerPod"}
    ]
    assert mail["change"].startswith("kubectl patch virtualmachine mail -n vms --type merge -p ")
    assert (mail["noChange"], cache["change"]) == ("", "")
    assert cache["noChange"] == "the annotation kubevirt-scheduler/co-schedule is false"
    assert cold["state"] == "pending"
    assert (told["follows"], told["known"], told["late"]) == (True, True, [])
    assert (told["total"], told["matching"], told["counts"]["apart"], told["namespaces"]) == (3, 3, 1, ["vms"])


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("limit=0", []),
        ("limit=many", []),
        ("limit=1", ["mail"]),
        ("limit=9&namespace=vms&text=MAIL", ["mail"]),
        ("limit=9&namespace=office", []),
        ("limit=9&text=cache-root", ["cache"]),
        ("limit=9&text=node:NODE-B", ["mail", "cold"]),
        ("limit=9&text=node:node", []),
        ("limit=9&state=together,apart", ["mail", "cache"]),
    ],
)
async def test_the_filter_of_the_page_selects_them_too(page: Paged, query: str, listed: list[str]) -> None:
    """By the same rules. The total stays, so that nobody takes a part for everything."""
    told = await candidates(page, query)
    assert names(told) == listed
    assert (told["total"], told["matching"] >= len(listed)) == (3, True)


async def test_only_the_listed_vms_are_decided_and_each_once_between_two_passes(
    page: Paged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work grows with what a reader looks at."""
    decided: list[str] = []
    decide = page.tracker.candidate
    monkeypatch.setattr(page.tracker, "candidate", lambda row: decided.append(row.name) or decide(row))
    for query in ("limit=0", "limit=1", "limit=2"):
        await candidates(page, query)
    assert decided == ["mail", "cold"]


async def test_a_change_is_there_after_the_next_pass(page: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two passes are 10 s."""
    await candidates(page)
    await page.put(served("cache-root", "node-b", LATEST)[1])
    assert (await candidates(page))["counts"]["apart"] == 1
    monkeypatch.setattr(page.tracker, "_passed_at", 0.0)
    assert (await candidates(page))["counts"]["apart"] == 2


async def test_a_pass_without_a_change_sorts_nothing(page: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order, the counts and the namespaces are those of the pass before."""
    first = await candidates(page)
    before = page.candidates._pass
    monkeypatch.setattr(page.tracker, "_passed_at", 0.0)
    assert {**await candidates(page), "at": ""} == {**first, "at": ""}
    after = page.candidates._pass
    assert before is not None
    assert after is not None
    assert (after is not before, after.rows is before.rows, after.counts is before.counts) == (True, True, True)


async def test_what_is_not_known_is_asked_again(page: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is shown in place of a decision, until there is one."""
    decide = page.tracker.candidate
    monkeypatch.setattr(page.tracker, "candidate", lambda _: "the server is not up to date: nodes")
    row = (await candidates(page, "limit=1"))["rows"][0]
    assert (row["next"], row["unknown"]) == (None, "the server is not up to date: nodes")
    monkeypatch.setattr(page.tracker, "candidate", decide)
    row = (await candidates(page, "limit=1"))["rows"][0]
    assert (row["next"]["decision"], row["unknown"]) == ("required", "")


async def test_pages_that_ask_at_once_share_one_pass(page: Paged, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask."""
    passes = []
    one_pass = page.tracker._pass
    monkeypatch.setattr(page.tracker, "_pass", lambda: passes.append(1) or one_pass())
    told = await asyncio.gather(*(candidates(page) for _ in range(WATCHERS_MAX // 2)))
    assert {len(each["rows"]) for each in told} == {3}
    assert passes == [1]


async def test_nothing_is_said_before_the_pods_were_listed(tmp_path: Path) -> None:
    """The API server does not answer: no count is a count."""
    async with paged(tmp_path, fleet(), away=True) as page:
        told = await candidates(page)
    assert (told["follows"], told["known"], told["rows"]) == (True, False, [])
    assert "virt-launcher pods: not listed yet" in told["late"]


async def test_a_server_that_watches_no_pods_says_so(tmp_path: Path) -> None:
    """There is no source."""
    async with paged(tmp_path, fleet(), follows=False) as page:
        told = await candidates(page)
    assert (told["follows"], told["known"], told["rows"]) == (False, False, [])


async def test_no_answer_has_more_rows_than_a_page_can_show() -> None:
    """Whatever a caller asks for."""
    assert CandidateQuery.parse({"limit": "99999"}).limit == ROWS_MAX
    assert CandidateQuery.parse({"limit": "-1"}).limit == CandidateQuery.parse({"limit": "9" * 400}).limit == 0


@pytest.mark.parametrize("pods", ["all", "virt-launcher", "none"])
async def test_a_live_server_has_them_if_it_watches_pods(tmp_path: Path, pods: str) -> None:
    """From the caches that `serve` has anyway: after they are listed, nothing is read."""
    async with ApiServer(cluster_of(*fleet())) as server:
        given = {"kubeconfig": str(write_kubeconfig(tmp_path / "kubeconfig", server.url)), "watch-pods": pods}
        words = (f"--{name}={value}" for name, value in given.items())
        settings = ServeSettings(
            **values(cli.COMMANDS, "serve", "--tls-cert-file=a", "--tls-private-key-file=b", *words)
        )
        async with live_sources(settings, Background()) as sources:
            await until(lambda: all(check.ok for check in sources.checks()))
            told = json.loads(gzip.decompress(await CandidateFeed(sources.candidates).body(CandidateQuery(limit=9))))
    assert (told["known"], names(told)) == ((False, []) if pods == "none" else (True, ["mail", "cold", "cache"]))
    assert [row["unknown"] for row in told["rows"]] == [""] * len(told["rows"])


# Files.


def _instance(name: str, owner: str | None) -> Object:
    owners = [{"kind": "VirtualMachine", "name": owner}] if owner else []
    meta = {"name": name, "namespace": "vms", "ownerReferences": owners}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": meta}


async def test_files_have_them_too() -> None:
    """With the VirtualMachine of each that the files have; without one there is no line."""
    described = files([*fleet(), _instance("mail", "post"), _instance("cache", None)])
    feed = CandidateFeed(FiledCandidates(described, Policy()))
    told = json.loads(gzip.decompress(await feed.body(CandidateQuery(limit=9))))
    assert names(told) == ["mail", "cold", "cache"]
    assert [row["next"]["decision"] for row in told["rows"]] == ["required", "unchanged", "required"]
    assert [row["change"].split(" -n")[0] for row in told["rows"]] == [
        "kubectl patch virtualmachine post", "kubectl patch virtualmachine cold", "",
    ]  # fmt: skip
    assert json.loads(gzip.decompress(await feed.body(CandidateQuery(limit=9)))) == told


async def test_with_the_mode_off_nothing_is_promised() -> None:
    """A VM that opts in would be left as it is."""
    feed = CandidateFeed(FiledCandidates(files(fleet()), Policy(Mode.OFF)))
    told = json.loads(gzip.decompress(await feed.body(CandidateQuery(limit=9))))
    assert (told["known"], told["late"], told["rows"]) == (False, [OFF], [])
