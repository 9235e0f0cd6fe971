"""A webhook in Go that answers with a constant patch, at the same API server as ours and called in the same way."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controlplane.build import constant_webhook
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.control_plane.programs import Program, free_port
from support.drivers.serving import issue

CONSTANT: Final = "constant-webhook"  # also the value of the label kubevirt.io of the pods that it is asked about


@contextmanager
def constant_webhook_in_go(installed: Installed, directory: Path, patch: list[Object]) -> Iterator[Program]:
    """Have the API server ask it about pods with the label, with the rules and the conditions of ours."""
    directory.mkdir()
    api, service = installed.plane.api, {"apiVersion": "v1", "kind": "Service"}
    wanted = {**service, "metadata": {"name": CONSTANT, "namespace": NAME}, "spec": {"ports": [{"port": 1}]}}
    address = api.create(wanted)["spec"]["clusterIP"]
    port = free_port(address)
    api.patch(wanted, {"spec": {"ports": [{"port": port}]}})
    pair = issue(directory, f"{CONSTANT}.{NAME}.svc", authority=installed.authority)
    (directory / "patch.json").write_text(json.dumps(patch, separators=(",", ":")))
    files = (pair.cert_file, pair.key_file, directory / "patch.json")
    program = Program(constant_webhook(), [f"{address}:{port}", *map(str, files)], directory / "constant.log")
    ours = api.get({**_CONFIGURATION, "metadata": {"name": NAME}})["webhooks"][0]
    selector = {"matchLabels": {"kubevirt.io": CONSTANT}}
    client = {
        "service": {"name": CONSTANT, "namespace": NAME, "port": port, "path": "/"},
        "caBundle": base64.b64encode(installed.authority.cert_pem.bytes()).decode(),
    }
    entry = {**ours, "name": f"{CONSTANT}.bench.io", "objectSelector": selector, "clientConfig": client}
    program.start()
    try:
        api.apply({**_CONFIGURATION, "metadata": {"name": CONSTANT}, "webhooks": [entry]})
        yield program
    finally:
        program.stop(signal.SIGTERM)


_CONFIGURATION: Final = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
