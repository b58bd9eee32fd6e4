"""Hosts as the phases have them: true commands in, masked answers out."""

from __future__ import annotations

from opsdrill.evidence.mask import Mask
from opsdrill.hosts.drivers.fake import FakeHost
from opsdrill.hosts.drivers.fake_script import FakeScript, Scripted
from opsdrill.model.host import OUTPUT_LIMIT, Command
from opsdrill.runner.masked_hosts import MaskedHost

VALUE = "hunter2-x9"
MASK = Mask([("PW", VALUE)])


async def test_the_host_gets_the_true_command_and_the_answer_is_masked() -> None:
    inner = FakeHost(
        "web-01",
        FakeScript(otherwise=Scripted(exit_code=1, stdout=f"a {VALUE}\n", stderr=f"b {VALUE}")),
    )
    answer = await MaskedHost(inner, MASK).run(Command(run=f"mysql -p{VALUE}"))
    assert [command.run for command in inner.asked] == [f"mysql -p{VALUE}"]
    assert (answer.run, answer.exit_code) == ("mysql -p[masked:PW]", 1)
    assert (answer.stdout, answer.stderr) == ("a [masked:PW]\n", "b [masked:PW]")


async def test_a_secret_cut_in_half_by_the_output_limit_is_masked() -> None:
    """Wherever the cut falls, no more of it than three characters is left."""
    for kept in range(1, len(VALUE)):
        text = "x" * (OUTPUT_LIMIT - kept) + VALUE + "y" * 10
        inner = FakeHost("web-01", FakeScript(otherwise=Scripted(exit_code=0, stdout=text)))
        answer = await MaskedHost(inner, MASK).run(Command(run="cat"))
        assert answer.stdout_bytes is not None
        assert VALUE[:4] not in answer.stdout
        assert answer.stdout.endswith("[masked:PW]") == (kept >= 4)


async def test_files_are_put_and_got_as_they_are() -> None:
    inner = FakeHost("web-01", FakeScript())
    host = MaskedHost(inner, MASK)
    await host.put(f"/etc/{VALUE}", VALUE.encode())
    assert await host.get(f"/etc/{VALUE}") == VALUE.encode()
