"""An API server that only reads from memory: lists and watches of a large cluster, rendered before anyone asks.

Called as `scripted.py CERT_FILE KEY_FILE CLAIMS PODS NODES ...`; says where it listens as `serve` does. It sends as
fast as it is read, which no real one does, and costs little while it does: the time is the reader's.

For the bench: GET /bench/expire ends each watch with a 410, and GET /bench/reads answers how often a single object was
asked for. It has none of those to give: what is measured reads no object.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Final
from urllib.parse import parse_qs, urlsplit

from scale import PODS, Collection, Scale, collections, last_version

_SEND_BYTES: Final = 256 * 1024
_BOOKMARK_SECONDS: Final = 30.0

Query = dict[str, list[str]]


def _event(kind: bytes, item: bytes) -> bytes:
    """One event as one HTTP chunk: an API server flushes each."""
    line = b'{"type":"%s","object":%s}\n' % (kind, item)
    return b"%x\r\n%s\r\n" % (len(line), line)


def _bookmark(version: int, *, end: bool = False) -> bytes:
    annotations = b',"annotations":{"k8s.io/initial-events-end":"true"}' if end else b""
    return _event(b"BOOKMARK", b'{"metadata":{"resourceVersion":"%d"%s}}' % (version, annotations))


def _json(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _status(code: int, reason: str) -> bytes:
    return _json(code, json.dumps({"kind": "Status", "status": "Failure", "code": code, "reason": reason}).encode())


_EXPIRED: Final = _event(b"ERROR", b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}')


class Served:
    """One collection, ready to be sent."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.watches: list[SimpleQueue[tuple[bytes, int]]] = []
        self.version = self.oldest = last_version()
        self._pieces = list(self._initial_events())

    def _initial_events(self) -> Iterator[bytes]:
        gathered = bytearray()
        for item in self.collection.objects():
            gathered += _event(b"ADDED", item)
            if len(gathered) >= _SEND_BYTES:
                yield bytes(gathered)
                gathered.clear()
        yield bytes(gathered)

    def initial(self) -> Iterator[bytes]:
        """The streaming list."""
        yield from self._pieces
        yield _bookmark(self.version, end=True)

    def expire(self) -> None:
        """Have no watch go on, nor begin where it was."""
        self.version += 1
        self.oldest = self.version
        watches, self.watches = self.watches, []
        for watch in watches:
            watch.put((_EXPIRED, self.version))


class Server:
    """A thread for each connection."""

    def __init__(self, scale: Scale) -> None:
        every = collections(scale)
        self._served = {each.path: Served(each) for each in every}
        pods = next(each for each in every if each.path == PODS)
        self._launchers = Served(pods._replace(count=scale.launchers))
        self._reads = 0

    def serve(self, listener: socket.socket, tls: ssl.SSLContext) -> None:
        """Until the process is killed."""
        while True:
            plain, _ = listener.accept()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._connection, args=(plain, tls), daemon=True).start()

    def _connection(self, plain: socket.socket, tls: ssl.SSLContext) -> None:
        try:
            with tls.wrap_socket(plain, server_side=True) as connection, connection.makefile("rb") as lines:
                while request := lines.readline():
                    while lines.readline() not in (b"\r\n", b""):
                        pass
                    for piece in self._answer(request.split()[1].decode()):
                        connection.sendall(piece)
        except OSError:
            return

    def _answer(self, target: str) -> Iterator[bytes]:
        url = urlsplit(target)
        query = parse_qs(url.query)
        collection = self._launchers if url.path == PODS and "labelSelector" in query else self._served.get(url.path)
        if url.path == "/bench/reads":
            yield _json(200, b"%d" % self._reads)
        elif url.path == "/bench/expire":
            for each in self._served.values():
                each.expire()
            yield _json(200, b"{}")
        elif collection and "watch" in query:
            yield from self._watch(collection, query)
        else:
            self._reads += 1
            yield _status(404, "NotFound")

    def _watch(self, served: Served, query: Query) -> Iterator[bytes]:
        lists = "sendInitialEvents" in query
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        events: SimpleQueue[tuple[bytes, int]] = SimpleQueue()
        served.watches.append(events)
        if lists:
            yield from served.initial()
        elif int(query["resourceVersion"][0]) < served.oldest:
            yield _EXPIRED
        version = served.version
        while True:
            try:
                piece, version = events.get(timeout=_BOOKMARK_SECONDS)
                yield piece
            except Empty:
                yield _bookmark(version)


def main(words: Sequence[str]) -> None:
    """Render, then serve until killed."""
    cert_file, key_file, *counts = words
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert_file, key_file)
    server = Server(Scale(*map(int, counts)))
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        listen = f"https://127.0.0.1:{listener.getsockname()[1]}"
        sys.stderr.write(json.dumps({"message": "serving", "listen": listen}, separators=(",", ":")) + "\n")
        sys.stderr.flush()
        server.serve(listener, tls)


if __name__ == "__main__":
    from pathlib import Path

    sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
    main(sys.argv[1:])
