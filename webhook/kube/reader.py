"""Reader: objects and collections of an API server, for the commands that a user runs at a terminal.

Invariant: an answer without the objects raises an ApiError. Its sentence names the user and the missing permission.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from webhook.component_base.client.api import Api, Reply
from webhook.component_base.client.transport import ApiError, TooLong
from webhook.component_base.errors import UserError
from webhook.component_base.options import BadKubeconfig, Kubeconfig
from webhook.core.api.affinity import is_node_name
from webhook.kube.wire import Decoders, NotJSON

ANSWER_SECONDS: Final = 20.0  # for one object or collection, in all its requests
WITHOUT_KUBECONFIG: Final = "; or describe the cluster: --manifests DIR"
_TRIES: Final = 3  # for one page of a list
_PAUSE_SECONDS: Final = 0.2  # before the second try, and twice as long before the next
_PAGE_OBJECTS: Final = 100  # 4 MB of nodes with all their images; Api.get reads 16 MiB of an answer
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_SERVER_ERRORS: Final = 500
_OBJECTS: Final = Decoders(dict[str, Any])


class Missing(ApiError):
    """The object does not exist. `installed`: its kind exists."""

    def __init__(self, *, installed: bool) -> None:
        super().__init__("no such object" if installed else "no such kind")
        self.installed = installed


async def get(api: Api, path: str) -> dict[str, Any]:
    """GET one object, as JSON.

    Raises:
        Missing: the object does not exist.
        ApiError: the object can't be read.
    """
    return _object_in(await api.get(path, seconds=ANSWER_SECONDS))


async def get_or_list(api: Api, path: str) -> dict[str, Any]:
    """GET one object, or LIST the objects of its name: the webhook's own account may list pods, and not get one.

    Raises as `get` does. If the LIST fails too, the error has the sentence of the GET.
    """
    reply = await api.get(path, seconds=ANSWER_SECONDS)
    if reply.status != _FORBIDDEN:
        return _object_in(reply)
    collection, _, object_name = path.rpartition("/")
    try:
        listed = await get_all(api, collection, _OBJECTS, fields=f"metadata.name={object_name}")
    except ApiError:
        return _object_in(reply)
    if not listed:
        raise Missing(installed=True)
    return dict(listed[0])


def _object_in(reply: Reply) -> dict[str, Any]:
    if reply.status == _NOT_FOUND and reply.failure.absent:
        raise Missing(installed=reply.failure.names_object)
    if reply.status != _OK:
        raise ApiError(reply.failure.sentence)
    found = _OBJECTS.object(reply.body)
    if isinstance(found, NotJSON):
        raise ApiError(f"got an answer that is not an object ({found.why})")
    return dict(found)


async def get_all(  # noqa: PLR0913 - a query, by name
    api: Api,
    path: str,
    decoders: Decoders,
    *,
    selector: str = "",
    fields: str = "",
    seconds: float = ANSWER_SECONDS,
) -> list[Any]:
    """LIST every object of a collection, decoded; none if the kind is not installed. All pages come within `seconds`.

    Raises:
        ApiError: an object, or the collection, could not be read.
    """
    items: list[Any] = []
    query, token, limit = list[tuple[str, str]](), "", _PAGE_OBJECTS
    if selector:
        query.append(("labelSelector", selector))
    if fields:
        query.append(("fieldSelector", fields))
    now = asyncio.get_running_loop().time
    deadline = now() + seconds
    while True:
        asked = [("limit", str(limit)), *query, *([("continue", token)] if token else [])]
        try:
            reply = await _page(api, path, asked, deadline)
        except TooLong:  # anybody may create objects of 1.5 MB
            if limit == 1:
                raise
            limit //= 2
            continue
        if reply.status == _NOT_FOUND and reply.failure.absent:
            return []
        if reply.status != _OK:
            raise ApiError(reply.failure.sentence, forbidden=reply.status == _FORBIDDEN)
        page = decoders.page(reply.body)
        if isinstance(page, NotJSON) or page.unreadable:
            raise ApiError(f"{path}: got objects that can't be read")
        items += page.items
        token, limit = page.continue_token, _PAGE_OBJECTS
        if not token:
            return items


async def _page(api: Api, path: str, query: Sequence[tuple[str, str]], deadline: float) -> Reply:
    """GET one page. If the API server fails, try again.

    Raises:
        TooLong: the page has too many bytes.
        ApiError: it could not be read.
    """
    now, pause_seconds = asyncio.get_running_loop().time, _PAUSE_SECONDS
    for _ in range(_TRIES - 1):
        try:
            reply = await api.get(path, query, seconds=max(0.0, deadline - now()))
        except TooLong:
            raise
        except ApiError:
            pass
        else:
            if reply.status < _SERVER_ERRORS:
                return reply
        await asyncio.sleep(pause_seconds)
        pause_seconds *= 2
    return await api.get(path, query, seconds=max(0.0, deadline - now()))


def within(namespace: str) -> str:
    """Return the part of a path that selects a namespace. Raises ApiError as `name` does."""
    return f"namespaces/{name(namespace)}"


def name(text: str) -> str:
    """Return the text if it can be a name in Kubernetes. Any other text would make another path.

    Raises:
        ApiError: the text can't be a name.
    """
    if not is_node_name(text):  # the same rule: a DNS subdomain
        raise ApiError(f"{text[:80]!r} can't be a name in Kubernetes")
    return text


class NoCluster(UserError):
    """No API server answers, or it does not accept the credentials."""


@contextmanager
def connect_for_terminal(
    kubeconfig: Kubeconfig, hint: str = WITHOUT_KUBECONFIG
) -> Iterator[tuple[asyncio.Runner, Api, str]]:
    """Open an event loop and a client for the block. Yield both, and the API server's name for the user.

    `hint`: what else the user can do without a usable kubeconfig.

    Raises:
        UserError: no usable kubeconfig, no API server, or one that does not take the credentials.
    """
    logging.getLogger("kubernetes_asyncio").addHandler(logging.NullHandler())  # its warnings are also errors here
    with asyncio.Runner() as runner:
        try:
            api = runner.run(Api.connect(kubeconfig))
        except BadKubeconfig as error:
            raise BadKubeconfig(*(f"{problem}{hint}" for problem in error.problems)) from None
        try:
            origin = f"context {api.context}, {api.host}" if api.context else api.host
            runner.run(_greet(api, origin))
            yield runner, api, origin
        finally:
            runner.run(api.close())


async def _greet(api: Api, origin: str) -> None:
    """Check that the API server answers and accepts the credentials. A later failure concerns one object only."""
    try:
        reply = await api.get("/version", seconds=ANSWER_SECONDS)
    except ApiError as problem:
        raise NoCluster(
            f"{origin}: {problem}; expected an API server: check the kubeconfig's server and certificates, or choose "
            "with --kubeconfig or --context"
        ) from None
    if reply.status == _UNAUTHORIZED:
        raise NoCluster(
            f"{origin}: {reply.failure.sentence}; expected credentials that it takes: log in again, or choose with "
            "--kubeconfig or --context"
        )
    if reply.status >= _SERVER_ERRORS:
        raise NoCluster(f"{origin}: {reply.failure.sentence}; expected an API server that is ready: try again")
    answers = b'"gitVersion"' in reply.body if reply.status == _OK else not reply.failure.foreign
    if not answers:
        raise NoCluster(
            f"{origin}: got {reply.failure.sentence}, which no API server answers to /version; expected an API server: "
            "check the kubeconfig's server, and the proxies on the way to it"
        )
