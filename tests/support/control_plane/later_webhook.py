"""Another webhook that changes pods. If the API server calls it after ours, the API server asks us again."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from support.control_plane.installed import Installed, free_port
from support.control_plane.kube_api import Object
from support.fakes.failing_webhooks import HttpAnswer, patched, reviewed, webhook_server
from support.objects import builders
from support.objects.patches import add
from support.scenarios.admitting import until

from webhook.core.patch.decision_patch import Operation

_HOST: Final = "127.0.0.3"  # the API server speaks HTTP/2 to 127.0.0.1
_PROBE: Final = "probed"


LATER: Final = "zz-later"  # sorts after ours; the API server calls configurations in the order of their names
EARLIER: Final = "aa-earlier"


class Later:
    """A webhook that changes pods only inside `doing`."""

    def __init__(self) -> None:
        self._operations: Sequence[Operation] = ()

    def answer(self, uid: str) -> HttpAnswer:
        """What it answers to any review."""
        return patched(uid, self._operations) if self._operations else reviewed(uid)

    @contextmanager
    def doing(self, operation: Operation) -> Iterator[None]:
        """For as long as this lasts it does this to every pod that is created."""
        self._operations = [operation]
        try:
            yield
        finally:
            self._operations = ()


@contextmanager
def later_webhook(installed: Installed, name: str = LATER) -> Iterator[Later]:
    """It is called from here on, for every pod, and no more afterwards. `name` is that of its configuration."""
    api, later, port = installed.plane.api, Later(), free_port(_HOST)
    configuration = _configuration(installed, f"https://{_HOST}:{port}/", name)

    def called() -> bool:
        with later.doing(add(f"/metadata/annotations/{_PROBE}", "")):
            probe = api.create(builders.virt_launcher_pod(namespace=builders.NAMESPACE), dryRun="All")
        return _PROBE in probe["metadata"]["annotations"]

    with webhook_server(_HOST, port, installed.authority.issue_cert(_HOST), later.answer):
        api.apply(configuration)
        try:
            until(called, "a call of the later webhook")
            yield later
        finally:
            api.delete(configuration)
            until(lambda: not called(), "the end of the later webhook's calls")


def _configuration(installed: Installed, url: str, name: str) -> Object:
    """A call that fails refuses the pod, so that no test passes without the webhook."""
    authority = base64.b64encode(installed.authority.cert_pem.bytes()).decode()
    entry = {
        "name": "later.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": url, "caBundle": authority},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": name}, "webhooks": [entry]}
