"""The loop of the fork server: every request is answered by a fork of its own.

The loop itself never waits for anything but the next request, so that no slow host holds up
another. It ends, and with it all hosts, when OpsDrill's end of its socket closes.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable

from opsdrill.hosts.drivers.sandbox.forkserver import (
    birth,
    cgroups,
    confine,
    identity,
    kernel,
    skeleton,
    spawner,
)
from opsdrill.hosts.drivers.sandbox.forkserver.forks import (
    answer,
    await_death,
    connect,
    kill,
    wait_for_end,
    work,
)
from opsdrill.hosts.drivers.sandbox.messages import (
    Connect,
    Done,
    Failed,
    GetFile,
    MakeHost,
    Message,
    OpenSession,
    PutFile,
    Release,
    RunCommand,
    Snapshot,
    receive,
    send,
)

_IDLE = 30
"""Milliseconds without work after which the next host's spawner is made ready."""
_IN_THE_MAKING = -1
_NETWORK = "opsdrill.hosts.drivers.sandbox.forkserver.network"


class ForkServer:
    """The hosts of one OpsDrill process.

    Args:
        owner: the socket that OpsDrill sends requests on.
        who: what we may do.
    """

    def __init__(self, owner: socket.socket, who: identity.Identity) -> None:
        self._owner = owner
        self._hosts: dict[str, birth.Newborn] = {}
        self._networks: dict[str, int] = {}
        self._identity = who
        self._places = cgroups.places()
        self._entries = skeleton.common()
        self._poll = select.poll()
        self._ready: dict[int, Callable[[], None]] = {}
        self._spare: spawner.Spawner | None = None
        self._spawners = 0

    def serve(self) -> None:
        """Work until OpsDrill is gone, then end every host."""
        send(self._owner, Done(self._notes()))
        running = True
        self._poll.register(self._owner, select.POLLIN)
        while running:
            # One event at a time: what it closes may be open again as something else. The last
            # one first, for the owner's requests came first and would never let the others in.
            ready = self._poll.poll(_IDLE if self._places and self._spare is None else None)
            if not ready:
                self._spare = self._start_spawner()
                continue
            fd = ready[-1][0]
            if fd == self._owner.fileno():
                running = self._one_request()
            else:
                self._attend(fd)
        self._end_all()

    def _attend(self, fd: int) -> None:
        """Something happened to one host or network; whatever it was, the others go on."""
        try:
            self._ready[fd]()
        except OSError as error:
            print(f"fork server: {error}", file=sys.stderr)  # noqa: T201

    def _notes(self) -> dict[str, str]:
        bounded = {controller for place in self._places for controller in place.controllers}
        return {
            "root": "yes" if self._identity.real_root else "no",
            "users": "yes" if self._identity.ids > 1 else "no",
            "pids": "yes" if "pids" in bounded else "no",
            "memory": "yes" if "memory" in bounded else "no",
            "filter": "yes" if confine.filter_program() else "no",
        }

    def _one_request(self) -> bool:
        came = receive(self._owner)
        if came is None:
            return False
        message, fds = came
        reply = socket.socket(fileno=fds[0])
        try:
            self._handle(message, reply, fds)
        except OSError as error:
            answer(reply, Failed("error", str(error)))
        finally:
            reply.close()
            for fd in fds[1:]:
                os.close(fd)
        return True

    def _handle(self, message: Message, reply: socket.socket, fds: list[int]) -> None:
        if isinstance(message, MakeHost):
            self._make(message, reply)
        elif isinstance(message, Release):
            self._release(message, reply)
        elif isinstance(message, Connect):
            self._connect(message, reply)
        elif isinstance(message, RunCommand | OpenSession | PutFile | GetFile | Snapshot):
            host = self._hosts.get(message.host)
            if host is None or not host.alive:
                answer(reply, Failed("gone", "the host is no more"))
            elif not self._spawned(message, host, fds):
                self._fork(lambda: work(message, host, reply, fds), (*fds, host.pidfd, host.files))

    def _spawned(self, message: Message, host: birth.Newborn, fds: list[int]) -> bool:
        """The host's spawner took the command; False where there is none, or none any more."""
        if not self._places or not isinstance(message, RunCommand | OpenSession):
            return False
        if host.spawner is None:
            # Hosts made many at once get theirs only now: joining groups holds up every fork of
            # this machine for a moment.
            host.spawner = self._start_spawner()
            host.groups = host.spawner.groups
            host.spawner.belong_to(host.request)
        try:
            host.spawner.run(message, (*fds, host.pidfd))
        except OSError:
            return False
        return True

    def _fork(self, task: Callable[[], None], kept: tuple[int, ...]) -> None:
        if os.fork():
            return
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            kernel.close_all_but({0, 1, 2, *(fd for fd in kept if fd >= 0)})
            task()
        except Exception:
            traceback.print_exc()  # OpsDrill reads the last line where nobody answered it
        finally:
            os._exit(0)

    def _make(self, request: MakeHost, reply: socket.socket) -> None:
        own, self._spare = self._spare, None
        try:
            if own is not None:
                own.belong_to(request)
            host = birth.make(request, reply, self._entries, self._identity, own)
        except OSError:
            if own is not None:
                own.line.close()
                own.groups.remove()
            raise
        self._hosts[request.host] = host
        assert host.talk is not None
        self._watch(host.talk.fileno(), lambda: self._introduce(host))
        self._watch(host.pidfd, lambda: self._bury(host))

    def _start_spawner(self) -> spawner.Spawner:
        self._spawners += 1
        return spawner.start(self._places, cgroups.own_name(str(self._spawners)))

    def _introduce(self, host: birth.Newborn) -> None:
        """A newborn asks who is who, or died before it could."""
        assert host.talk is not None
        self._unwatch(host.talk.fileno())
        try:
            packet, fds, _, _ = socket.recv_fds(host.talk, 16, 1)
            if packet:
                os.set_inheritable(fds[0], False)
                birth.give_user_map(host, self._identity, fds[0])
                host.talk.send(b"ok")
        except OSError as error:
            host.talk.send(str(error).encode())
        finally:
            host.talk.close()
            host.talk = None

    def _bury(self, host: birth.Newborn) -> None:
        """A host's first process ended: let go of its files, or their memory would stay taken."""
        self._unwatch(host.pidfd)
        host.alive = False
        for fd in (host.life, host.files):
            if fd >= 0:
                os.close(fd)
        host.life = host.files = -1
        if host.spawner is not None:
            host.spawner.line.close()

    def _connect(self, request: Connect, reply: socket.socket) -> None:
        members = {
            host: (self._hosts[host].pid, address)
            for host, address in request.hosts.items()
            if host in self._hosts and self._hosts[host].alive
        }
        if len(members) < len(request.hosts):
            raise OSError("a host ended before it was connected")
        # Heavy and rarely needed; kept, so that later forks have it at once.
        network = importlib.import_module(_NETWORK)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._fork(
            lambda: connect(network.connect, members, reply, theirs),
            (reply.fileno(), theirs.fileno()),
        )
        theirs.close()
        self._networks[request.run] = _IN_THE_MAKING
        self._watch(ours.fileno(), lambda: self._keep_network(request.run, ours))

    def _keep_network(self, run: str, ours: socket.socket) -> None:
        self._unwatch(ours.fileno())
        with ours:
            _, fds, _, _ = socket.recv_fds(ours, 16, 1)
            if fds and run in self._networks:
                os.set_inheritable(fds[0], False)
                self._networks[run] = fds[0]
                ours.send(b"kept")
            else:  # it failed, or the run was given back meanwhile
                self._networks.pop(run, None)
                for fd in fds:
                    os.close(fd)

    def _release(self, request: Release, reply: socket.socket) -> None:
        network = self._networks.pop(request.run or "", _IN_THE_MAKING)
        if network != _IN_THE_MAKING:
            os.close(network)
        hosts = [self._hosts.pop(host) for host in request.hosts if host in self._hosts]
        for host in hosts:
            kill(host)
        self._fork(
            lambda: wait_for_end(hosts, reply), (reply.fileno(), *(host.pidfd for host in hosts))
        )
        for host in hosts:
            if host.talk is not None:
                self._unwatch(host.talk.fileno())
                host.talk.close()
            if host.alive:
                self._bury(host)
            os.close(host.pidfd)

    def _end_all(self) -> None:
        hosts = list(self._hosts.values())
        for host in hosts:
            kill(host)
        for host in hosts:
            if host.alive:
                self._bury(host)
        await_death(hosts)
        groups = [host.groups for host in hosts]
        if self._spare is not None:
            self._spare.line.close()
            groups.append(self._spare.groups)
        for group in groups:
            group.remove()

    def _watch(self, fd: int, ready: Callable[[], None]) -> None:
        self._ready[fd] = ready
        self._poll.register(fd, select.POLLIN)

    def _unwatch(self, fd: int) -> None:
        if self._ready.pop(fd, None) is not None:
            self._poll.unregister(fd)
