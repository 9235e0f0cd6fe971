"""Names of objects as users of kubectl write them: TYPE/NAME, several of these, TYPE NAME NAME, or the NAME of a VM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from click import UsageError

from webhook.core.api.affinity import is_node_name
from webhook.objects.kinds import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, APIResource

_VM: Final = "vm"
_EXPECTED: Final = "expected vm/NAME, vmi/NAME or pod/NAME"


_KUBEVIRT: Final = ("", ".kubevirt.io", ".v1.kubevirt.io")  # resource, resource.group, resource.version.group
_SPELLINGS: Final[Sequence[tuple[APIResource[Any], tuple[str, ...], tuple[str, ...]]]] = (
    (VIRTUAL_MACHINE, _KUBEVIRT, ("vm", "vms", "virtualmachine", "virtualmachines")),
    (VIRTUAL_MACHINE_INSTANCE, _KUBEVIRT, ("vmi", "vmis", "virtualmachineinstance", "virtualmachineinstances")),
    (POD, ("",), ("po", "pod", "pods")),
)
_TYPES: Final = {
    spelling + group: kind for kind, groups, spellings in _SPELLINGS for spelling in spellings for group in groups
}


class Named(NamedTuple):
    """One object that the user asked for. `str` returns the words that the user typed."""

    kind: APIResource[Any]
    name: str
    typed: str

    def __str__(self) -> str:
        return self.typed


def parse(words: Sequence[str]) -> tuple[Named, ...]:
    """Return the objects that the words name.

    Raises:
        UsageError: a word that is neither TYPE/NAME nor a name.
    """
    if words and "/" not in words[0] and words[0].lower() in _TYPES:
        pairs = [(words[0], name, f"{words[0]}/{name}") for name in words[1:]]
        if not pairs:
            raise UsageError(f"got {words[0]!r} without a name: {_EXPECTED}")
    else:
        parts = ((word, (word if "/" in word else f"{_VM}/{word}").partition("/")) for word in words)
        pairs = [(type_, name, word) for word, (type_, _, name) in parts]
    for type_, name, typed in pairs:
        if type_.lower() not in _TYPES:
            raise UsageError(f"got {typed!r}: {_EXPECTED}")
        if not is_node_name(name):  # the same rule: a DNS subdomain
            raise UsageError(f"got {typed!r}: {name!r} can't be a name in Kubernetes; {_EXPECTED}")
    return tuple(Named(_TYPES[type_.lower()], name, typed) for type_, name, typed in pairs)
