"""A host behind its lease answers like the host itself, until the lease is lost."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from opsdrill.errors import HostUnreachable
from opsdrill.hosts.drivers.fake import FakeFleet, FakeHost
from opsdrill.hosts.drivers.fake_script import FakeScript, Scripted
from opsdrill.hosts.leased import LeasedFleet
from opsdrill.hosts.session import SessionEnd, SessionRequest
from opsdrill.model.host import Command


@dataclass
class Grant:
    lost: str | None = None


async def test_a_host_answers_while_its_lease_holds() -> None:
    inner = FakeHost("web-01", FakeScript(otherwise=Scripted(exit_code=0)))
    async with LeasedFleet(FakeFleet([inner]), Grant()) as fleet:
        host = fleet.hosts["web-01"]
        assert host.facts == inner.facts
        assert (await host.run(Command(run="true"))).exit_code == 0
        await host.mark()
        await host.put("/etc/motd", b"hello", mode=0o600, owner=None)
        assert await host.get("/etc/motd", limit=2) == b"he"
        changed = await host.changed()
        assert changed is not None
        assert [file.path for file in changed] == ["/etc/motd"]
    assert (await inner.run(Command(run="true"))).unreachable


async def test_nothing_reaches_a_host_whose_lease_was_lost() -> None:
    inner = FakeHost("web-01", FakeScript(otherwise=Scripted(exit_code=0)))
    host = LeasedFleet(FakeFleet([inner]), Grant("it ran out")).hosts["web-01"]
    answer = await host.run(Command(run="rm -rf /srv", user="app", timeout=3))
    assert (answer.unreachable, answer.exit_code, answer.on) == (True, None, "web-01")
    assert answer.reason == "the lease of the host was lost: it ran out"
    assert (answer.run, answer.user, answer.timeout) == ("rm -rf /srv", "app", 3.0)
    for call in (host.put("/x", b""), host.get("/x"), host.mark()):
        with pytest.raises(HostUnreachable, match="its lease was lost: it ran out"):
            await call
    assert await host.changed() is None
    assert inner.asked == []
    assert inner.files == {}


async def test_a_session_lives_no_longer_than_its_lease() -> None:
    """An open session is hung up at the first word after the lease was lost; none can be opened."""
    grant = Grant()
    endless = FakeScript(otherwise=Scripted(exit_code=0, delay=9999))
    host = LeasedFleet(FakeFleet([FakeHost("web-01", endless)]), grant).hosts["web-01"]
    session = await host.open(SessionRequest("sleep 9999"))
    await session.write(b"x")
    await session.resize(80, 24)
    grant.lost = "it ran out"
    await session.write(b"rm -rf /srv\n")
    assert await session.wait() == SessionEnd(reason="it was hung up")
    assert await session.read("stdout") == b""
    await session.write_eof()
    await session.signal("TERM")
    with pytest.raises(HostUnreachable, match="its lease was lost: it ran out"):
        await host.open(SessionRequest("true"))
