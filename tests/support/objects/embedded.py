"""The cluster of a row of tests/cases as webhook.core reads it: through YAML, as a user would write it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import chain

import yaml
from support.objects.builders import LONGHORN_NAMESPACE
from support.objects.corpus import Case

from webhook.objects.documents import Document, read_documents
from webhook.objects.manifests import Manifests
from webhook.objects.objects import read_objects


@cache
def embedded(case: Case) -> Manifests:
    """Return the embedded cluster of a row."""
    described = chain.from_iterable(map(_documents, map(json.dumps, case.objects)))
    return Manifests(read_objects(described), longhorn_namespace=LONGHORN_NAMESPACE)


@cache
def _documents(described: str) -> Sequence[Document]:
    """Rows share most of their objects. Each is read once."""
    return tuple(read_documents(yaml.dump(json.loads(described), Dumper=yaml.CSafeDumper), "cluster.yaml"))
