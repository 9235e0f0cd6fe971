"""The objects of a cluster: what is read and written of an API server, and the sentence for each of its refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer
from support.drivers.command_lines import values
from support.fakes import certs_cluster
from support.fakes.certs_cluster import NOW, POLICY, configuration, secret
from support.fakes.live import write_kubeconfig

from certs import cli, plan
from certs.cluster import Conflict, connect_objects
from certs.settings import ControllerSettings
from certs.state import ClusterState
from webhook.component_base.client.transport import ApiError

Answer = Callable[[web.Request], web.Response]


def absent(_: web.Request) -> web.Response:
    """A Secret that does not exist."""
    return web.json_response({"kind": "Status"}, status=404)


def answer(body: bytes) -> Answer:
    """Answers with this body."""
    return lambda _: web.Response(body=body)


@pytest.fixture
def taken() -> list[Any]:
    """The path and the body of each write."""
    return []


@pytest.fixture
async def served(aiohttp_server: AiohttpServer, taken: list[Any], tmp_path: Path) -> Callable[..., Any]:
    """Serve a configuration and Secrets that answer so; return the settings for them."""

    async def serve(secrets: Answer = absent, found: int = 200, written: int = 200) -> ControllerSettings:
        async def configured(_: web.Request) -> web.Response:
            return web.json_response(configuration(b""), status=found)

        async def one_secret(request: web.Request) -> web.Response:
            return secrets(request)

        async def write(request: web.Request) -> web.Response:
            taken.append((request.path_qs.partition("=")[0], json.loads(await request.read())))
            return web.json_response({"kind": "Status", "message": "exceeded quota"}, status=written)

        app = web.Application()
        app.router.add_get("/api/v1/namespaces/kubevirt-coschedule/secrets/{name}", one_secret)
        app.router.add_get("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}", configured)
        app.router.add_patch("/{path:.*}", write)
        server = await aiohttp_server(app)
        kubeconfig = write_kubeconfig(tmp_path / "config", str(server.make_url("")).rstrip("/"))
        return ControllerSettings(**values(cli.COMMANDS, "keep", f"--kubeconfig={kubeconfig}"))

    return serve


async def read(settings: ControllerSettings) -> ClusterState:
    """Read the objects once."""
    async with connect_objects(settings) as objects:
        return await objects.read()


async def test_what_exists_is_read(served: Callable[..., Any]) -> None:
    """A Secret that does not exist has no version."""
    seen = await read(await served())
    assert (seen.served.version, seen.configuration.version, seen.configuration.bundles) == (None, "1", (b"",))
    pair = certs_cluster.pair()
    seen = await read(await served(lambda _: web.json_response(secret(pair))))
    assert (seen.served.pair, seen.authority.version) == (pair, "1")


READ: Final = "GET /api/v1/namespaces/kubevirt-coschedule/secrets/kubevirt-coschedule-tls: "
FORBIDDEN: Final = {"kind": "Status", "message": 'secrets is forbidden: User "x" cannot get it'}
NO_SECRETS: Final = (
    *(b"", b"[]", b"{}", b'"\xff"', b"[" * 9_999, b'{"metadata":{}}'),
    b'{"data":1,"metadata":{"resourceVersion":"1"}}',
)
TROUBLES: Final[dict[str, tuple[Answer, int, str]]] = {
    "no configuration": (absent, 404, "MutatingWebhookConfiguration kubevirt-coschedule does not exist; apply the"),
    "no right": (lambda _: web.json_response(FORBIDDEN, status=403), 200, "; apply manifests/install.yaml, which "),
    **{
        f"the answer {body[:40]!r}": (answer(body), 200, f"{READ}got an answer that is not this") for body in NO_SECRETS
    },
}


@pytest.mark.parametrize(("secrets", "found", "sentence"), TROUBLES.values(), ids=TROUBLES)
async def test_a_trouble_is_one_sentence(
    served: Callable[..., Any], secrets: Answer, found: int, sentence: str
) -> None:
    """With the request and what to do."""
    with pytest.raises(ApiError) as caught:
        await read(await served(secrets, found))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("held", "query"), [(None, "?fieldManager"), (secret(), "")], ids=["absent", "there"])
async def test_a_secret_is_applied_or_patched(
    served: Callable[..., Any], taken: list[Any], held: dict[str, Any] | None, query: str
) -> None:
    """A patch names the version that was read."""
    settings = await served(lambda request: web.json_response(held) if held else absent(request))
    async with connect_objects(settings) as objects:
        seen = await objects.read()
        await objects.write(plan.NewAuthority("none"), seen, POLICY, NOW)
    [(path, body)] = taken
    assert path == f"/api/v1/namespaces/kubevirt-coschedule/secrets/kubevirt-coschedule-certs-ca{query}"
    assert set(body["data"]) == {"tls.crt", "tls.key", "ca.crt"}
    assert body["metadata"].get("resourceVersion") == (seen.authority.version or None)


@pytest.mark.parametrize(("status", "kind"), [(409, Conflict), (404, ApiError), (403, ApiError)])
async def test_a_write_that_is_refused_is_no_success(
    served: Callable[..., Any], status: int, kind: type[Exception]
) -> None:
    """A conflict is read again; all else is a trouble. A Secret that went meanwhile is one, too.

    No manifest grants what a quota refuses.
    """
    settings = await served(written=status)
    async with connect_objects(settings) as objects:
        step = plan.Publish((), (), ())
        with pytest.raises(kind, match=f"^PATCH /apis.*/kubevirt-coschedule: {status} : exceeded quota$"):
            await objects.write(step, await objects.read(), POLICY, NOW)
