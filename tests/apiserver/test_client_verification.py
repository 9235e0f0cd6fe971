"""Client certificates on a real API server: shown as its AdmissionConfiguration says, and asked for by `serve`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import Installed
from support.control_plane.mounted import Authority
from support.objects import builders

API: Final = "apiserver.config.k8s.io/v1"
FAIL_OPEN: Final = "apiserver_admission_webhook_fail_open_count"
WEBHOOK: Final = "virt-launcher.kubevirt-coschedule.io"
CLIENT: Final = "kube-apiserver"
CALLERS: Final = Authority()


@pytest.fixture(scope="module")
def showing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """An API server that shows a certificate to whichever webhook asks for one; ours is on."""
    directory = tmp_path_factory.mktemp("mtls")
    client = CALLERS.issue(common_name=CLIENT)
    (directory / "client.crt").write_bytes(client.certificate)
    (directory / "client.key").write_bytes(client.key)
    (directory / "client-ca.crt").write_bytes(CALLERS.pem)
    user = {"client-certificate": str(directory / "client.crt"), "client-key": str(directory / "client.key")}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    webhooks = {
        "apiVersion": API,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(directory / "webhooks.json"),
    }
    plugins = [{"name": "MutatingAdmissionWebhook", "configuration": webhooks}]
    admission = {"apiVersion": API, "kind": "AdmissionConfiguration", "plugins": plugins}
    (directory / "webhooks.json").write_text(json.dumps(kubeconfig))
    (directory / "admission.json").write_text(json.dumps(admission))
    flag = f"--admission-control-config-file={directory / 'admission.json'}"
    with ControlPlane(directory, scheduler=False, api_flags=[flag]) as plane:
        installed = Installed(plane, directory)
        with installed.serving():
            installed.enable()
            installed.until_called()  # nobody asks for the certificate, and the call is answered
        yield installed


def called(installed: Installed) -> bool:
    """Whether a pod that is created (and is not kept) was decided on; else its call failed open."""
    api = installed.plane.api
    before = api.metric(FAIL_OPEN, name=WEBHOOK)
    probe = builders.virt_launcher_pod(namespace=builders.NAMESPACE, opt_in="required")
    decided = builders.DECISION in api.create(probe, dryRun="All")["metadata"]["annotations"]
    assert api.metric(FAIL_OPEN, name=WEBHOOK) - before == (not decided)
    return decided


@pytest.mark.parametrize("name", [["--client-name", CLIENT], []], ids=["its name", "any name"])
def test_the_api_server_gets_an_answer(showing: Installed, name: Sequence[str]) -> None:
    """The API server shows the client certificate of its configuration, and the webhook answers."""
    with showing.serving("--client-ca-file", showing.directory / "client-ca.crt", *name):
        assert called(showing)


def test_a_caller_of_another_name_is_refused(showing: Installed) -> None:
    """403 with a sentence, which the API server logs: the pod is created as it is."""
    with showing.serving("--client-ca-file", showing.directory / "client-ca.crt", "--client-name", "front-proxy"):
        assert not called(showing)
    assert f"got the client certificate of {CLIENT}, expected that of front-proxy" in showing.plane.api_server.tail()


def test_a_caller_of_another_authority_is_refused(showing: Installed) -> None:
    """In the handshake; our log says why, and the pod is created as it is."""
    other = showing.directory / "other-ca.crt"
    other.write_bytes(Authority().pem)
    with showing.serving("--client-ca-file", other) as server:
        assert not called(showing)
        assert server.until_logged("handshake failed")["reason"] == "CERTIFICATE_VERIFY_FAILED"
