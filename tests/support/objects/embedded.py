"""The cluster of a row of tests/cases as webhook.core reads it: through YAML, as a user would write it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import cast

import yaml
from support.objects.builders import LONGHORN_NAMESPACE
from support.objects.corpus import Case

from webhook.core.opt_in import Mode, OptInAll, Policy
from webhook.objects.cluster import Cluster
from webhook.objects.documents import Document, read_documents
from webhook.objects.files import read_objects


def policy(case: Case, *, audit: bool = False) -> Policy:
    """Return the settings of a row's cluster."""
    return Policy(Mode(case.mode), opt_in_all=cast("OptInAll", case.opt_in_all), audit=audit)


@cache
def embedded(case: Case) -> Cluster:
    """Return the embedded cluster of a row."""
    described = chain.from_iterable(map(_documents, map(json.dumps, case.objects)))
    return Cluster(read_objects(described), longhorn_namespace=LONGHORN_NAMESPACE)


@cache
def _documents(described: str) -> Sequence[Document]:
    """Rows share most of their objects. Each is read once."""
    return tuple(read_documents(yaml.dump(json.loads(described), Dumper=yaml.CSafeDumper), "cluster.yaml"))
