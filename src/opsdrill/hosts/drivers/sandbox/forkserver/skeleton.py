"""The tree of a new host outside `/usr`: an allow-list of folders, files and links.

All of it is made up here, but for what programs of this machine's `/usr` need to be found: the
linker's cache and the links of `/etc/alternatives` that lead back into `/usr`.
"""

# ruff: noqa: PTH114, PTH115, PTH123, PTH208
from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Folder:
    path: str
    mode: int = 0o755
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content: bytes
    mode: int = 0o644
    gid: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    path: str
    target: str


Entry = Folder | File | Link

TOP_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Top folders that are links into `/usr` on a merged system, folders of programs elsewhere."""

_FOLDERS = """
etc etc/alternatives etc/apt etc/apt/sources.list.d etc/cron.d etc/cron.daily etc/default etc/init.d
etc/ld.so.conf.d etc/logrotate.d etc/network etc/nginx etc/opt etc/pam.d etc/profile.d etc/security
etc/skel etc/ssh etc/ssl etc/ssl/certs etc/ssl/private etc/sudoers.d etc/sysctl.d etc/systemd
etc/systemd/system
home media mnt opt root:700 srv tmp:1777 run run/lock:1777 run/user
var var/backups var/cache var/cache/apt var/lib var/lib/apt var/lib/misc var/local:2775:50
var/log var/mail:2775:8 var/opt var/spool var/spool/cron var/tmp:1777 var/www var/www/html
dev proc sys
"""

_USERS = """
root 0 0 /root
daemon 1 1 /usr/sbin
bin 2 2 /bin
sys 3 3 /dev
sync 4 65534 /bin
games 5 60 /usr/games
man 6 12 /var/cache/man
lp 7 7 /var/spool/lpd
mail 8 8 /var/mail
news 9 9 /var/spool/news
uucp 10 10 /var/spool/uucp
proxy 13 13 /bin
www-data 33 33 /var/www
backup 34 34 /var/backups
list 38 38 /var/list
irc 39 39 /run/ircd
_apt 42 65534 /nonexistent
nobody 65534 65534 /nonexistent
"""

_GROUPS = """
root 0|daemon 1|bin 2|sys 3|adm 4|tty 5|disk 6|lp 7|mail 8|news 9|uucp 10|man 12|proxy 13|kmem 15
dialout 20|fax 21|voice 22|cdrom 24|floppy 25|tape 26|sudo 27|audio 29|dip 30|www-data 33|backup 34
operator 37|list 38|irc 39|src 40|shadow 42|utmp 43|video 44|sasl 45|plugdev 46|staff 50|games 60
users 100|nogroup 65534
"""

# Well-known ports, from IANA's registry of service names.
_SERVICES = """
echo 7 tcp udp|discard 9 tcp udp|daytime 13 tcp udp|ftp-data 20 tcp|ftp 21 tcp|ssh 22 tcp
telnet 23 tcp|smtp 25 tcp|time 37 tcp udp|whois 43 tcp|domain 53 tcp udp|bootps 67 udp
bootpc 68 udp|tftp 69 udp|http 80 tcp|kerberos 88 tcp udp|pop3 110 tcp|sunrpc 111 tcp udp
ntp 123 udp|imap2 143 tcp|snmp 161 tcp udp|snmp-trap 162 tcp udp|bgp 179 tcp|ldap 389 tcp udp
https 443 tcp udp|submissions 465 tcp|syslog 514 udp|submission 587 tcp|ldaps 636 tcp
rsync 873 tcp|imaps 993 tcp|pop3s 995 tcp|openvpn 1194 tcp udp|ms-sql-s 1433 tcp
nfs 2049 tcp udp|mysql 3306 tcp|postgresql 5432 tcp|amqps 5671 tcp|amqp 5672 tcp|x11 6000 tcp
redis 6379 tcp|http-alt 8080 tcp udp
"""

_NSSWITCH = """passwd:         files
group:          files
shadow:         files
gshadow:        files
hosts:          files
networks:       files
protocols:      files
services:       files
ethers:         files
rpc:            files
"""

# From root `su` and `runuser` work without a password; nobody else has one.
_PAM = """auth       sufficient   pam_rootok.so
auth       required     pam_unix.so
account    sufficient   pam_rootok.so
account    required     pam_unix.so
password   required     pam_unix.so
session    required     pam_permit.so
"""

_LOGIN_DEFS = """MAIL_DIR /var/mail
ENV_SUPATH PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV_PATH PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games
UMASK 022
PASS_MAX_DAYS 99999
PASS_MIN_DAYS 0
PASS_WARN_AGE 7
UID_MIN 1000
UID_MAX 60000
SYS_UID_MIN 100
SYS_UID_MAX 999
GID_MIN 1000
GID_MAX 60000
SYS_GID_MIN 100
SYS_GID_MAX 999
USERGROUPS_ENAB yes
ENCRYPT_METHOD SHA512
"""

_PROFILE = """if [ "$(id -u)" -eq 0 ]; then
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
else
  PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games
