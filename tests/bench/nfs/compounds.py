"""NFSv4.1's compounds as bytes (RFC 8881, RFC 5662): those that a client needs to open a file, read and write it.

Nothing here knows of sockets. A request is bytes, and the places of the numbers that differ from request to request.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_PROGRAM, _VERSION, _PROCEDURE_NULL, _PROCEDURE_COMPOUND = 100003, 4, 0, 1
_MINOR_VERSION: Final = 1
_COMMIT, _GETFH, _LOOKUP, _OPEN, _PUTFH, _PUTROOTFH, _READ, _WRITE = 5, 10, 15, 18, 22, 24, 25, 38
_EXCHANGE_ID, _CREATE_SESSION, _SEQUENCE, _RECLAIM_COMPLETE = 42, 43, 53, 58
_SEQUENCE_RESULT_BYTES: Final = 36
BLOCK_BYTES: Final = 4096
SLOTS: Final = 16


class Request(NamedTuple):
    """One RPC with its record mark, and the places of the numbers in it; -1 where it has none."""

    data: bytes
    slot_at: int = -1
    sequence_at: int = -1
    offset_at: int = -1


class Session(NamedTuple):
    """What CREATE_SESSION answered, and the client it is for."""

    identity: bytes
    client: int


class OpenFile(NamedTuple):
    """An open file: its handle, and its state at the server."""

    handle: bytes
    state: bytes


class NfsError(Exception):
    """The server refused a request."""


def _words(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def _opaque(data: bytes) -> bytes:
    return _words(len(data)) + data + b"\0" * (-len(data) % 4)


def _call(procedure: int, body: bytes) -> bytes:
    credentials = _opaque(_words(0) + _opaque(b"bench") + _words(0, 0, 0))  # AUTH_SYS, root
    rpc = _words(0, 0, 2, _PROGRAM, _VERSION, procedure, 1) + credentials + _words(0, 0) + body
    return _words(1 << 31 | len(rpc)) + rpc


def _compound(count: int, operations: bytes) -> bytes:
    return _call(_PROCEDURE_COMPOUND, _opaque(b"") + _words(_MINOR_VERSION, count) + operations)


def null() -> Request:
    """The procedure that does nothing: what the way and the server's dispatch take."""
    return Request(_call(_PROCEDURE_NULL, b""))


def exchange_id(owner: bytes, verifier: bytes) -> bytes:
    """EXCHANGE_ID: who the client is."""
    return _compound(1, _words(_EXCHANGE_ID) + verifier + _opaque(owner) + _words(0, 0, 0))


def create_session(client: int, sequence: int) -> bytes:
    """CREATE_SESSION with as many slots as requests may be under way."""
    channel = _words(0, 1 << 17, 1 << 17, 4096, 16, SLOTS, 0)
    arguments = struct.pack(">QII", client, sequence, 0) + channel + channel + _words(0x40000000, 1, 0)
    return _compound(1, _words(_CREATE_SESSION) + arguments)


def sequenced(session: Session, operations: list[bytes], sequence: int = 0) -> Request:
    """A compound of the session, with the places of its slot and sequence number."""
    head = _words(_SEQUENCE) + session.identity
    data = _compound(len(operations) + 1, head + _words(sequence, 0, SLOTS - 1, 0) + b"".join(operations))
    at = data.index(head) + len(head)
    return Request(data, slot_at=at + 4, sequence_at=at)


def reclaim_complete() -> bytes:
    """RECLAIM_COMPLETE: the client has nothing from before the server's start."""
    return _words(_RECLAIM_COMPLETE, 0)


def walk(names: list[str]) -> list[bytes]:
    """From the root to a directory or file."""
    return [_words(_PUTROOTFH), *(_words(_LOOKUP) + _opaque(name.encode()) for name in names)]


def get_handle() -> bytes:
    """GETFH: the handle of where the walk ended."""
    return _words(_GETFH)


def open_file(session: Session, name: str) -> bytes:
    """OPEN of a file that exists, to read and write."""
    owner = struct.pack(">Q", session.client) + _opaque(b"bench")
    return _words(_OPEN, 0, 3, 0) + owner + _words(0, 0) + _opaque(name.encode())


def _on(session: Session, file: OpenFile, operation: bytes, offset_at: int) -> Request:
    """One operation on the file; `offset_at` counts from the operation's begin."""
    request = sequenced(session, [_words(_PUTFH) + _opaque(file.handle), operation])
    return request._replace(offset_at=request.data.rindex(operation) + offset_at if offset_at >= 0 else -1)


def read(session: Session, file: OpenFile) -> Request:
    """READ of one block."""
    operation = _words(_READ) + file.state + struct.pack(">QI", 0, BLOCK_BYTES)
    return _on(session, file, operation, 4 + len(file.state))


def write(session: Session, file: OpenFile) -> Request:
    """WRITE of one block that the server may keep in memory (UNSTABLE4)."""
    operation = _words(_WRITE) + file.state + struct.pack(">QI", 0, 0) + _opaque(b"\xa5" * BLOCK_BYTES)
    return _on(session, file, operation, 4 + len(file.state))


def commit(session: Session, file: OpenFile) -> Request:
    """COMMIT of the whole file: the server's fsync."""
    return _on(session, file, _words(_COMMIT) + struct.pack(">QI", 0, 0), -1)


def results(record: bytes, operation: int) -> bytes:
    """What follows the status of the last operation; it must be this one.

    Raises:
        NfsError: the server refused it.
    """
    accepted, status, tag = struct.unpack_from(">III", record, 20)
    count, at = struct.unpack_from(">I", record, 32 + tag)[0], 36 + tag
    if accepted or status:
        raise NfsError(f"the server refused operation {operation}: accept_stat {accepted}, status {status}")
    for _ in range(count - 1):
        at += 8 + (_SEQUENCE_RESULT_BYTES if struct.unpack_from(">I", record, at)[0] == _SEQUENCE else 0)
    found = struct.unpack_from(">I", record, at)[0]
    if found != operation:
        raise NfsError(f"the server answered operation {found}, expected {operation}")
    return record[at + 8 :]


def client_of(record: bytes) -> tuple[int, int]:
    """The client's number, and the sequence number for CREATE_SESSION."""
    client, sequence = struct.unpack_from(">QI", results(record, _EXCHANGE_ID))
    return client, sequence


def session_of(record: bytes, client: int) -> Session:
    """The session that was made."""
    return Session(results(record, _CREATE_SESSION)[:16], client)


def reclaimed(record: bytes) -> None:
    """Check the answer to RECLAIM_COMPLETE."""
    results(record, _RECLAIM_COMPLETE)


def handle_of(record: bytes) -> bytes:
    """The handle that GETFH answered."""
    found = results(record, _GETFH)
    return found[4 : 4 + struct.unpack_from(">I", found)[0]]


def state_of(record: bytes) -> bytes:
    """The stateid that OPEN answered."""
    return results(record, _OPEN)[:16]
