"""What the image leaves out of its packages: the programs import everything without it, and each license stays."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import kubernetes_asyncio
import pytest
import slim

ROOT: Final = Path(__file__).parents[2]
OURS: Final = ("webhook", "certs")
IMPORTED: Final = re.compile(r"^\s*(?:from|import) (kubernetes_asyncio[.\w]*)", re.MULTILINE)
IMPORT_ALL: Final = """
import importlib, pkgutil, sys
for package in map(importlib.import_module, ("webhook", "certs")):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module.name.endswith(".__main__") or importlib.import_module(module.name)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(sys.modules["kubernetes_asyncio"].__file__)
print(sum(name.startswith("kubernetes_asyncio.client.") for name in sys.modules))
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of kubernetes-asyncio, as the image has it."""
    source = Path(kubernetes_asyncio.__file__).parent
    copy = tmp_path_factory.mktemp("packages") / source.name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    slim.drop_generated_code(copy)
    slim.drop_unread_files(copy.parent)
    return copy


def named_by_us() -> set[str]:
    """The modules of the client that our sources import, anywhere in a module."""
    sources = [file.read_text("utf-8") for package in OURS for file in (ROOT / package).rglob("*.py")]
    return {name for source in sources for name in IMPORTED.findall(source)}


def test_every_module_of_ours_imports_what_is_left(client: Path) -> None:
    """In a process that has this copy only; the few modules of the client are imported, and no generated one."""
    named = named_by_us()
    assert len(named) > 3
    places = [str(client.parent), str(ROOT)]
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", f"import sys; sys.path[:0] = {places}{IMPORT_ALL}", *named],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    place, count = done.stdout.split()
    assert Path(place) == client / "__init__.py"
    assert int(count) < 10


def test_a_client_in_another_shape_fails_the_build(client: Path) -> None:
    """So that nobody ships an image that lacks something else than was meant."""
    with pytest.raises(FileNotFoundError, match="client/api"):
        slim.drop_generated_code(client)
    for name in ("client/api", "dynamic", "leaderelection", "stream", "utils", "watch"):
        (client / name).mkdir()
    with pytest.raises(SystemExit, match=r"__init__\.py imports no generated code"):
        slim.drop_generated_code(client)


UNREAD: Final = {
    "uvloop/loop.pyx": True,
    "yaml/_yaml.h": True,
    "aiohttp/py.typed": False,
    "certifi/tests/test_where.py": True,
    "kubernetes_asyncio/config/kube_config_test.py": True,
    "CHANGELOG.md": True,
    "aiohttp-3.0.dist-info/RECORD": True,
    "aiohttp-3.0.dist-info/METADATA": False,
    "aiohttp-3.0.dist-info/licenses/LICENSE.txt": False,
    "aiohttp-3.0.dist-info/licenses/tests/NOTICE": False,
    "attrs-26.0.dist-info/AUTHORS.md": False,
    "certifi/cacert.pem": False,
    "testing.py": False,
    "tests.py": False,
}


@pytest.mark.parametrize(("file", "unread"), UNREAD.items(), ids=UNREAD)
def test_what_is_removed(file: str, *, unread: bool) -> None:
    """By name: nothing that a program reads, and no license."""
    assert slim.is_unread(Path(file)) is unread


def test_a_changed_module_says_so(client: Path) -> None:
    """The client's license asks for it."""
    for name in ("__init__.py", "client/__init__.py", "client/models/__init__.py"):
        assert (client / name).read_text("utf-8").startswith("# Changed for the image of kubevirt-coschedule: ")
