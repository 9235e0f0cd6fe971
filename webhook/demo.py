"""The command demo: run the webhook on loopback with the example cluster, call it over TLS, and check its answers.

Nothing is simulated: the demo has a certificate and a listener of its own, and posts AdmissionReviews as the API
server does. expected.yaml, beside the examples, has the expected answers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

import aiohttp
import jsonpatch
import yaml
from msgspec import Struct

from webhook.app.handler import admit_functions
from webhook.component_base.address import Address
from webhook.core.api.longhorn import LABEL_LONGHORN_SHARE_MANAGER
from webhook.core.opt_in import Policy
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.explain.evaluate import entry_of
from webhook.files.documents import BadDocument, read_file
from webhook.files.manifests import Manifests
from webhook.serving.routes import webhook_handler
from webhook.serving.server import Listener
from webhook.serving.tls import server_context
from webhook.terminal import affinity_diff, columns

_TIMEOUT_SECONDS: Final = 10.0
_HTTP_OK: Final = 200


class Exchange(Struct, frozen=True, kw_only=True):
    """One AdmissionReview, the answer of the webhook, and the expected answer."""

    name: str
    review: Mapping[str, Any]
    status: int
    response: Mapping[str, Any]
    expected: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The VM that the pod belongs to, or the volume that it serves."""
        labels = self.review["request"]["object"]["metadata"]["labels"]
        volume = labels.get(LABEL_LONGHORN_SHARE_MANAGER)
        return f"share-manager {volume}" if volume else f"VM {labels['vm.kubevirt.io/name']}"

    @property
    def got(self) -> dict[str, Any]:
        """Decision, reason and nodes, in the form of expected.yaml."""
        audit = self.response.get("auditAnnotations", {})
        nodes = [node for node in audit.get("node", "").split(",") if node]
        return {"decision": audit.get("decision"), "reason": audit.get("reason"), "nodes": nodes}

    @property
    def patched(self) -> Any:
        """The pod after the patch.

        Raises:
            jsonpatch.JsonPatchException: the patch does not apply.
        """
        operations = json.loads(base64.b64decode(self.response["patch"])) if "patch" in self.response else []
        return jsonpatch.apply_patch(self.review["request"]["object"], operations)

    def flaw(self) -> str | None:
        """Return a sentence about the first difference from the expected answer; None if there is none."""
        if self.status != _HTTP_OK or self.response.get("allowed") is not True:
            return f"HTTP {self.status}, allowed: {self.response.get('allowed')}"
        if self.response.get("uid") != self.review["request"]["uid"]:
            return "the answer is for another uid"
        if self.got != self.expected:
            return f"got {self.got}, expected {self.expected}"
        try:
            affinity = json.dumps(self.patched["spec"]["affinity"])
        except jsonpatch.JsonPatchException as error:
            return f"the patch does not apply: {error}"
        missing = [node for node in self.expected["nodes"] if f'"{node}"' not in affinity]
        return f"the patched pod's affinity does not name {', '.join(missing)}" if missing else None


def run(out: TextIO) -> int:
    """Run the demo. Returns 0 if every answer is the expected one, else 1.

    Raises:
        UserError: the examples can't be read.
    """
    exchanges = asyncio.run(_serve_and_ask(_examples()))
    rows = [("POD OF", "DECISION", "NODE", "WHY")]
    for exchange in exchanges:
        got, audit = exchange.got, exchange.response.get("auditAnnotations", {})
        rows.append((exchange.title, str(got["decision"]), ",".join(got["nodes"]) or "-", audit.get("because", "-")))
    print(*columns(rows), sep="\n", file=out)
    _print_change(exchanges[0], out)
    flaws = [(exchange.name, flaw) for exchange in exchanges if (flaw := exchange.flaw())]
    for name, flaw in flaws:
        print(f"WRONG {name}: {flaw}", file=out)
    print(f"\n{len(exchanges) - len(flaws)} of {len(exchanges)} answers over TLS are as expected.", file=out)
    return 1 if flaws else 0


def _examples() -> Path:
    """manifests/examples of the checkout, or the copy in an installed distribution."""
    checkout = Path(__file__).parents[1] / "manifests" / "examples"
    return checkout if checkout.is_dir() else Path(sys.prefix) / "share" / "kubevirt-coschedule" / "examples"


async def _serve_and_ask(examples: Path) -> list[Exchange]:
    cluster = Manifests.load(examples / "cluster", longhorn_namespace="longhorn-system")
    expected = _expected(examples / "expected.yaml")
    reviews = {name: next(read_file(examples / "reviews" / f"{name}.yaml")).value for name in expected}
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory)
        await asyncio.to_thread(_issue, files)
        listener = Listener(
            webhook_handler(admit_functions(cluster, Policy(), on_record=lambda _: None)),
            tls=server_context(files / "tls.crt", files / "tls.key"),
        )
        trust = ssl.create_default_context(cafile=str(files / "ca.crt"))
    address = await listener.start(Address("127.0.0.1", 0))
    try:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
        async with aiohttp.ClientSession(f"https://{address}", timeout=timeout) as session:
            exchanges = []
            for name, review in reviews.items():
                path = entry_of(review).path
                async with session.post(path, params={"timeout": "3s"}, json=review, ssl=trust) as reply:
                    response = (await reply.json())["response"] if reply.status == _HTTP_OK else {}
                exchanges.append(
                    Exchange(name=name, review=review, status=reply.status, response=response, expected=expected[name])
                )
            return exchanges
    finally:
        await listener.stop(0)


def _expected(file: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise BadDocument(f"{file}: {error}") from None
    return dict(found)


def _issue(directory: Path) -> None:
    """Have kubevirt-coschedule-certs write a certificate for loopback. `webhook` never imports `certs`."""
    subprocess.run(  # noqa: S603 - a program of this project, with constant arguments
        [sys.executable, "-m", "certs", "issue", "--dir", str(directory)], check=True, stdout=subprocess.DEVNULL
    )


def _print_change(exchange: Exchange, out: TextIO) -> None:
    before, after = exchange.review["request"]["object"], exchange.patched
    diff = affinity_diff(before["spec"].get("affinity"), after["spec"].get("affinity"))
    print(f"\n{exchange.title}, the affinity before and after:\n", *diff, sep="\n  ", file=out)
    print(f"\n{ANNOTATION_DECISION}, as kubectl describe pod shows it:\n", file=out)
    print(f"  {after['metadata']['annotations'].get(ANNOTATION_DECISION, '-')}", file=out)