fi
export PATH
for part in /etc/profile.d/*.sh; do [ -r "$part" ] && . "$part"; done
unset part
"""


def common() -> list[Entry]:
    """What every host of this machine starts with; computed once."""
    return [*_folders(), *_accounts(), *_texts(), *_links(), *_linker()]


def named(name: str, addresses: dict[str, str]) -> list[Entry]:
    """What differs from host to host.

    Args:
        name: the host's own name.
        addresses: name -> address of all hosts of the run; empty for one alone.
    """
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    lines += [f"{address} {other}" for other, address in addresses.items()]
    if name not in addresses:
        lines.append(f"127.0.1.1 {name}")
    return [_text("etc/hostname", f"{name}\n"), _text("etc/hosts", "\n".join(lines) + "\n")]


def _folders() -> Iterator[Entry]:
    for word in _FOLDERS.split():
        path, _, rest = word.partition(":")
        mode, _, gid = rest.partition(":")
        yield Folder(path, int(mode or "755", 8), gid=int(gid or 0))


def _accounts() -> Iterator[Entry]:
    shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
    passwd, shadow = [], []
    for line in _USERS.split("\n")[1:-1]:
        user, uid, gid, home = line.split()
        program = shell if user == "root" else "/usr/sbin/nologin"
        passwd.append(f"{user}:x:{uid}:{gid}:{user}:{home}:{program}\n")
        shadow.append(f"{user}:*:19700:0:99999:7:::\n")
    groups = [group.split() for group in _GROUPS.replace("\n", "|").split("|") if group]
    yield _text("etc/passwd", "".join(passwd))
    yield File("etc/shadow", "".join(shadow).encode(), 0o640, 42)
    yield _text("etc/group", "".join(f"{group}:x:{gid}:\n" for group, gid in groups))
    gshadow = "".join(f"{group}:*::\n" for group, _ in groups)
    yield File("etc/gshadow", gshadow.encode(), 0o640, 42)
    yield _text("etc/subuid", "")
    yield _text("etc/subgid", "")


def _texts() -> Iterator[Entry]:
    services = [service.split() for service in _SERVICES.replace("\n", "|").split("|") if service]
    lines = [f"{name}\t{port}/{kind}\n" for name, port, *kinds in services for kind in kinds]
    yield _text("etc/services", "".join(lines))
    yield _text("etc/protocols", "ip\t0\tIP\nicmp\t1\tICMP\ntcp\t6\tTCP\nudp\t17\tUDP\n")
    yield _text("etc/nsswitch.conf", _NSSWITCH)
    yield _text("etc/host.conf", "multi on\n")
    yield _text("etc/networks", "loopback 127.0.0.0\n")
    yield _text("etc/login.defs", _LOGIN_DEFS)
    yield _text("etc/default/useradd", "SHELL=/bin/sh\n")
    yield _text("etc/profile", _PROFILE)
    yield _text("etc/shells", "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n")
    yield _text("etc/timezone", "Etc/UTC\n")
    yield _text("etc/fstab", "# no disks here\n")
    yield _text("etc/crontab", "SHELL=/bin/sh\n")
    for empty in ("bash.bashrc", "environment", "issue", "motd", "resolv.conf", "machine-id"):
        yield _text(f"etc/{empty}", "")
    for program in ("su", "su-l", "runuser", "runuser-l", "other", "chpasswd", "passwd", "useradd"):
        yield _text(f"etc/pam.d/{program}", _PAM)


def _links() -> Iterator[Entry]:
    yield Link("etc/mtab", "../proc/self/mounts")
    yield Link("etc/os-release", "../usr/lib/os-release")
    yield Link("etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
    yield Link("var/run", "/run")
    yield Link("var/lock", "/run/lock")
    for top in TOP_LINKS:
        if os.path.islink(f"/{top}"):
            yield Link(top, os.readlink(f"/{top}"))


def _linker() -> Iterator[Entry]:
    """What programs and libraries of `/usr` are found by."""
    for name in ("etc/ld.so.cache", "etc/ld.so.conf"):
        yield from _copy(name)
    for part in _listed("/etc/ld.so.conf.d"):
        yield from _copy(f"etc/ld.so.conf.d/{part}")
    for name in _listed("/etc/alternatives"):
        path = f"/etc/alternatives/{name}"
        target = os.readlink(path) if os.path.islink(path) else ""
        # Manual pages have links too, hundreds of them; nobody misses those.
        if target.startswith("/usr/") and "/man/" not in target:
            yield Link(path[1:], target)


def _copy(name: str) -> Iterator[Entry]:
    try:
        with open(f"/{name}", "rb") as source:
            yield File(name, source.read(4 << 20))
    except OSError:
        return


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _text(path: str, content: str) -> File:
    return File(path, content.encode())
