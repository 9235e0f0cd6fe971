"""JSONPath templates: what kubectl itself prints for each of them, and texts that are not templates."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from controlplane import build
from support.waits import MAX_WAIT_SECONDS

from webhook.jsonpath.steps import NoSuchIndex
from webhook.jsonpath.template import Template

KUBECONFIG: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "b",
    "preferences": {},
    "clusters": [
        {"name": "c1", "cluster": {"server": "https://a:1"}},
        {"name": "c2", "cluster": {"server": "https://b:2", "insecure-skip-tls-verify": True}},
    ],
    "contexts": [
        {"name": "a", "context": {"cluster": "c1", "user": "u", "namespace": "x"}},
        {"name": "b", "context": {"cluster": "c2", "user": "v"}},
        {"name": "d", "context": {"cluster": "c2", "user": "u"}},
    ],
    "users": [{"name": "u", "user": {"username": "me"}}, {"name": "v", "user": {}}],
}
TEMPLATES: Final = (
    "plain",
    "a {.kind} b",
    "{$.kind}{@.kind}",
    "{.nothing}|{.kind.nothing}",
    "{.current-context}{['current-context']}",
    "{.contexts[*].name}",
    "{.contexts[0].name}{.contexts[-1].name}",
    "{.contexts[0:2].name} {.contexts[1:].name} {.contexts[:-1].name} {.contexts[::2].name}",
    "{.contexts[0,2].name}",
    "{.contexts[0]['name','context']}",
    "{.contexts}",
    "{@}",
    "{.contexts..name}",
    "{..server}|{..cluster..server}|{.contexts..user}",
    "{.clusters[*].cluster.insecure-skip-tls-verify}",
    '{range .contexts[*]}{.name}{"\\t"}{.context.user}{"\\n"}{end}',
    "{range .contexts[*]}{range .context}{.user}-{end}{end}",
    "{.contexts[?(@.name=='b')].context.cluster}",
    '{.contexts[?(@.context.cluster=="c2")].name}',
    "{.contexts[?(@.name!='b')].name}",
    "{.contexts[?(@.name>'a')].name}",
    "{.contexts[?(@.context.namespace)].name}",
    "{.clusters[?(@.cluster.insecure-skip-tls-verify==true)].name}",
    '{range .contexts[?(@.context.user=="u")]}{@.name} {end}',
    "{'x'}{\"y\\tz\"}",
    "{.contexts.name}",
    "{.contexts[7:7].name}|{.nothing[7]}",
    "{.contexts[?(@.name=='a||b')].name}|{.contexts[?(@.nothing[4])].name}",
)
REFUSED: Final = (
    "",
    "{.contexts[9].name}",
    "{.contexts[-4].name}",
    "{.contexts[0:9].name}",
    "{.contexts[2:1].name}",
    "{.contexts[0,9].name}",
    "{range .contexts[3]}x{end}",
    "{.kind[0]}",
    "{.contexts[?(@.name=='a' || @.name=='b')].name}",
    "{.contexts[?(@.name=='a' && @.name=='b')].name}",
    "{.contexts[?(@.context[4]==1)].name}",
)


def kubectl(file: Path, *words: str, code: int = 0) -> str:
    """What `kubectl config view` prints of a kubeconfig; it asks no server."""
    environment = {"KUBECONFIG": str(file), "PATH": os.defpath, "HOME": str(file.parent)}
    done = subprocess.run(  # noqa: S603 - a program that we have built
        [build.kubectl(), "config", "view", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_WAIT_SECONDS,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_prints_what_kubectl_prints(template: str, tmp_path: Path) -> None:
    """Text, paths, subscripts, slices, unions, filters, descendants, ranges and quoted texts."""
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(KUBECONFIG))
    value = json.loads(kubectl(file, "-o", "json"))
    assert Template(template).render(value) == kubectl(file, "-o", f"jsonpath={template}")


@pytest.mark.parametrize("template", REFUSED)
def test_a_template_is_refused_where_kubectl_refuses_it(template: str, tmp_path: Path) -> None:
    """Before anything is printed: an index that a list does not have, an operator that there is not, no template."""
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(KUBECONFIG))
    value = json.loads(kubectl(file, "-o", "json"))
    with pytest.raises((ValueError, NoSuchIndex), match="expected"):
        Template(template).render(value)
    assert kubectl(file, "-o", f"jsonpath={template}", code=1) == ""


ALONE: Final[dict[str, tuple[str, Any, str]]] = {
    "null": ("{.node}|{.a[*]}", {"node": None, "a": [None, 1]}, "| 1"),
    "an item that a filter asks for": ("{.a[?(@.b[3])]}|{.a[?(@.b[0])].b}", {"a": [{"b": [1]}]}, "|[1]"),
    "an escaped dot": (r"{.labels.kubevirt\.io/vm}", {"labels": {"kubevirt.io/vm": "db"}}, "db"),
    "values of an object": ("{.a.*}{.b.*}", {"a": {"x": 1, "y": 2}, "b": 3}, "1 2"),
    "a text and a number": ('{.a[?(@.n<2)].n}{.a[?(@.n>="b")].n}', {"a": [{"n": "b"}, {"n": 1}]}, "1b"),
    "two paths": ("{.a[?(@.x==@.y)].x}", {"a": [{"x": 1, "y": 1}, {"x": 2, "y": 1}]}, "1"),
    "no list": ("{.a[?(@.x)]}", {"a": {"x": 1}}, ""),
    "a dot before a bracket": ("{.[0]}", [7], "7"),
}


@pytest.mark.parametrize(("template", "value", "printed"), ALONE.values(), ids=ALONE)
def test_a_template_on_other_values(template: str, value: Any, printed: str) -> None:
    """A null is as a field that is not there."""
    assert Template(template).render(value) == printed


WRONG: Final = {
    "{.a": "without its other half",
    ".a}": "without its other half",
    "{}": "an empty expression",
    "{range .a[*]}": "{range} without {end}",
    "{end}": "{end} without {range}",
    "{.a b}": "is no step of a path",
    "{.a[x]}": "[x]: expected [NUMBER]",
    "{.a[]}": "[]: expected [NUMBER]",
    "{.a[1:2:3:4]}": "[1:2:3:4]: expected [NUMBER]",
    "{.a[?(@.b==c)]}": "'c' in a filter: expected a quoted text",
}


@pytest.mark.parametrize(("template", "problem"), WRONG.items(), ids=WRONG)
def test_a_text_that_is_not_a_template_is_refused(template: str, problem: str) -> None:
    """With what was expected."""
    with pytest.raises(ValueError, match="expected") as caught:
        Template(template)
    assert problem in str(caught.value)
