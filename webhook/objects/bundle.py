"""ClusterBundle: the record that says where, when and how completely the objects of a cluster were read.

It is in the file that `bundle` writes. With it an object that did not exist differs from one that could not be read.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from webhook.objects.kinds import APIResource

BUNDLE_API_VERSION: Final = "kubevirt-scheduler/v1"
BUNDLE_KIND: Final = "Bundle"


class BundleList(Struct, rename="camel", frozen=True, kw_only=True):
    """One kind that the program listed.

    Attributes:
        api_version: of the objects.
        kind: of the objects.
        resource: the kind as in an RBAC rule.
        objects: how many objects are in the bundle.
        problem: why the objects could not be listed; empty if they were.
    """

    api_version: str
    kind: str
    resource: str
    objects: int = 0
    problem: str = ""


class ClusterBundle(Struct, rename="camel", frozen=True, kw_only=True):
    """Where, when and how completely a bundle was made.

    Attributes:
        cluster: the API server, as the commands name it.
        at: the time, as RFC 3339.
        namespace: the default namespace of the user who made the bundle.
        longhorn_namespace: the namespace from which Longhorn's objects were listed.
        lists: each kind.
    """

    cluster: str
    at: str
    namespace: str
    longhorn_namespace: str
    lists: list[BundleList]

    def problem(self, kind: APIResource[Any]) -> str:
        """Return why the objects of a kind, or of a part of it, could not be listed; empty if they were.

        The bundle of an older version can lack the list of a kind.
        """
        listed = {each.resource: each.problem for each in self.lists if each.kind == kind.kind}
        lacking = f"the bundle has no list of {kind.kind}"
        return listed.get(kind.title, listed.get(kind.resource, lacking))
