"""Kubeconfigs whose credentials can't be used: one sentence of ours for each kind, with nothing secret in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from support.fakes.live import write_kubeconfig

from webhook.component_base.client.api import Api
from webhook.component_base.options import BadKubeconfig, Kubeconfig

SECRET: Final = "secret-refresh-token"  # noqa: S105 - of a test


def user_kubeconfig(file: Path, user: dict[str, Any], **cluster: str) -> Path:
    """A kubeconfig whose user is this one."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "contexts": [{"name": "tests", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:1", **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    file.write_text(json.dumps(content))
    return file


def plugin(*command: str) -> dict[str, Any]:
    """A user with an exec plugin."""
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command[0], "args": list(command[1:])}}


def oidc(**config: str) -> dict[str, Any]:
    """A user with an OIDC provider that does not answer."""
    provider = {"client-id": "c", "client-secret": SECRET, "idp-issuer-url": "http://127.0.0.1:1", **config}
    return {"auth-provider": {"name": "oidc", "config": provider}}


OIDC_PROBLEM: Final = "the OIDC token of its user can't be used, and could not be renewed: log in again"
CREDENTIALS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a plugin that is missing": (plugin("no-such-plugin"), "it names no-such-plugin: no such file or directory"),
    "a plugin that fails": (
        plugin("sh", "-c", f"echo {SECRET} >&2; exit 3"),
        "its exec plugin ended with exit code 3",
    ),
    "a plugin that prints something else": (
        plugin("echo", SECRET),
        "its exec plugin gave no credential that can be used",
    ),
    "a token that is none": (oidc(**{"id-token": SECRET}), OIDC_PROBLEM),
    "a token whose middle is no text": (oidc(**{"id-token": f"a.{SECRET}.c"}), "not a kubeconfig as"),
    "a token whose middle is no JSON": (oidc(**{"id-token": "a.eA==.c"}), OIDC_PROBLEM),
    "a token that can't be renewed": (oidc(**{"refresh-token": SECRET}), OIDC_PROBLEM),
    "neither token": (oidc(), OIDC_PROBLEM),
    "a token file that is missing": (
        {"tokenFile": "/no/such/token"},
        "it names /no/such/token: no such file or directory",
    ),
}


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # of the library's OIDC client
@pytest.mark.parametrize(("user", "problem"), CREDENTIALS.values(), ids=CREDENTIALS)
async def test_a_credential_that_can_not_be_used_is_one_sentence_of_ours(
    user: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    """A library's words have held parts of tokens."""
    file = user_kubeconfig(tmp_path / "kubeconfig", user)
    with pytest.raises(BadKubeconfig) as caught:
        await Api.connect(Kubeconfig(file=file))
    told = str(caught.value)
    assert told.startswith(f"{file}: {problem}")
    assert SECRET not in told
    assert "\n" not in told


async def test_a_context_that_is_not_there_is_one_sentence_of_ours(tmp_path: Path) -> None:
    """As kubectl says it."""
    file = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    with pytest.raises(
        BadKubeconfig, match=f"^{re.escape(str(file))}: it has no context nowhere; expected a kubeconfig"
    ):
        await Api.connect(Kubeconfig(file=file, context="nowhere"))


async def test_a_file_that_is_not_yaml_shows_its_line_and_not_its_text(tmp_path: Path) -> None:
    """The library shows the line, with what is in it."""
    file = tmp_path / "kubeconfig"
    file.write_text(f"a: b\nusers: {SECRET}: [\n")
    with pytest.raises(BadKubeconfig, match="line 2 is not YAML") as caught:
        await Api.connect(Kubeconfig(file=file))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("by_variable", [True, False])
async def test_a_socks_proxy_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_variable: bool
) -> None:
    """It would get an HTTP CONNECT. The password is not shown."""
    proxy = f"socks5://me:{SECRET}@127.0.0.2:1080"
    cluster = {"server": "http://api.example.com:6443"} if by_variable else {"proxy-url": proxy}
    if by_variable:
        monkeypatch.setenv("HTTP_PROXY", proxy)
    file = user_kubeconfig(tmp_path / "kubeconfig", {"token": "t"}, **cluster)
    with pytest.raises(BadKubeconfig, match=r"^socks5://127\.0\.0\.2: a SOCKS proxy can't be used") as caught:
        await Api.connect(Kubeconfig(file=file))
    assert SECRET not in str(caught.value)
