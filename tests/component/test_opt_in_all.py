"""`status`, `explain` and `candidates` read from the webhook configuration whether the cluster opts in all VMs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.drivers.environment import CLUSTER, remove_settings
from support.drivers.status_runs import Object, objects, running_pod
from support.fakes.static_api import StaticApi

from webhook import cli
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE

Run = Callable[..., dict[str, Any]]
KIND: Final = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
CONFIGURATION: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
POD: Final = running_pod("web", "page")["metadata"]["name"]
NOT_KNOWN: Final = "whether the cluster opts in all VMs is not known, say it with --opt-in-all: "


def _stored(setting: str | None) -> list[Object]:
    """VMs without the annotation, and the configuration of an install with this setting."""
    made = objects()
    for each in made:
        (each["metadata"].get("annotations") or {}).pop(ANNOTATION_CO_SCHEDULE, None)
    annotations = {} if setting is None else {"kubevirt-scheduler/opt-in-all": setting}
    configuration = {**KIND, "metadata": {"name": "kubevirt-coschedule", "annotations": annotations}, "webhooks": []}
    return [*made, configuration]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings and the cluster of the user who runs the tests."""
    remove_settings(monkeypatch, *CLUSTER)


@pytest.fixture
def setting() -> str | None:
    """The cluster's setting."""
    return "preferred"


@pytest.fixture
def api(setting: str | None) -> Iterator[StaticApi]:
    """The API server of the cluster."""
    with StaticApi(_stored(setting), installed=("kubevirt.io", "longhorn.io", KIND["apiVersion"].split("/")[0])) as api:
        yield api


@pytest.fixture(params=["live", "bundle"])
def where(request: pytest.FixtureRequest) -> str:
    """Which cluster the commands read."""
    found: str = request.param
    return found


@pytest.fixture
def run(api: StaticApi, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command. Returns what it knows of the VM `web`, and what it wrote to standard error."""
    kubeconfig, bundle = api.kubeconfig(tmp_path / "kubeconfig", namespace="vms"), tmp_path / "cluster.json"

    def ran(command: str, *words: str) -> dict[str, Any]:
        source = ["--kubeconfig", str(kubeconfig)]
        if where == "bundle":
            cli.main(["bundle", "-o", str(bundle), *source])
            source = ["--manifests", str(bundle)]
        capsys.readouterr()
        names = [f"pod/{POD}"] if command == "explain" else []
        cli.main([command, *names, "-n", "vms", "-o", "json", *source, *words])
        out, err = capsys.readouterr()
        assert out, err
        found = json.loads(out)
        items = found.get("items", [found])
        return {**next((item for item in items if item.get("name", "web") in ("web", POD)), {}), "said": err}

    return ran


@pytest.mark.parametrize(
    ("setting", "words", "asked"),
    [
        ("preferred", (), "preferred"),
        ("true", (), "true"),
        (None, (), None),
        ("off", (), None),
        ("maybe", (), None),
        ("preferred", ("--opt-in-all", "off"), None),
        (None, ("--opt-in-all", "required"), "required"),
    ],
)
def test_the_commands_know_the_setting_of_the_cluster(run: Run, words: tuple[str, ...], asked: str | None) -> None:
    """The option comes first."""
    assert run("status", *words).get("asked") == asked
    assert run("candidates", *words)["optedIn"] is (asked is not None)
    assert (run("explain", *words)["reason"] == "NotOptedIn") is (asked is None)


@pytest.mark.parametrize("command", ["status", "candidates", "explain"])
def test_a_user_who_may_not_read_the_setting_sees_one_sentence(run: Run, api: StaticApi, command: str) -> None:
    """VMs that the setting may opt in count as not opted in, and the option says it."""
    api.refuse(CONFIGURATION, 403, "you may not")
    assert run(command)["said"].count(NOT_KNOWN) == 1
    found = run(command, "--opt-in-all", "required")
    assert NOT_KNOWN not in found["said"]
    assert "web" in json.dumps(found)
