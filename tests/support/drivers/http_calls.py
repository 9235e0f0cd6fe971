"""HTTP requests as bytes, and what a server answers to them."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

PATH: Final = "/mutate/virt-launcher"


def request(body: bytes, *, head: str = f"POST {PATH} HTTP/1.1", **headers: str | None) -> bytes:
    """Return a review's HTTP request. `headers` replace headers; None removes one. `content_type` is Content-Type."""
    named = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))}
    named |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    lines = [head, *(f"{name}: {value}" for name, value in named.items() if value is not None)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Reply(NamedTuple):
    """One HTTP answer, its header names in lower case."""

    version: str
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def sentence(self) -> str:
        """The one line of text of a refusal; fails if the body is anything else."""
        assert self.headers["content-type"].startswith("text/plain"), self
        text = self.body.decode()
        assert text.endswith("\n"), self
        assert len(text.splitlines()) == 1, self
        assert "Traceback" not in text, self
        return text.rstrip("\n")

    @property
    def response(self) -> dict[str, Any]:
        """The response of an AdmissionReview."""
        assert (self.status, self.headers["content-type"]) == (200, "application/json"), self
        response: dict[str, Any] = json.loads(self.body)["response"]
        return response


def parse_reply(data: bytes | bytearray) -> tuple[Reply, int] | None:
    """Return the first answer in `data` and its length in bytes; None if a part of the answer is missing."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    first, *lines = bytes(data[:end]).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    version, status, *_ = first.split(" ")
    until = end + 4 + int(headers.get("content-length", "0"))
    if len(data) < until:
        return None
    return Reply(version, int(status), headers, bytes(data[end + 4 : until])), until
