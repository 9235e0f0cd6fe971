"""Certificates and tokens that change while the webhook runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import trustme
from support.fakes.api_server import ApiServer, Cluster, tls_of, until
from support.fakes.live import (
    ITEM,
    LONGHORN_NAMESPACE,
    SHARE_MANAGER,
    SHARE_MANAGERS,
    connected,
    owners,
    ref,
    reflecting,
)
from support.fakes.watching import manager
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.client import api as client
from webhook.component_base.client.errors import ApiError
from webhook.core.view import Kind, NoObject
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.informer.faults import Cause

# Tokens.


async def test_a_read_with_an_expired_token_takes_the_new_one(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """The token's file was renewed: the caller gets the answer."""
    cluster.token = "first"  # noqa: S105 - a test's
    file = tmp_path / "token"
    file.write_text("first")
    async with connected(server, tmp_path, tokenFile=str(file)) as api:
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200
        cluster.token = "second"  # noqa: S105 - a test's
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
    """After a 401 the watch goes on from its resourceVersion."""
    monkeypatch.setattr(client, "_RENEW_AT_MOST_EVERY_SECONDS", 0.01)
    cluster.token = "first"  # noqa: S105 - a test's
    file = tmp_path / "token"
    file.write_text("first")
    async with connected(server, tmp_path, tokenFile=str(file)) as api, reflecting(api) as cache:
        await until(lambda: cache.synced)
        cluster.token = "second"  # noqa: S105 - a test's
        server.reset()
        await until(lambda: cache.causes[Cause.UNAUTHORIZED])
        file.write_text("second")
        cluster.collections[SHARE_MANAGERS].put({**SHARE_MANAGER, **manager("b", 0, "n2")})
        server.asked.clear()
        await until(lambda: "b" in cache.objects)
        assert all("resourceVersion" in asked.query for asked in server.asked)


async def test_a_token_that_no_one_renews_is_not_read_again_and_again(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """Each call sends two requests at most. Then the 401 is the answer."""
    cluster.token = "other"  # noqa: S105 - a test\'s
    async with connected(server, tmp_path, token="mine") as api:  # noqa: S106 - a test's
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 401
        assert len(server.asked) == 2


@pytest.mark.parametrize("content", ["first\n", "  first", "first\r\n"], ids=ascii)
async def test_blanks_around_a_token_are_removed(
    content: str, server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """A file from echo or an editor ends in a newline. kubectl accepts that, too."""
    cluster.token = "first"  # noqa: S105 - a test\'s
    file = tmp_path / "token"
    file.write_text(content)
    async with connected(server, tmp_path, tokenFile=str(file)) as api:
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 200


@pytest.mark.parametrize("how", ["gone", "empty"])
async def test_a_token_file_that_is_being_written_is_a_401_and_no_more(
    how: str, server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """If the file can't be read at that moment, the client keeps the old token and tries again later."""
    cluster.token = "first"  # noqa: S105 - a test's
    file = tmp_path / "token"
    file.write_text("first")
    async with connected(server, tmp_path, tokenFile=str(file)) as api:
        await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        if how == "gone":
            file.unlink()
        else:
            file.write_text("")
        cluster.token = "second"  # noqa: S105 - a test's
        assert (await api.get(ITEM, seconds=MAX_WAIT_SECONDS)).status == 401


# Certificates.


async def test_a_renewed_authority_is_trusted_after_one_failure(cluster: Cluster, tmp_path: Path) -> None:
    """The cluster's authority was renewed. After its certificate is in the kubeconfig's file, calls succeed."""
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


async def test_each_read_that_fails_of_an_untrusted_certificate_has_its_problem(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Ten reads at once: each has a problem in words, although one of them already reads the certificates again."""
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
    """The server's certificate is renewed by another authority: open connections stay usable."""
    server = ApiServer(cluster)
    authority, other = trustme.CA(), trustme.CA()
    server.tls = tls_of(authority)
    bundle = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(str(bundle))
    async with server, connected(server, tmp_path, authority=bundle) as api, reflecting(api) as cache:
        await until(lambda: len(server.asked) == 2)  # the list, and the watch
        other.issue_cert("127.0.0.1").configure_cert(server.tls)
        for _ in range(3):
            with pytest.raises(ApiError, match="certificate"):
                await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        cluster.collections[SHARE_MANAGERS].put({**SHARE_MANAGER, **manager("b", 0, "n2")})
        await until(lambda: "b" in cache.objects)
        assert not cache.causes
