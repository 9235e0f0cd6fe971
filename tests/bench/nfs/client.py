"""A small NFSv4.1 client: python client.py LIBRARY ADDRESS PORT DIRECTORY FILE BYTES.

It reads a line for each slice, such as "read 16 0.1": the operation, how many at a time, and for how many seconds. It
answers with the p50 in microseconds and the number of requests. The loop itself is exchange.c.
"""

from __future__ import annotations

import ctypes
import os
import socket
import statistics
import struct
import sys
from collections.abc import Sequence
from typing import Final

from compounds import (
    BLOCK_BYTES,
    SLOTS,
    NfsError,
    OpenFile,
    Request,
    Session,
    client_of,
    commit,
    create_session,
    exchange_id,
    get_handle,
    handle_of,
    null,
    open_file,
    read,
    reclaim_complete,
    reclaimed,
    sequenced,
    session_of,
    state_of,
    walk,
    write,
)

_SAMPLES: Final = 1 << 20


class _Request(ctypes.Structure):
    """`struct request` of exchange.c."""

    _fields_: Final = [
        ("bytes", ctypes.c_char_p),
        ("length", ctypes.c_uint32),
        ("slot_at", ctypes.c_int32),
        ("sequence_at", ctypes.c_int32),
        ("offset_at", ctypes.c_int32),
    ]


class Client:
    """One connection with a session and an open file."""

    def __init__(self, library: str, address: tuple[str, int], path: list[str]) -> None:
        """Connect, and open the file."""
        self._exchange = ctypes.CDLL(library).exchange
        self._exchange.restype = ctypes.c_int64
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._times = (ctypes.c_uint32 * _SAMPLES)()
        self._sequences = (ctypes.c_uint32 * SLOTS)()
        session, file = self._open(path)
        written = write(session, file)
        self.steps = {
            "null": [null()],
            "read": [read(session, file)],
            "write": [written],
            "fsync": [written, commit(session, file)],
        }

    def _ask(self, data: bytes) -> bytes:
        self._socket.sendall(data)
        length = struct.unpack(">I", self._exactly(4))[0] & 0x7FFFFFFF
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        found = self._socket.recv(length, socket.MSG_WAITALL)
        if len(found) < length:
            raise NfsError("the server closed the connection")
        return found

    def _in_session(self, session: Session, operations: list[bytes]) -> bytes:
        self._sequences[0] += 1
        return self._ask(sequenced(session, operations, self._sequences[0]).data)

    def _open(self, path: list[str]) -> tuple[Session, OpenFile]:
        client, sequence = client_of(self._ask(exchange_id(f"bench-{os.getpid()}".encode(), os.urandom(8))))
        session = session_of(self._ask(create_session(client, sequence)), client)
        reclaimed(self._in_session(session, [reclaim_complete()]))
        handle = handle_of(self._in_session(session, [*walk(path), get_handle()]))
        state = state_of(self._in_session(session, [*walk(path[:-1]), open_file(session, path[-1])]))
        return session, OpenFile(handle, state)

    def slice(self, steps: Sequence[Request], depth: int, seconds: float, blocks: int) -> Sequence[int]:
        """The nanoseconds of each request of one slice.

        Raises:
            NfsError: a request failed.
        """
        requests = [
            _Request(each.data, len(each.data), each.slot_at, each.sequence_at, each.offset_at) for each in steps
        ]
        taken = self._exchange(
            self._socket.fileno(),
            (_Request * len(requests))(*requests),
            len(requests),
            depth,
            blocks,
            ctypes.c_uint64(int(seconds * 1e9)),
            self._sequences,
            self._times,
            _SAMPLES,
        )
        if taken < 0:
            raise NfsError(f"a request failed: {taken} (minus errno, or -1000000 minus the NFS status)")
        return self._times[:taken]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Answer slice after slice."""
    library, address, port, directory, file, size = sys.argv[1:]
    client = Client(library, (address, int(port)), [directory, file])
    _say("ready")
    for line in sys.stdin:
        name, depth, seconds = line.split()
        times = client.slice(client.steps[name], int(depth), float(seconds), int(size) // BLOCK_BYTES)
        _say(f"{statistics.median_low(times) / 1000} {len(times)}")


if __name__ == "__main__":
    main()
