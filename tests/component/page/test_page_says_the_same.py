"""The page, `status` as table and JSON, metrics, dashboard and alert say the same of the scenes of tests/golden."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.drivers.serving import ROOT
from support.drivers.status_runs import Ran

from webhook import cli
from webhook.app.handler import described_cluster
from webhook.core.opt_in import Policy
from webhook.invocation import Invocation
from webhook.kube.metrics import vm_families
from webhook.page.feed import About, Decisions, Feed

GOLDEN: Final = ROOT / "tests" / "golden"
SCENES: Final = ("fleet", "library", "migration", "misplaced", "stopped", "vtpm")
MONITORING: Final = ROOT / "charts" / "kubevirt-coschedule" / "files" / "monitoring"
BESIDE: Final = {"free", "unknown"}
_SUM: Final = re.compile(r'state=~\\?"([a-z|-]+)\\?"')


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs status over the objects of a scene."""

    def ran(*words: str) -> Ran:
        capsys.readouterr()
        return Ran(cli.main(["status", "-A", *words]), *capsys.readouterr())

    return ran


def page_of(file: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """What the page of these objects gets, and the metric of VMs by state."""
    cluster = described_cluster(file, "longhorn-system", Policy())
    about = About("replica", cluster.origin, Invocation(options=(f"--manifests {file}",)), files=True)
    body = asyncio.run(Feed(cluster.vm_statuses, Decisions(), about).body())
    metric = next(vm_families(cluster.vm_statuses().rows))
    return json.loads(gzip.decompress(body.packed)), {each.labels["state"]: each.value for each in metric.samples}


def ratio(expression: str, metric: dict[str, float]) -> float | None:
    """The value of the dashboard's expression, and of its denominator in the alert, for this metric."""
    (states,) = set(_SUM.findall(expression))
    total = sum(metric[state] for state in states.split("|"))
    return metric["together"] / total if total else None


@pytest.mark.parametrize("scene", SCENES)
def test_table_json_page_and_metrics_are_one(run: Callable[..., Ran], scene: str) -> None:
    """A row is the same item everywhere, free and unknown stand beside the percentage, and nothing counts twice."""
    file = GOLDEN / f"{scene}.yaml"
    report, table = run("-o", "json", "--manifests", str(file)).report, run("--manifests", str(file))
    page, metric = page_of(file)
    items = {(each["namespace"], each["name"]): each for each in report["items"]}
    assert {(each["namespace"], each["name"]): each for each in page["rows"]} == items
    lines = {tuple(line.split()[:2]): line.split() for line in table.out.splitlines()[1:]}
    assert {key: each["state"] in lines[key] for key, each in items.items()} == dict.fromkeys(lines, True)
    counts = {state: count for state, count in report["summary"].items() if state != "stopped"}
    assert page["counts"] == counts == {state: int(count) for state, count in metric.items()}
    said = re.search(r"(\d+) % together(?: of the (\d+) that can be compared)?", table.err)
    assert page["together"] == (int(said[1]) if said else None)
    compared = sum(count for state, count in counts.items() if state not in BESIDE)
    assert said is None or int(said[2] or len(items)) == compared
    dashboard = json.loads((MONITORING / "kubevirt-coschedule.json").read_text(encoding="utf-8"))
    (panel,) = (each for each in dashboard["panels"] if each.get("title") == "Share of VMs together")
    for expression in (panel["targets"][0]["expr"], (MONITORING / "prometheus-rule.yaml").read_text(encoding="utf-8")):
        share = ratio(expression, metric)
        assert page["together"] == (None if share is None else int(100 * share))


def test_the_scenes_differ() -> None:
    """Together they have every state that the objects of files can show without an error."""
    seen = {
        state for scene in SCENES for state, count in page_of(GOLDEN / f"{scene}.yaml")[0]["counts"].items() if count
    }
    assert seen >= {"stuck", "apart", "pending", "free", "together"}


def test_an_alert_about_a_vm_leaves_the_remedy_to_status() -> None:
    """One function makes it: KubeVirt does not start every VM again whose pod is deleted, as an alert had said."""
    rule = yaml.safe_load((MONITORING / "prometheus-rule.yaml").read_text(encoding="utf-8"))
    alerts = [each for group in rule["spec"]["groups"] for each in group["rules"] if "alert" in each]
    told = {each["alert"]: each["annotations"]["description"] for each in alerts if "VM" in each["alert"]}
    assert set(told) >= {"KubevirtCoscheduleVMApart", "KubevirtCoscheduleVMStuck", "KubevirtCoscheduleVMNotRunning"}
    assert not [alert for alert, text in told.items() if re.search("kubectl|virtctl", text)]
