"""kubectl as a subprocess: found, called with one kubeconfig and context, its failures in words. Thin; decides nothing.

Few calls: each costs its start (60 to 120 ms), so objects travel in lists.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standalone.faults import StandaloneError, UnreachableError
from standalone.plan import revealed

FIELD_MANAGER = "slipway"
LOCAL_CONTEXT = "slipway-local"


@dataclass(frozen=True)
class Answer:
    """What one call printed and how it ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Target:
    """The cluster that a kubeconfig chooses."""

    context: str
    server: str

    def __str__(self) -> str:
        return f'context "{self.context}", server {self.server}'


@dataclass(frozen=True)
class Kubectl:
    """One cluster as kubectl reaches it."""

    binary: str
    kubeconfig: str | None
    context: str | None

    def call(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60, applyset: bool = False) -> Answer:
        """Runs kubectl to its end. Raises UnreachableError when there is no answer, or no such context, in words."""
        command, environment = self._command(arguments, applyset)
        try:
            done = subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise UnreachableError(f"kubectl {arguments[0]} had no answer from {self} for {timeout_s:.0f} s.") from error
        answer = Answer(done.returncode, done.stdout, done.stderr.strip())
        if answer.code:
            self._refuse_unreachable(answer.err)
        return answer

    def stream(self, *arguments: str, stdin: str, applyset: bool = False) -> Iterator[str]:
        """Runs kubectl and gives each line it prints as it comes. Raises StandaloneError with its error output when it fails."""
        command, environment = self._command(arguments, applyset)
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            with ThreadPoolExecutor(1) as reader:
                said = reader.submit(process.stderr.read)
                process.stdin.write(stdin)
                process.stdin.close()
                for line in process.stdout:
                    yield line.rstrip("\n")
                errors = said.result().strip()
        if process.returncode:
            self._refuse_unreachable(errors)
            raise StandaloneError(errors or f"kubectl {arguments[0]} ended with {process.returncode}.")

    def objects(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> list[dict[str, Any]]:
        """A call with `-o json`, as the list of objects it gives. Raises StandaloneError with kubectl's words when it fails."""
        answer = self.call(*arguments, "-o", "json", stdin=stdin, timeout_s=timeout_s)
        if answer.code:
            raise StandaloneError(answer.err)
        return decoded(answer.out)

    def contexts(self) -> list[str]:
        """The contexts that the kubeconfig has."""
        command, environment = Kubectl(self.binary, self.kubeconfig, None)._command(("config", "get-contexts", "-o", "name"), False)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout.split()

    def target(self) -> Target:
        """The context that is used, by name, and its server. Asks the kubeconfig only. Raises UnreachableError where none is chosen."""
        found = self.objects("config", "view", "--minify")
        config: dict[str, Any] = found[0] if found else {}
        clusters: list[dict[str, Any]] = config.get("clusters") or []
        return Target(
            str(config.get("current-context") or self.context or ""), str(clusters[0]["cluster"].get("server", "")) if clusters else ""
        )

    def _command(self, arguments: tuple[str, ...], applyset: bool) -> tuple[list[str], dict[str, str]]:
        environment = {**os.environ, **({"KUBECONFIG": self.kubeconfig} if self.kubeconfig else {})}
        if applyset:
            environment["KUBECTL_APPLYSET"] = "true"
        where = ["--context", self.context] if self.context else []
        return [self.binary, *arguments, *where], environment

    def _refuse_unreachable(self, said: str) -> None:
        low = said.lower()
        if "context" in low and "does not exist" in low:
            start = " Start the local cluster with `make up`." if self.context == LOCAL_CONTEXT else ""
            there = ", ".join(self.contexts()) or "none"
            raise UnreachableError(
                f'{self.kubeconfig or "The kubeconfig"} has no context "{self.context}". There are: {there}. Choose with --context, '
                f"or give another file with --kubeconfig.{start}"
            )
        signs = (
            "refused",
            "no such host",
            "i/o timeout",
            "no route to host",
            "connection reset",
            "tls handshake",
            "deadline exceeded",
            "eof",
        )
        if any(sign in low for sign in signs) and ("unable to connect" in low or "the connection to the server" in low or "dial" in low):
            raise UnreachableError(f"No cluster answers at {self}: {said.splitlines()[-1]}")
        if "x509" in low or "must be logged in" in low or "unauthorized" in low or "getting credentials" in low:
            raise UnreachableError(f"{self} does not accept these credentials: {said.splitlines()[-1]}")
        if "current-context" in low or "localhost:8080" in low:
            raise UnreachableError(f"No cluster is chosen ({self}): start the local one with `make up`, or give --context or --kubeconfig.")

    def __str__(self) -> str:
        chosen = f'context "{self.context}"' if self.context else "the current context"
        return f"{chosen} of {self.kubeconfig or 'the default kubeconfig'}"


def find(root: Path, binary: str | None, kubeconfig: str | None, context: str | None) -> Kubectl:
    """kubectl and kubeconfig by precedence: option, environment, the local cluster's own, PATH and kubectl's default.

    The local cluster's kubeconfig stands in only where no other context is named, and for its own context it goes before KUBECONFIG.

    Raises UnreachableError when there is no kubectl.
    """
    local = root / ".slipway"
    for candidate in (binary, os.environ.get("KUBECTL"), str(local / "bin" / "kubectl"), "kubectl"):
        if candidate and (found := shutil.which(candidate)):
            break
        if candidate and candidate in (binary, os.environ.get("KUBECTL")):
            raise UnreachableError(f"{candidate}: no such program (--kubectl or KUBECTL).")
    else:
        raise UnreachableError("There is no kubectl: put it on PATH, or give --kubectl. `make up` makes one for the local cluster.")
    if kubeconfig and not Path(kubeconfig).exists():
        raise UnreachableError(f"{kubeconfig}: no such file (--kubeconfig).")
    mine = local / "kubeconfig"
    own = str(mine) if context in (None, LOCAL_CONTEXT) and mine.exists() else None
    said = os.environ.get("KUBECONFIG")
    return Kubectl(found, kubeconfig or (own or said if context == LOCAL_CONTEXT else said or own), context)


def document_list(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Manifests as one JSON list for kubectl's standard input, secrets as they are: for kubectl's eyes only."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [revealed(one) for one in manifests]})


def decoded(text: str) -> list[dict[str, Any]]:
    """kubectl's JSON as a list, whether it printed nothing, one object, several, or a List."""
    found: list[dict[str, Any]] = []
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        found += value["items"] if value.get("kind", "").endswith("List") and "items" in value else [value]
    return found
