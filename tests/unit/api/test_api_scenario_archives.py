"""Import and export: what goes out comes in again as the same version, and nothing worse does."""

from __future__ import annotations

import io
import json
import stat
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from tests.unit.api.conftest import Api

URL = "/api/v1/scenarios"
YAML = "key: zipped\ntitle: x\nticket_title: x\nhosts: [web-01]\n"


def archive(files: Mapping[str, str | bytes], **attributes: int) -> bytes:
    """A ZIP archive; `attributes` are those of Unix by a file's name."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as opened:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in files.items():
            info = zipfile.ZipInfo("x")
            info.filename = name
            info.external_attr = attributes.get(name, 0o100644) << 16
            opened.writestr(info, content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def left(api: Api) -> list[Path]:
    """What uploads left behind."""
    folder = api.service.place.home / "uploads"
    return list(folder.iterdir()) if folder.exists() else []


async def imported(client: httpx.AsyncClient, content: bytes) -> httpx.Response:
    return await client.post(
        f"{URL}/import", content=content, headers={"content-type": "application/zip"}
    )


@pytest.mark.parametrize("top", ["", "zipped/"])
async def test_an_archive_comes_in_and_goes_out_as_the_same_version(api: Api, top: str) -> None:
    """[S6.12]"""
    client = api.client("edit")
    text = YAML + "files:\n  - from: etc/a.conf\n    to: /etc/a.conf\n"
    files: dict[str, str | bytes] = {
        f"{top}scenario.yaml": text,
        f"{top}etc/a.conf": b"\0a",
        f"{top}agents/b.json": "{}",
    }
    answer = await imported(client, archive({**files, "__MACOSX/x": "y"}))
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert [file["path"] for file in told["files"]] == ["agents/b.json", "etc/a.conf"]
    out = await client.get(f"{URL}/zipped/export?format=zip")
    assert out.headers["content-disposition"] == 'attachment; filename="zipped.zip"'
    assert (await client.get(f"{URL}/zipped/export?format=zip")).content == out.content
    await client.delete(f"{URL}/zipped", headers={"If-Match": answer.headers["etag"]})
    again = await imported(client, out.content)
    assert (again.status_code, again.json()["version"]) == (201, told["version"])
    assert left(api) == []


async def test_an_import_replaces_only_what_its_sender_saw(api: Api) -> None:
    client = api.client("edit")
    first = await imported(client, archive({"scenario.yaml": YAML, "old": "1"}))
    assert (await imported(client, archive({"scenario.yaml": YAML}))).status_code == 409
    content = archive({"scenario.yaml": YAML, "new": "2"})
    etag = first.headers["etag"]
    done = await client.post(f"{URL}/import", content=content, headers={"If-Match": etag})
    assert (done.status_code, done.json()["number"]) == (200, 2)
    assert [file["path"] for file in done.json()["files"]] == ["new"]
    stale = await client.post(
        f"{URL}/import", content=archive({"scenario.yaml": YAML}), headers={"If-Match": etag}
    )
    assert stale.status_code == 412


@pytest.mark.parametrize("format", ["yaml", "json", "zip"])
async def test_a_scenario_of_a_pack_goes_out_in_every_format(api: Api, format: str) -> None:
    """As an archive with its files it comes in again, but for its key, as the same scenario."""
    client = api.client("edit")
    rows = (await client.get(f"{URL}?origin=pack")).json()["scenarios"]
    for row in rows:
        answer = await client.get(f"{URL}/{row['key']}/export?format={format}")
        assert answer.status_code == 200
        assert (await client.post(f"{URL}/import", content=answer.content)).status_code in (
            409,
            422,
        )


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"scenario.yaml": YAML, "../evil": "x"}, "path inside"),
        ({"a/scenario.yaml": YAML, "a/../../evil": "x"}, "path inside"),
        ({"scenario.yaml": YAML, "/etc/evil": "x"}, "path inside"),
        ({"scenario.yaml": YAML, "a\\..\\evil": "x"}, "path inside"),
        ({"scenario.yaml": YAML, "a//b": "x"}, "path inside"),
        ({"scenario.yaml": YAML, "a": "x", "a/b": "y"}, "a file and a folder"),
        ({"scenario.yaml": YAML, "a\x1bb": "x"}, "cannot be shown"),
        ({"a/scenario.yaml": YAML, "b": "x"}, "beside"),
        ({"a/scenario.yaml": YAML, "b/scenario.yaml": YAML}, "more than one"),
        ({"scenario.yaml": YAML, "scenario.json": "{}"}, "more than one"),
        ({"readme": "x"}, "no scenario"),
        ({"a/b/scenario.yaml": YAML}, "no scenario"),
        ({"scenario.yaml": YAML, **{str(n): "" for n in range(201)}}, "more than 200 files"),
        ({"scenario.yaml": YAML, "big": b"0" * (16 * 1024 * 1024 + 1)}, "larger than 16 MiB"),
        (
            {"scenario.yaml": YAML, **{str(n): b"0" * (16 * 1024 * 1024) for n in range(5)}},
            "more than 64 MiB",
        ),
        ({"scenario.yaml": YAML + "titel: x\n"}, "titel"),
        ({"scenario.yaml": b"\xff"}, "not UTF-8"),
    ],
)
async def test_an_archive_that_is_made_to_do_harm_is_refused(
    api: Api, tmp_path: Path, files: Mapping[str, str | bytes], words: str
) -> None:
    """[S6.11]"""
    answer = await imported(api.client("edit"), archive(files))
    assert answer.status_code == 422, answer.text
    assert words in answer.text
    assert str(tmp_path) not in answer.text
    assert left(api) == []
    assert not list(tmp_path.rglob("evil"))
    assert (await api.client("read").get(f"{URL}/zipped")).status_code == 404


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
async def test_an_archive_with_a_link_is_refused(api: Api, kind: int) -> None:
    """[S6.11]"""
    content = archive({"scenario.yaml": YAML, "link": "/etc/passwd"}, link=kind | 0o777)
    answer = await imported(api.client("edit"), content)
    assert (answer.status_code, "a link or no regular file" in answer.text) == (422, True)


def tampered() -> dict[str, bytes]:
    whole = archive({"scenario.yaml": YAML, "a": "x" * 1000})
    twice = archive({"scenario.yaml": YAML, "aa": "x", "ab": "y"}).replace(b"ab", b"aa")
    sizes = whole.replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    encrypted = bytearray(whole)
    at = whole.rindex(b"PK\x01\x02")
    encrypted[at + 8] |= 1
    return {
        "cut": whole[:-30],
        "twice": twice,
        "sizes": sizes,
        "encrypted": bytes(encrypted),
        "entries": whole[:4] + b"PK\x01\x02" * 5000,
        "bad data": whole[:60] + b"\xff" * 8 + whole[68:],
        "directory": b"PK\x05\x06" + b"\xff" * 18,
        "empty": b"PK\x05\x06" + b"\0" * 18,
    }


@pytest.mark.parametrize("name", sorted(tampered()))
async def test_a_damaged_archive_is_refused(api: Api, tmp_path: Path, name: str) -> None:
    """[S6.11]"""
    answer = await imported(api.client("edit"), tampered()[name])
    assert answer.status_code == 422, answer.text
    assert str(tmp_path) not in answer.text
    assert left(api) == []


async def test_a_text_is_imported_too(api: Api) -> None:
    client = api.client("edit")
    assert (await client.post(f"{URL}/import", content=YAML)).status_code == 201
    other = json.dumps({"key": "other", "title": "x", "ticket_title": "x"})
    assert (await client.post(f"{URL}/import", content=other)).status_code == 201
    wrong = await client.post(f"{URL}/import", content=YAML.replace("title: x\n", "", 1))
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (422, "title")
