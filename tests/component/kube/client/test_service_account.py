"""The service account of a pod."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import trustme
from kubernetes_asyncio.config import incluster_config
from support.fakes.api_server import ApiServer, Cluster, tls_of
from support.fakes.live import ITEM, write_kubeconfig
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.client import config
from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.component_base.options import BadKubeconfig, Kubeconfig

# As a pod.


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pod's service account, as the kubelet mounts it: a directory with the files token and ca.crt."""
    for module in (config, incluster_config):
        monkeypatch.setattr(module, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


async def test_a_pod_takes_its_service_account(
    service_account: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a kubeconfig the client uses the pod's token, authority and API server, and no proxy.

    A renewed token file counts.
    """
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    cluster.token = "first"  # noqa: S105 - a test's
    server, authority = ApiServer(cluster), trustme.CA()
    server.tls = tls_of(authority)
    authority.cert_pem.write_to_path(str(service_account / "ca.crt"))
    (service_account / "token").write_text("first")
    async with server:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        api = await Api.connect(Kubeconfig())
        try:
            assert api.host == server.url
            assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200
            cluster.token = "second"  # noqa: S105 - a test's
            (service_account / "token").write_text("second")
            assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200
        finally:
            await api.close()


async def test_an_empty_token_file_is_a_problem_in_words(
    service_account: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start it is a BadKubeconfig. Later it is an ApiError, until the file has a token."""
    cluster.token = "first"  # noqa: S105 - a test's
    async with ApiServer(cluster) as server:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        trustme.CA().cert_pem.write_to_path(str(service_account / "ca.crt"))
        (service_account / "token").write_text("")
        with pytest.raises(BadKubeconfig, match="service account is empty"):
            await Api.connect(Kubeconfig())
        monkeypatch.setattr(incluster_config, "TOKEN_REFRESH_PERIOD", timedelta(0))
        (service_account / "token").write_text("first")
        api = await Api.connect(Kubeconfig())
        try:
            (service_account / "token").write_text("")
            with pytest.raises(ApiError, match="service account is empty"):
                await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
            with pytest.raises(ApiError, match="service account is empty"):
                async with api.stream(ITEM, [], silence_seconds=MAX_WAIT_SECONDS):
                    pass
        finally:
            await api.close()


async def test_outside_of_a_pod_calls_take_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless NO_PROXY has the API server, also by a CIDR. Nothing listens at either of the addresses."""
    kubeconfig = Kubeconfig(file=write_kubeconfig(tmp_path / "config", "https://127.1.2.3:1"))
    monkeypatch.setattr(config, "_is_loopback", lambda _: False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:2")
    for no_proxy, asked in (("10.0.0.0/8", "127.0.0.1:2"), ("127.1.0.0/16", "127.1.2.3:1")):
        monkeypatch.setenv("NO_PROXY", no_proxy)
        api = await Api.connect(kubeconfig)
        try:
            with pytest.raises(ApiError, match=f"can't connect to {asked}"):
                await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        finally:
            await api.close()
