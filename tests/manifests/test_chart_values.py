"""The values of the Helm chart: its own suites by helm-unittest, and options that our programs take."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.control_plane.chart import CHART, ISSUER, all_on, lint, render, suites
from support.control_plane.rendering import CERTS, INSTALLS, NAME, TLS, at, the
from support.drivers.command_lines import values

from certs import cli as certs_cli
from webhook import cli

CONTAINER: Final = "spec.template.spec.containers.0"
ARGUMENTS: Final = f"{CONTAINER}.args"

each_install = pytest.mark.parametrize("install", INSTALLS)


def test_the_suites_of_the_chart_pass() -> None:
    """helm-unittest runs each of them: what a value makes of the objects, and that a wrong one is refused."""
    said = suites()
    assert said.code == 0, said.output
    there = len(list((CHART / "tests").glob("*_test.yaml")))
    assert re.search(rf"^Test Suites: +{there} passed, {there} total$", said.output, re.MULTILINE), said.output


OF_THE_CHART: Final = ("switch", "account", "create")
"""The definitions of its schema that are not types of Kubernetes. The fields of these may be absent."""


def groups(node: Any, schema: Any, default: Any, path: str = "") -> Iterator[tuple[str, set[str], set[str]]]:
    """Each group of values: its name, which of them the schema requires, and which have a default."""
    reference = node.get("$ref", "").rpartition("/")[2]
    if not isinstance(default, dict) or (reference and reference not in OF_THE_CHART):
        return
    of_group = schema["definitions"][reference] if reference else node
    yield path, set(of_group.get("required", ())), set(default)
    for name, value in default.items():
        yield from groups(of_group["properties"][name], schema, value, f"{path}.{name}")


def test_no_value_may_lose_its_default() -> None:
    """Helm drops the default of a value that is null. The chart would make nothing of it, or an open port."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    optional = {"webhook.podDisruptionBudget": {"maxUnavailable"}}  # or minAvailable
    found = [(path[1:], has - required) for path, required, has in groups(schema, schema, defaults)]
    assert {path: lost for path, lost in found if lost} == optional
    assert len(found) > 20


def test_the_programs_take_every_option(tmp_path: Path) -> None:
    """Each value that becomes an option is one that the program knows, and means what it says."""
    own = tmp_path / "values.yaml"
    own.write_text(
        "webhook: {mode: off, shortlist: off, page: false,\n"
        "  drainSeconds: 40, logLevel: warning, extraArgs: [--tls-min-version=VersionTLS13]}\n"
        "optInAll: {enabled: true, mode: preferred}\n"
        "clientVerification: {enabled: true, clientName: kube-apiserver}\n"
        "reunite: {enabled: true, dryRun: none, extraArgs: [--at-once=1]}\n"
        "certificates: {controller: {lifetime: 12h, renewAt: 1/2, extraArgs: [--retire-seconds=60]}}\n",
        encoding="utf-8",
    )
    objects = render("-f", str(own))
    webhook = the("Deployment", objects)
    chosen = values(cli.COMMANDS, *at(ARGUMENTS, webhook))
    told = ("mode", "shortlist", "page", "drain_seconds", "log_level", "client_name", "tls_min_version")
    assert [chosen[name] for name in told] == ["off", "off", False, 40, "warning", "kube-apiserver", "VersionTLS13"]
    mount, volume = at(f"{CONTAINER}.volumeMounts.1", webhook), at("spec.template.spec.volumes.1", webhook)
    assert chosen["client_ca_file"] == Path(mount["mountPath"]) / "ca.crt"
    assert volume == {"name": mount["name"], "configMap": {"name": f"{NAME}-client-ca"}}
    reunite = values(cli.COMMANDS, *at(f"spec.jobTemplate.{ARGUMENTS}", the("CronJob", objects, f"{NAME}-reunite")))
    assert (reunite["dry_run"], reunite["at_once"]) == ("none", 1)
    annotations = the("MutatingWebhookConfiguration", objects)["metadata"]["annotations"]
    assert chosen["opt_in_all"] == reunite["opt_in_all"] == annotations["kubevirt-scheduler/opt-in-all"] == "preferred"
    kept = values(certs_cli.COMMANDS, *at(ARGUMENTS, the("Deployment", objects, CERTS)))
    assert (kept["retire_seconds"], kept["lifetime"]) == (timedelta(minutes=1), timedelta(hours=12))


@each_install
def test_helm_test_runs_its_script_without_an_account(install: str) -> None:
    """The whole script, with the address of the Service; it gets the authority that callers trust, and no key."""
    (pod,) = (item for item in render(ISSUER[install], test=True) if item["kind"] == "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert (pod["spec"]["automountServiceAccountToken"], "volumes" in pod["spec"]) == (False, False)
    (container,) = pod["spec"]["containers"]
    script, address, expected = container["args"]
    assert container["command"] == ["python", "-c"]
    assert script.strip() == (CHART / "files/tests/review.py").read_text(encoding="utf-8").strip()
    assert (address, expected) == (f"{NAME}.{NAME}.svc:443", "answered")
    (authorities,) = container["env"]
    assert authorities["valueFrom"]["secretKeyRef"] == {"name": TLS, "key": "ca.crt"}


def test_helm_finds_no_fault() -> None:
    """`helm lint --strict`: by default, and with everything on."""
    for words in ([], all_on()):
        said = lint(*words)
        assert said.code == 0, said
