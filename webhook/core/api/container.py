"""What a pod requests of a node: its containers, what their status names, and quantities as exact whole numbers.

`webhook.core.scheduler.pod_requests` adds the requests up. PodSpec inherits from `Workload`. Quantities are read
one by one, so that a wrong one does not lose the pod. They follow apimachinery pkg/api/resource/quantity.go
(ParseQuantity, MilliValue, Value): an amount is a number of thousandths, and finer quantities are rounded up.
kube-apiserver itself rounds up to thousandths what it stores (pkg/apis/core/v1/defaults.go, SetDefaults_ResourceList),
so a quantity from the API server loses no precision here. Invariant: no text raises; unreadable text is None, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from webhook.core.api.meta import ApiType

Quantities = dict[str, Any]
"""A v1.ResourceList: name -> quantity; text as API servers write it, or a number from a file."""


class ResourceRequirements(ApiType):
    """v1.ResourceRequirements: what one container requests, and its limits."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(ApiType):
    """v1.ContainerPort: the port of the node that it takes."""

    host_port: int | None = None


class VolumeMount(ApiType):
    """v1.VolumeMount: the field that needs a feature of the node."""

    bind_mount_options: list[Any] | None = None


class ContainerRequests(ApiType):
    """The part of v1.Container that takes resources; an init container whose restartPolicy is Always is a sidecar."""

    name: str | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None

    @property
    def restarts(self) -> bool:
        """Whether an init container keeps running beside the containers: a sidecar."""
        return self.restart_policy == "Always"


class Container(ContainerRequests):
    """v1.Container."""

    image: str | None = None
    args: list[str] | None = None
    ports: list[ContainerPort] | None = None
    restart_policy_rules: list[Any] | None = None
    volume_mounts: list[VolumeMount] | None = None

    def option(self, name: str) -> str | None:
        """Return the argument that follows `name`, None if there is none."""
        args = self.args or []
        return next((value for flag, value in pairwise(args) if flag == name), None)


class Workload(ApiType):
    """The part of v1.PodSpec that takes resources of a node."""

    containers: Sequence[ContainerRequests] | None = None
    init_containers: Sequence[ContainerRequests] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None


class Actuated(ApiType):
    """The v1.ResourceRequirements of a status: what the kubelet has applied."""

    requests: Quantities | None = None


class ContainerStateWaiting(ApiType):
    """v1.ContainerStateWaiting: why a container does not run yet, such as ContainerCreating."""

    reason: str | None = None


class ContainerState(ApiType):
    """v1.ContainerState: the state of a container that waits."""

    waiting: ContainerStateWaiting | None = None


class ContainerStatus(ApiType):
    """v1.ContainerStatus: the fields that show an in-place resize, and why a container waits."""

    name: str | None = None
    state: ContainerState | None = None
    resources: Actuated | None = None
    allocated_resources: Quantities | None = None


MILLI: Final = 1000
UNREADABLE: Final = (1 << 63) * MILLI
"""The amount of an unreadable quantity. Every node has less, because nodes count in int64. Sums of it stay larger."""

_MAX: Final = UNREADABLE - MILLI  # int64, of whole units
_TEXT_MAX_CHARS: Final = 64  # kubelets and people write 20; a longer text must not cost time
_KEPT_CHARS: Final = _TEXT_MAX_CHARS + 1  # of a longer text, which can't be read either
_EXPONENT_MAX: Final = 100  # far beyond int64 in both directions, and quick to compute
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def milli_value(text: str) -> int | None:
    """Return the quantity in thousandths, rounded up; None if it can't be read or is negative.

    Go counts in int64, and a larger value overflows there. No node has that much, so the result is None, too.
    """
    parsed = _FORM.fullmatch(text) if len(text) <= _TEXT_MAX_CHARS else None
    if parsed is None:
        return None
    sign, whole, fraction, suffix = parsed.groups()
    digits = whole + (fraction or "")
    if not digits:
        return None
    number = int(digits)
    if number == 0:
        return 0
    if sign == "-":
        return None
    if suffix in _BINARY:
        # Go caps only quantities with these suffixes.
        return min(_rounded_up(number << _BINARY[suffix], 3 - len(fraction or "")), _MAX)
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if abs(exponent) > _EXPONENT_MAX:
        return None
    thousandths = _rounded_up(number, exponent + 3 - len(fraction or ""))
    return thousandths if thousandths <= _MAX else None


def _rounded_up(number: int, exponent: int) -> int:
    """Return number * 10 ** exponent, rounded up to a whole number."""
    power: int = 10 ** abs(exponent)
    return number * power if exponent >= 0 else -(-number // power)


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Return a v1.ResourceList in thousandths; an unreadable quantity is UNREADABLE."""
    if not quantities:
        return {}
    return {name: _amount(_text(written)) for name, written in quantities.items()}


def _text(written: object) -> str:
    """Return the beginning of a quantity as text. A file can have a number, too; anything else has no text."""
    return str(written)[:_KEPT_CHARS] if isinstance(written, (str, int, float)) else ""


# A cluster has a few hundred different quantities, and one for the memory of each node.
@lru_cache(maxsize=4096)
def _amount(written: str) -> int:
    read = milli_value(written)
    return UNREADABLE if read is None else read


def units(thousandths: int) -> int:
    """Return thousandths as whole units, rounded up. Rounding twice gives the same as rounding once."""
    return -(-thousandths // MILLI)


_INT64_MAX: Final = 2**63 - 1
_PARSE_INT_MAX_CHARS: Final = 4300  # what int() takes; leading zeros may be many
_PARSE_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def parse_int64(text: str) -> int | None:
    """Return Go's strconv.ParseInt(text, 10, 64), None if it fails. Unlike int(): no blanks, underscores or bignums."""
    if not _PARSE_INT.fullmatch(text) or len(text) > _PARSE_INT_MAX_CHARS:
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None
