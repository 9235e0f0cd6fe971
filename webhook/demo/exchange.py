"""Exchange: one AdmissionReview of the examples and its answer, from a webhook that runs on loopback for a moment.

Nothing is simulated: the demo has a certificate and a listener of its own, and posts AdmissionReviews as the API
server does. expected.yaml, beside the examples, has the scenarios and the expected answers.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import jsonpatch
import yaml
from msgspec import Struct

from webhook.app.handler import admit_functions
from webhook.component_base.errors import UserError
from webhook.component_base.options import Address
from webhook.component_base.server.listener import Listener
from webhook.component_base.start import interrupts_raised
from webhook.core.api.longhorn import LABEL_LONGHORN_SHARE_MANAGER
from webhook.core.opt_in import Policy
from webhook.explain.pod import entry_of
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument
from webhook.objects.files import read_file
from webhook.serving.certificate import ServingCertificate
from webhook.serving.routes import webhook_application
from webhook.serving.tls import TLSFiles

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a directory with a random name is made in it
_TIMEOUT_SECONDS: Final = 10.0
_HTTP_OK: Final = 200


class Exchange(Struct, frozen=True):
    """One AdmissionReview, the answer of the webhook, and the expected answer."""

    name: str
    scenario: str
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


def trust() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS settings of the demo's server and of its caller, for a new certificate of loopback.

    Its files are gone afterwards. In the webhook's pod the root filesystem is read-only, and the kubelet gives each
    container shared memory. `webhook` never imports `certs`.

    Raises:
        UserError: no directory can be written.
    """
    try:
        directory = tempfile.TemporaryDirectory(dir=SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None)
    except OSError as error:
        raise UserError(f"{error.strerror}; expected a place for the demo's certificate: set TMPDIR") from None
    with interrupts_raised(), directory:
        subprocess.run(  # noqa: S603 - a program of this project, with constant arguments
            [sys.executable, "-m", "certs", "issue", "--dir", directory.name],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # an archive's launcher adds to sys.path
            check=True,
            stdout=subprocess.DEVNULL,
        )
        files = Path(directory.name)
        server = ServingCertificate(TLSFiles(cert_file=files / "tls.crt", key_file=files / "tls.key")).context
        return server, ssl.create_default_context(cafile=str(files / "ca.crt"))


async def ask_all(examples: Path, cluster: Cluster, server: ssl.SSLContext, caller: ssl.SSLContext) -> list[Exchange]:
    """Serve the cluster, and post each review that expected.yaml names.

    Raises:
        UserError: the examples can't be read.
    """
    scenarios = scenarios_of(examples / "expected.yaml")
    reviews = {name: next(read_file(examples / "reviews" / f"{name}.yaml")).value for name in scenarios}
    app = webhook_application(admit_functions(cluster, Policy(), on_record=lambda _: None))
    listener = Listener(app, tls=lambda: server)
    address = await listener.start(Address("127.0.0.1", 0))
    try:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
        async with aiohttp.ClientSession(f"https://{address}", timeout=timeout) as session:
            exchanges = []
            for name, review in reviews.items():
                path = entry_of(review).path
                async with session.post(path, params={"timeout": "3s"}, json=review, ssl=caller) as reply:
                    response = (await reply.json())["response"] if reply.status == _HTTP_OK else {}
                scenario, expected = scenarios[name]["scenario"], scenarios[name]["answer"]
                exchanges.append(Exchange(name, scenario, review, reply.status, response, expected))
            return exchanges
    finally:
        await listener.stop(0)


def scenarios_of(file: Path) -> dict[str, Any]:
    """Return what expected.yaml has: for each review the name of its scenario, and the expected answer.

    Raises:
        BadDocument: the file can't be read.
    """
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise BadDocument(f"{file}: {error}") from None
    return dict(found)
