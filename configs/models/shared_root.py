"""Config of the versioned root that jobs and logins see: its versions, and what each is filled from."""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import AtMost, ImageReference, Matching, Model, Name, Whole, refuse

_RECORDS = (".carried", ".lock", ".manifest", ".new", ".part", ".tar", ".unused")
"""Ends of names in the folders sources and filling of the shared root; see programs/root_fill/place.py."""


def _free_ending(value: str) -> str:
    if value.endswith(_RECORDS):
        raise refuse(f"{quoted(value)} ends like the records that lie beside a version ({', '.join(_RECORDS)}).")
    return value


RootVersionName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[A-Za-z0-9][A-Za-z0-9._-]*",
            "a version name: letters, digits, dots, dashes, underscores, first a letter or digit",
            64,
            "2026-01",
        )
    ),
    AfterValidator(_free_ending),
]
"""A folder on the shared volume, and a word of `srun --root-version`."""
TarUrl = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?/[\w.~:/?#\[\]@!$&'()*+,;=%-]+|file:///shared(/(?!\.\.?(/|$))[\w.@+-]+)+",
            "where a tar is: https://host/path, http://host/path, or file:///shared/path for one on the shared volume",
            2000,
            "https://files.example.com/root-2026-01.tar.zst",
        )
    ),
]
Sha256 = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[0-9a-f]{64}",
            "a SHA-256 digest: 64 hexadecimal digits, as sha256sum prints them",
            64,
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
        )
    ),
]
PackageName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9][A-Za-z0-9.+~:-]*)?",
            "a Debian package: lower-case letters, digits, plus, dots and dashes, with =VERSION if fixed",
            200,
            "r-base",
        )
    ),
]
Days = Annotated[Whole, Field(ge=0), AfterValidator(AtMost(3650))]


class RootTar(Model):
    """A tar of a root file system: plain, or compressed with gzip, xz or zstd."""

    url: TarUrl
    """Where the tar is: https://, http://, or file:///shared/... for a file on the shared volume."""
    sha256: Sha256
    """SHA-256 digest of the file as it is downloaded, as sha256sum prints it."""


class RootVersion(Model):
    """One version of the root that jobs and logins see; filled once, from an image or a tar, and never again."""

    name: RootVersionName
    """Name of the version, as in `srun --root-version`."""
    image: ImageReference | None = None
    """Image that it is filled from, with the same release of Slurm as the image of the Slurm roles. Default: `images.root`, unless `tar` is
    set."""
    tar: RootTar | None = None
    """Tar that it is filled from, in place of an image."""
    carry_from: Name | None = Field(default=None, examples=["2025-12"])
    """Version whose later changes are carried over when this one is filled: packages, files and system users that were added to it.
    Default: none."""


class Root(Model):
    """The versioned root: jobs and logins see one version of it as `/`, instead of their pod's image."""

    versions: tuple[RootVersion, ...] = Field(default=(), examples=[[{"name": "2026-01", "image": "registry.example/root:2026-01"}]])
    """The versions that exist side by side. Default: one, filled from `images.root` and named after its tag."""
    current: RootVersionName | None = None
    """Version that new jobs and sessions get; running jobs keep theirs. Default: the last of `versions`."""
    packages: tuple[PackageName, ...] = Field(default=(), examples=[["r-base", "ffmpeg"]])
    """Debian packages that the current version has beside those of its image. They are installed before it becomes current, and in the
    running one when the list grows; a package that leaves the list stays."""
    keep_days: Days = Field(default=7, examples=[14])
    """Days that a version stays after it is no longer declared, or longer while a job uses it. Older sessions lose their root."""
