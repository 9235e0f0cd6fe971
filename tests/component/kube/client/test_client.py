"""Calls to the API server: what a request has, and the words of each failure."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from support.fakes.api_server import ApiServer, Cluster, saying
from support.fakes.http_line import Asked, Line
from support.fakes.live import SHARE_MANAGERS, cluster_of, connected, write_kubeconfig
from support.fakes.watching import manager
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.component_base.options import BadKubeconfig, Kubeconfig

MANAGER = {"apiVersion": "longhorn.io/v1beta2", "kind": "ShareManager", **manager("a", 0, "n1")}
ITEM = f"{SHARE_MANAGERS}/a"
DIRECTORY = "a directory"


@pytest.fixture
def cluster() -> Cluster:
    """One ShareManager."""
    return cluster_of(MANAGER)


async def test_what_is_sent(server: ApiServer, tmp_path: Path) -> None:
    """A request asks for JSON without compression, and has the program's name and version and the token."""
    async with connected(server, tmp_path, token="abc") as api:  # noqa: S106 - a test's
        await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
    headers = server.asked[0].headers
    assert headers["accept"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert headers["user-agent"].startswith("kubevirt-coschedule/")
    assert headers["authorization"] == "Bearer abc"
    assert api.namespace == "vms"


async def test_a_server_without_tls_is_a_problem_in_words(tmp_path: Path) -> None:
    """Another program listens on the port, and does not speak TLS."""

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        file = write_kubeconfig(tmp_path / "kubeconfig", f"https://127.0.0.1:{port}")
        api = await Api.connect(Kubeconfig(file=file))
        try:
            with pytest.raises(
                ApiError, match=rf"^no TLS with 127\.0\.0\.1:{port}: .*(?i:wrong.version.number)"
            ) as caught:
                await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
            assert str(caught.value).isprintable()
        finally:
            await api.close()


async def test_a_server_name_that_does_not_resolve_is_a_problem_in_words(tmp_path: Path) -> None:
    """The problem has the resolver's words."""
    file = write_kubeconfig(tmp_path / "kubeconfig", "http://no-such-host.invalid:6443")
    api = await Api.connect(Kubeconfig(file=file))
    try:
        with pytest.raises(ApiError, match=r"^can't connect to no-such-host\.invalid:6443: "):
            await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
    finally:
        await api.close()


async def test_a_redirect_does_not_take_the_token_elsewhere(server: ApiServer, tmp_path: Path) -> None:
    """No API server sends a redirect. A server that sends one gets no token."""
    async with ApiServer(saying(200, b"<html>")) as elsewhere:
        server.handler = saying(302, b"", location=f"http://127.0.0.2:{elsewhere.port}/")
        async with connected(server, tmp_path, token="secret") as api:  # noqa: S106 - a test's
            with suppress(ApiError):
                await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        assert all("authorization" not in asked.headers for asked in elsewhere.asked)


async def test_silence_is_a_problem_of_its_own(server: ApiServer, tmp_path: Path) -> None:
    """A server that accepts the request and never answers is silent. A server that can't be reached is not."""

    async def silent(_: Asked, line: Line) -> None:
        await line.silence()

    server.handler = silent
    async with connected(server, tmp_path) as api:
        with pytest.raises(ApiError, match=r"^no answer in 0\.3 s$") as caught:
            await api.get(ITEM, seconds=0.3)
        assert caught.value.silent
        with pytest.raises(ApiError, match=r"^nothing came for 0\.3 s$") as caught:
            async with api.stream(SHARE_MANAGERS, [], silence_seconds=0.3):
                pass
        assert caught.value.silent
        await server.stop()
        with pytest.raises(ApiError, match="Connection refused") as caught:
            await api.get(ITEM, seconds=MAX_WAIT_SECONDS)
        assert not caught.value.silent


CONTEXT = (
    "apiVersion: v1\nkind: Config\nusers: []\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]\n"
    "contexts: [{name: a, context: {cluster: c, user: u}}]"
)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (DIRECTORY, "is a directory"),
        ("", "expected a kubeconfig with a usable context"),
        ("word", "not a kubeconfig as"),
        ("[]", "expected a kubeconfig with a usable context"),
        ("{", "expected a kubeconfig with a usable context"),
        ("current-context: x", "expected a kubeconfig with a usable context"),
        (CONTEXT, "it has no current-context: choose one of its contexts by --context"),
        (f"{CONTEXT}\ncurrent-context: ''", "it has no current-context: choose one of its contexts by --context"),
        (f"{CONTEXT}\ncurrent-context: a", "or its context names no user of the file"),
    ],
    ids=["missing", "a directory", "empty", "a word", "a list", "no YAML", "no contexts", "none", "unset", "no user"],
)
async def test_a_kubeconfig_that_can_not_be_used_is_named(content: str | None, words: str, tmp_path: Path) -> None:
    """The problem is one sentence with the file and what is wrong with it."""
    file = tmp_path / "kubeconfig"
    if content == DIRECTORY:
        file.mkdir()
    elif content is not None:
        file.write_text(content)
    with pytest.raises(BadKubeconfig) as caught:
        await Api.connect(Kubeconfig(file=file))
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


async def test_without_any_kubeconfig_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a user whose home has none, and whose variable is empty."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    words = (
        r"^~/\.kube/config: no such file; expected a kubeconfig: name one by --kubeconfig or in the variable KUBECONFIG"
    )
    with pytest.raises(BadKubeconfig, match=words):
        await Api.connect(Kubeconfig())


async def test_an_authority_that_is_not_a_certificate_is_named(tmp_path: Path) -> None:
    """The problem has the file, and what it must contain."""
    bundle = tmp_path / "ca.crt"
    bundle.write_text("no")
    file = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:6443", authority=bundle)
    with pytest.raises(BadKubeconfig, match="expected PEM certificates"):
        await Api.connect(Kubeconfig(file=file))
