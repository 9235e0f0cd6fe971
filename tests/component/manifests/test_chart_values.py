"""The values of the Helm chart: what each makes of the objects, and that a wrong one is refused with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.chart import ISSUER, all_on, lint, render, template
from support.control_plane.rendering import CERT_MANAGER, CERTS, DEFAULT, INSTALLS, NAME, at, the
from support.drivers.command_lines import values

from certs import cli as certs_cli
from webhook import __version__, cli

ARGUMENTS: Final = "spec.template.spec.containers.0.args"

each_install = pytest.mark.parametrize("install", INSTALLS)


def test_the_image_is_set_in_one_place() -> None:
    """In every Deployment: repository and tag, or the digest. Further labels are on every object."""
    words = ("--set=reunite.enabled=true", "--set=image.repository=example.test/team/webhook")
    assert images(render(*words)) == {f"example.test/team/webhook:{__version__}"}
    assert images(render(*words, "--set=image.tag=9.9.9")) == {"example.test/team/webhook:9.9.9"}
    digest = f"sha256:{'0' * 64}"
    assert images(render(*words, f"--set=image.digest={digest}")) == {f"example.test/team/webhook@{digest}"}
    labelled = render("--set=labels.team=storage", "--set=monitoring.enabled=true")
    assert {item["metadata"]["labels"]["team"] for item in labelled} == {"storage"}


def images(objects: Iterable[Mapping[str, Any]]) -> set[str]:
    """The images of all Deployments."""
    return {at("spec.template.spec.containers.0.image", item) for item in objects if item["kind"] == "Deployment"}


def test_the_programs_take_every_option(tmp_path: Path) -> None:
    """Each value that becomes an option is one that the program knows, and means what it says."""
    own = tmp_path / "values.yaml"
    own.write_text(
        "webhook: {mode: off, shortlist: off, headroom: {memory: 2Gi, cpu: 1}, watchPods: virt-launcher, page: false,\n"
        "  drainSeconds: 40, logFormat: text, logLevel: warning, extraArgs: [--log-admissions-per-second=7]}\n"
        "takeOverScheduler: {enabled: true, names: [one, two]}\n"
        "optInAll: {enabled: true, mode: preferred}\n"
        "reunite: {enabled: true, dryRun: false, extraArgs: [--at-once=1]}\n"
        "certificates: {controller: {lifetime: 12h, renewAt: 1/2, extraArgs: [--retire-seconds=60]}}\n",
        encoding="utf-8",
    )
    objects = render("-f", str(own))
    webhook = the("Deployment", objects)
    assert at("spec.template.spec.terminationGracePeriodSeconds", webhook) == 55
    chosen = values(cli.COMMANDS, *at(ARGUMENTS, webhook))
    told = ("mode", "shortlist", "watch_pods", "page", "drain_seconds", "log_format", "log_level")
    assert [chosen[name] for name in told] == ["off", "off", "virt-launcher", False, 40, "text", "warning"]
    assert (chosen["take_over_scheduler"], chosen["log_admissions_per_second"]) == ({"one", "two"}, 7)
    assert "--headroom=cpu=1,memory=2Gi" in at(ARGUMENTS, webhook)
    (entry,) = (
        each for each in the("MutatingWebhookConfiguration", objects)["webhooks"] if "take-over" in each["name"]
    )
    assert "in ['one', 'two']" in entry["matchConditions"][0]["expression"]
    reunite = values(cli.COMMANDS, *at(ARGUMENTS, the("Deployment", objects, f"{NAME}-reunite")))
    assert (reunite["dry_run"], reunite["at_once"]) == (False, 1)
    annotations = the("MutatingWebhookConfiguration", objects)["metadata"]["annotations"]
    assert chosen["opt_in_all"] == reunite["opt_in_all"] == annotations["kubevirt-scheduler/opt-in-all"] == "preferred"
    kept = values(certs_cli.COMMANDS, *at(ARGUMENTS, the("Deployment", objects, CERTS)))
    assert (kept["retire_seconds"], kept["lifetime"]) == (timedelta(minutes=1), timedelta(hours=12))


def test_the_chart_leaves_longhorns_pods_alone_if_asked() -> None:
    """The configuration then has no entry for them."""
    entries = the("MutatingWebhookConfiguration", render("--set=webhook.steerShareManagers=false"))["webhooks"]
    assert [entry["name"].partition(".")[0] for entry in entries] == ["virt-launcher", "virt-launcher-in-namespace"]


def test_an_issuer_of_the_user_stands_in_for_ours() -> None:
    """Of cert-manager's objects only the Certificate of the webhook is left, and it names that issuer."""
    words = ("name=ours", "kind=ClusterIssuer", "group=cert-manager.io")
    prefix = "--set=certificates.certManager.issuerRef."
    objects = render("--set=certificates.issuer=cert-manager", *(prefix + word for word in words))
    (certificate,) = (item for item in objects if item["apiVersion"].startswith("cert-manager.io/"))
    assert certificate["spec"]["issuerRef"] == {"name": "ours", "kind": "ClusterIssuer", "group": "cert-manager.io"}


