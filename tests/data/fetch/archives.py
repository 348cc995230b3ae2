"""Archives, honest and hostile, made in memory."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping


def zip_of(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def tar_of(files: Mapping[str, bytes]) -> bytes:
    return tar_of_members(*((tarfile.TarInfo(name), content) for name, content in files.items()))


def tar_of_members(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def tar_link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> bytes:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = kind, target
    inside = tarfile.TarInfo(f"{name}/passwd")
    return tar_of_members((link, b""), (inside, b"root"))


def zip_link(name: str, target: str) -> bytes:
    link = zipfile.ZipInfo(name)
    link.create_system, link.external_attr = 3, 0o120777 << 16
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(link, target)
    return packed.getvalue()


def tar_with_endless_header() -> bytes:
    """A tar whose first header announces 16 MiB of further header, all zeros."""
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 16 << 20
    return gzip.compress(header.tobuf() + bytes(16 << 20))
