"""`helm test`: sends one AdmissionReview over TLS, as the API server does, and checks the answer.

Its pod belongs to no VM, so that the webhook leaves it unchanged. Arguments: the webhook's address HOST:PORT, and the
result that is expected: `answered`, or `refused` where callers need a client certificate. The variable AUTHORITIES has
the authorities that callers trust, as PEM. Exit code 0 if the result is as expected, otherwise 1.
"""

import http.client
import json
import os
import ssl
import sys

PATH = "/mutate/virt-launcher?timeout=10s"
UID = "kubevirt-coschedule-test"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": UID,
        "namespace": "default",
        "labels": {"kubevirt.io": "virt-launcher"},
        "annotations": {"kubevirt-scheduler/co-schedule": "true"},
    },
    "spec": {"containers": [{"name": "compute", "image": "none"}]},
}
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "name": UID,
        "dryRun": True,
        "object": POD,
    },
}


def answer(calling: http.client.HTTPSConnection) -> str:
    """Return what the webhook decides.

    Raises:
        OSError: the webhook closed the connection, or was silent.
        ValueError: the answer is not that of the webhook to this review.
    """
    calling.request("POST", PATH, json.dumps(REVIEW), {"Content-Type": "application/json"})
    reply = calling.getresponse()
    body = reply.read().decode(errors="replace")
    if reply.status != http.client.OK:
        raise ValueError(f"HTTP {reply.status}: {body.strip()}")
    response = json.loads(body)["response"]
    if (response["uid"], response["allowed"]) != (UID, True):
        raise ValueError(f"expected that pod {UID} is allowed, got {body}")
    audit = response["auditAnnotations"]
    return f"{audit['decision']}: {audit['reason']}"


def call(address: str) -> tuple[str, str]:
    """Return the result of a call, and more about it."""
    try:
        trust = ssl.create_default_context(cadata=os.environ["AUTHORITIES"])
        calling = http.client.HTTPSConnection(address, context=trust, timeout=10)
        calling.connect()
    except ssl.SSLCertVerificationError as error:
        return "not trusted", error.verify_message
    except OSError as error:
        return "not reached", str(error)
    try:
        return "answered", answer(calling)
    except TimeoutError as error:
        return "no answer", str(error)
    except OSError as error:  # in TLS 1.3 a server refuses the caller's certificate after the handshake
        return "refused", f"closed after the handshake: {error}"
    except (ValueError, KeyError, http.client.HTTPException) as error:
        return "wrong answer", f"{type(error).__name__}: {error}"


def main(address: str, expected: str) -> int:
    """Call once, and print one sentence."""
    result, detail = call(address)
    print(f"{address}: {result} ({detail}); expected that the review is {expected}")
    return result != expected


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
