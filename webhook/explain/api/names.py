"""Names of objects as users of kubectl write them: TYPE/NAME, several of these, or TYPE NAME NAME."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.component_base.errors import BadSettings
from webhook.core.api.longhorn import LONGHORN_API_VERSION
from webhook.core.api.node_selector import is_node_name

_EXPECTED: Final = "expected vm/NAME, vmi/NAME, pod/NAME or volume/NAME"


class Type(Struct, frozen=True, kw_only=True):
    """A kind of objects that explain reads by name; `product` installs it. Users can ask for kinds with spellings."""

    kind: str
    plural: str
    api_version: str
    spellings: tuple[str, ...] = ()
    product: str = "Kubernetes"

    @property
    def title(self) -> str:
        """Resource and group, as in an RBAC rule."""
        group = self.api_version.rpartition("/")[0]
        return f"{self.plural}.{group}" if group else self.plural

    def path(self, within: str, name: str) -> str:
        """Return the URL path of the object `name`. `within` is the path's part for the namespace, or empty."""
        root = "/apis" if "/" in self.api_version else "/api"
        return "/".join(filter(None, (root, self.api_version, within, self.plural, name)))


VIRTUAL_MACHINE: Final = Type(
    kind="VirtualMachine",
    plural="virtualmachines",
    api_version="kubevirt.io/v1",
    spellings=("vm", "vms", "virtualmachine", "virtualmachines"),
    product="KubeVirt",
)
VIRTUAL_MACHINE_INSTANCE: Final = Type(
    kind="VirtualMachineInstance",
    plural="virtualmachineinstances",
    api_version="kubevirt.io/v1",
    spellings=("vmi", "vmis", "virtualmachineinstance", "virtualmachineinstances"),
    product="KubeVirt",
)
POD: Final = Type(kind="Pod", plural="pods", api_version="v1", spellings=("po", "pod", "pods"))
VOLUME: Final = Type(
    kind="Volume",
    plural="volumes",
    api_version=LONGHORN_API_VERSION,
    spellings=("volume", "volumes", "lhv"),
    product="Longhorn",
)
SETTING: Final = Type(kind="Setting", plural="settings", api_version=LONGHORN_API_VERSION, product="Longhorn")
PERSISTENT_VOLUME: Final = Type(kind="PersistentVolume", plural="persistentvolumes", api_version="v1")
STORAGE_CLASS: Final = Type(kind="StorageClass", plural="storageclasses", api_version="storage.k8s.io/v1")
WEBHOOK_CONFIGURATION: Final = Type(
    kind="MutatingWebhookConfiguration",
    plural="mutatingwebhookconfigurations",
    api_version="admissionregistration.k8s.io/v1",
)
_KUBEVIRT: Final = ("", ".kubevirt.io", ".v1.kubevirt.io")  # resource, resource.group, resource.version.group
_LONGHORN: Final = ("", ".longhorn.io", ".v1beta2.longhorn.io")
_GROUPS: Final = (
    (VIRTUAL_MACHINE, _KUBEVIRT),
    (VIRTUAL_MACHINE_INSTANCE, _KUBEVIRT),
    (VOLUME, _LONGHORN),
    (POD, ("",)),
)
_TYPES: Final = {
    spelling + group: type_ for type_, groups in _GROUPS for spelling in type_.spellings for group in groups
}


class Named(NamedTuple):
    """One object that the user asked for. `str` returns the words that the user typed."""

    type: Type
    name: str
    typed: str

    def __str__(self) -> str:
        return self.typed


def parse(words: Sequence[str]) -> tuple[Named, ...]:
    """Return the objects that the words name.

    Raises:
        BadSettings: words that are not TYPE/NAME; one message for each, with the expected form.
    """
    if words and "/" not in words[0] and words[0].lower() in _TYPES:
        pairs = [(words[0], name, f"{words[0]}/{name}") for name in words[1:]]
        if not pairs:
            raise BadSettings(f"got {words[0]!r} without a name: {_EXPECTED}")
    else:
        pairs = [(word.partition("/")[0], word.partition("/")[2], word) for word in words]
    problems = [problem for pair in pairs if (problem := _problem(*pair))]
    if problems:
        raise BadSettings(*problems)
    return tuple(Named(_TYPES[type_.lower()], name, typed) for type_, name, typed in pairs)


def _problem(type_: str, name: str, typed: str) -> str | None:
    if type_.lower() not in _TYPES:
        return f"got {typed!r}: {_EXPECTED}"
    if not is_node_name(name):  # the same rule: a DNS subdomain
        return f"got {typed!r}: {name!r} can't be a name in Kubernetes; {_EXPECTED}"
    return None
