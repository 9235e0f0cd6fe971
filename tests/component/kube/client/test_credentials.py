"""Certificates and tokens that change while we run."""

from __future__ import annotations

import asyncio
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
import trustme
from kubernetes_asyncio.config import incluster_config
from support.fakes.api_server import ApiServer, Asked, Cluster, Line, until
from support.fakes.live import LONGHORN_NAMESPACE, SHARE_MANAGERS, cluster_of, connected, owners, ref, reflecting
from support.fakes.watching import manager
from support.models.model_api import refusal
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base import api_client
from webhook.component_base.kubeconfig import BadKubeconfig, Kubeconfig
from webhook.core.view import Kind, NoObject
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client import api as client
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.informer.backoff import Cause

MANAGER = {"apiVersion": "longhorn.io/v1beta2", "kind": "ShareManager", **manager("a", 0, "n1")}
ITEM = f"{SHARE_MANAGERS}/a"


class Doorman:
    """A handler that lets in who has the token, and hands the others a 401."""

    def __init__(self, then: Cluster, token: str) -> None:
        self.then = then
        self.token = token

    async def __call__(self, asked: Asked, line: Line) -> None:
        """Look at the token."""
        if asked.headers.get("authorization") == f"Bearer {self.token}":
            await self.then(asked, line)
        else:
            await line.answer(*refusal(401, "Unauthorized"))


@pytest.fixture
def cluster() -> Cluster:
    """One ShareManager."""
    return cluster_of(MANAGER)


# Tokens.