def test_the_settings_of_the_alerts_are_values() -> None:
    """Labels for the operator, the address in every alert, and the thresholds."""
    objects = render(
        "--set=monitoring.enabled=true,monitoring.labels.release=ours,monitoring.vmApartShare=0.5",
        "--set=monitoring.vmApartSeconds=7200000,monitoring.runbookUrl=https://example.test/runbook",
    )
    rule = the("PrometheusRule", objects)
    assert (
        rule["metadata"]["labels"]["release"]
        == "ours"
        == the("ServiceMonitor", objects)["metadata"]["labels"]["release"]
    )
    settings, alerts, *_ = rule["spec"]["groups"]
    assert [each["expr"] for each in settings["rules"]] == [
        "vector(0.5)",
        "vector(7200000)",
        "vector(0.25)",
        "vector(1)",
    ]
    pages = {each["annotations"]["runbook_url"].partition("#")[0] for each in alerts["rules"]}
    assert pages == {settings["rules"][-1]["labels"]["url"]} == {"https://example.test/runbook"}


@each_install
def test_helm_test_asks_what_inspect_takes(install: str) -> None:
    """The pod runs `certs inspect`; only with the certificate controller it has an account."""
    (pod,) = (item for item in render(ISSUER[install], test=True) if item["kind"] == "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = pod["spec"]["containers"]
    chosen = values(certs_cli.COMMANDS, *container["args"])
    assert str(chosen["connect"]) == f"{NAME}.{NAME}.svc:443"
    assert pod["spec"].get("serviceAccountName") == (CERTS if install == DEFAULT else None)
    assert pod["spec"]["automountServiceAccountToken"] is (install == DEFAULT)
    if install == CERT_MANAGER:
        assert chosen["dir"] == Path(container["volumeMounts"][0]["mountPath"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set=webhook.mode=always"], "at '/webhook/mode': value must be one of 'required', 'preferred', 'off'"),
        (["--set=webhook.replica=3"], "at '/webhook': additional properties 'replica' not allowed"),
        (["--set=events=true"], "at '/events': got boolean, want object"),
        (["--set=image.digest=abc"], "at '/image/digest': 'abc' does not match pattern"),
        (
            ["--set=certificates.issuer=vault"],
            "at '/certificates/issuer': value must be one of 'controller', 'cert-manager'",
        ),
        (
            ["--set=restartStuck.enabled=true"],
            "restartStuck.enabled is true, but reunite.enabled is false. The program reunite restarts stuck VMs: set",
        ),
    ],
)
def test_a_wrong_value_is_refused(words: Sequence[str], message: str) -> None:
    """The message names the value, and what was expected."""
    said = template(*words)
    assert said.code != 0
    assert message in said.errors


def test_helm_finds_no_fault() -> None:
    """`helm lint --strict`: by default, and with everything on."""
    for words in ([], all_on()):
        said = lint(*words)
        assert said.code == 0, said
