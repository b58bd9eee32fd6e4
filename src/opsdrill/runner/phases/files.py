"""Files: the scenario's support files are put on its hosts before setup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opsdrill.errors import OpsDrillError
from opsdrill.hosts.driver import Host
from opsdrill.model.run import StoredFile
from opsdrill.model.scenario import Scenario
from opsdrill.runner.archive import Archive


async def put_files(
    scenario: Scenario,
    kept: Sequence[StoredFile],
    hosts: Mapping[str, Host],
    archive: Archive,
    unmasked: Mapping[str, bytes] | None = None,
) -> None:
    """Put the scenario's support files on its hosts, in the order written.

    Args:
        kept: the files as they were when the run was planned; their content lies in the store.
        unmasked: those that the store has masked only, by digest.

    Raises:
        HostError: a file could not be written.
        OpsDrillError: the run was planned without one of its files.
    """
    own = unmasked or {}
    digests = {file.source: file.digest for file in kept}
    for file in scenario.files:
        digest = digests.get(file.source)
        if digest is None:
            raise OpsDrillError(f"the support file {file.source} was not kept with the run")
        content = own.get(digest)
        if content is None:
            content = await archive.keep(archive.store.file, digest)
        for name in scenario.host_names if file.on is None else (file.on,):
            await hosts[name].put(file.to, content, mode=int(file.mode, 8), owner=file.owner)