async def test_a_read_with_an_expired_token_takes_the_new_one(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """The token's file has been renewed: the call notices nothing."""
    server.handler = door = Doorman(cluster, "first")
    file = tmp_path / "token"
    file.write_text("first")
    async with connected(server, tmp_path, tokenFile=str(file)) as api:
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200
        door.token = "second"  # noqa: S105 - a test's
        file.write_text("second")
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200
        assert [asked.headers["authorization"] for asked in server.asked] == [
            "Bearer first",
            "Bearer first",
            "Bearer second",
        ]


async def test_a_watch_with_an_expired_token_takes_the_new_one(
    server: ApiServer, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a 401 it goes on from where it was."""
    monkeypatch.setattr(client, "_RENEW_AT_MOST_EVERY_SECONDS", 0.01)
    server.handler = door = Doorman(cluster, "first")
    file = tmp_path / "token"
    file.write_text("first")
    async with connected(server, tmp_path, tokenFile=str(file)) as api, reflecting(api) as cache:
        await until(lambda: cache.synced)
        door.token = "second"  # noqa: S105 - a test's
        server.reset()
        await until(lambda: cache.causes[Cause.UNAUTHORIZED])
        file.write_text("second")
        cluster.collections[SHARE_MANAGERS].put({**MANAGER, **manager("b", 0, "n2")})
        server.asked.clear()
        await until(lambda: "b" in cache.objects)
        assert all("resourceVersion" in asked.query for asked in server.asked)


async def test_a_token_that_no_one_renews_is_not_read_again_and_again(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """Each call tries twice at most; then the server's word is the answer."""
    server.handler = Doorman(cluster, "other")
    async with connected(server, tmp_path, token="mine") as api:  # noqa: S106 - a test's
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 401
        assert len(server.asked) == 2


@pytest.mark.parametrize("content", ["first\n", "  first", "first\r\n"], ids=ascii)
async def test_blanks_around_a_token_are_not_of_it(
    content: str, server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """A file made with echo or an editor ends in a newline; kubectl takes it, and so do we."""
    server.handler = Doorman(cluster, "first")
    file = tmp_path / "token"
    file.write_text(content)
    async with connected(server, tmp_path, tokenFile=str(file)) as api:
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200


@pytest.mark.parametrize("how", ["gone", "empty"])
async def test_a_token_file_that_is_being_written_is_a_401_and_no_more(
    how: str, server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """When it can't be read at that moment, the old token is kept, and it is tried again later."""
    server.handler = door = Doorman(cluster, "first")
    file = tmp_path / "token"
    file.write_text("first")
    async with connected(server, tmp_path, tokenFile=str(file)) as api:
        await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        if how == "gone":
            file.unlink()
        else:
            file.write_text("")
        door.token = "second"  # noqa: S105 - a test's
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 401


# Certificates.


async def test_a_certificate_that_is_not_trusted_is_told_and_mended(cluster: Cluster, tmp_path: Path) -> None:
    """The cluster's authority was renewed: once its certificate is in the kubeconfig's file, all is well."""
    server = ApiServer(cluster)
    authority, other = trustme.CA(), trustme.CA()
    server.tls = tls_of(authority)
    bundle = tmp_path / "ca.crt"
    other.cert_pem.write_to_path(str(bundle))
    async with server, connected(server, tmp_path, authority=bundle) as api, reflecting(api) as cache:
        await until(lambda: cache.causes[Cause.CUT] > 1)
        assert cache.problem.startswith("cut: the API server's certificate is not trusted: ")
        assert "self-signed certificate in certificate chain" in cache.problem or "unable to get" in cache.problem
        with pytest.raises(ApiError, match="the API server's certificate is not trusted"):
            await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        authority.cert_pem.write_to_path(str(bundle))
        await until(lambda: cache.synced)
        assert owners(cache) == {"a": "n1"}
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200


async def test_reads_that_all_fail_of_an_untrusted_certificate_are_all_told(cluster: Cluster, tmp_path: Path) -> None:
    """Ten at once: each is a trouble in words, whoever mends the way meanwhile."""
    server = ApiServer(cluster)
    authority, other = trustme.CA(), trustme.CA()
    server.tls = tls_of(authority)
    bundle = tmp_path / "ca.crt"
    other.cert_pem.write_to_path(str(bundle))
    async with server, connected(server, tmp_path, authority=bundle) as api:
        store = ClusterCache(api, longhorn_namespace=LONGHORN_NAMESPACE)
        loop = asyncio.get_running_loop()
        for round_ in range(5):
            refs = [ref(Kind.NODE, f"n{round_}-{i}") for i in range(10)]
            view = await store.read(store.view(), refs, loop.time() + MAX_WAIT_SECONDS)
            assert [view.reads[each].value for each in refs] == [NoObject.UNAVAILABLE] * 10
            assert all("certificate" in view.read_error(each) for each in refs), [
                view.read_error(each) for each in refs
            ]


async def test_a_handshake_that_fails_breaks_no_watch(cluster: Cluster, tmp_path: Path) -> None:
    """The server's certificate is renewed by another authority: connections that are open are still good."""
    server = ApiServer(cluster)
    authority, other = trustme.CA(), trustme.CA()
    server.tls = tls_of(authority)
    bundle = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(str(bundle))
    async with server, connected(server, tmp_path, authority=bundle) as api, reflecting(api) as cache:
        await until(lambda: cache.synced)
        other.issue_cert("127.0.0.1").configure_cert(server.tls)
        for _ in range(3):
            with pytest.raises(ApiError, match="certificate"):
                await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        cluster.collections[SHARE_MANAGERS].put({**MANAGER, **manager("b", 0, "n2")})
        await until(lambda: "b" in cache.objects)
        assert not cache.causes


def tls_of(authority: trustme.CA) -> ssl.SSLContext:
    """A server's context with a certificate of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


# As a pod.


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pod's service account, as the kubelet mounts it: a directory with the files token and ca.crt."""
    for module in (api_client, incluster_config):
        monkeypatch.setattr(module, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


async def test_a_pod_takes_its_service_account(
    service_account: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a kubeconfig it is its token, its authority and the API server of its environment; renewed as by file."""
    door = Doorman(cluster, "first")
    server, authority = ApiServer(door), trustme.CA()
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
            door.token = "second"  # noqa: S105 - a test's
            (service_account / "token").write_text("second")
            assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200
        finally:
            await api.close()


async def test_a_pod_whose_token_file_is_empty_is_told(
    service_account: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its start by an error; while it runs by a trouble, which passes."""
    door = Doorman(cluster, "first")
    async with ApiServer(door) as server:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        trustme.CA().cert_pem.write_to_path(str(service_account / "ca.crt"))
        (service_account / "token").write_text("")
        with pytest.raises(BadKubeconfig, match="Token file exists but empty"):
            await Api.connect(Kubeconfig())
        monkeypatch.setattr(incluster_config, "TOKEN_REFRESH_PERIOD", timedelta(0))
        (service_account / "token").write_text("first")
        api = await Api.connect(Kubeconfig())
        try:
            (service_account / "token").write_text("")
            with pytest.raises(ApiError, match="Token file exists but empty"):
                await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
            with pytest.raises(ApiError, match="Token file exists but empty"):
                async with api.stream(ITEM, [], silence_seconds=MAX_WAIT_SECONDS):
                    pass
        finally:
            await api.close()
