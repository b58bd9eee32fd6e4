"""Words of the trade: names of commands, and words that stand in commands and reports.

Checks use them to tell a command from an argument, and to show a longer word in which a shorter
one is hidden. A word that is missing here costs a finding, never a false one.
"""

from __future__ import annotations

_COMMANDS = """
ab alias apk apt apt-cache apt-get apt-key apt-mark aptitude arp at awk aws az base64 bash bat
blkid brctl bunzip2 bzip2 cal cat cd certbot chage chattr chcon chgrp chkconfig chmod chown
chpasswd chrony chronyc chroot cksum clear cmp comm conntrack consul cp crictl cron crontab
cryptsetup ctr curl cut dash date dd debootstrap deluser depmod df diff dig dmesg dmidecode dnf
docker dpkg du e2fsck echo egrep env etcdctl ethtool exec exit export expr fail2ban-client
fallocate false fdisk fgrep file find findmnt firewall-cmd flock fold free fsck fstrim fuser
gcloud gdb getent getfacl git gpasswd gpg grep groupadd groupdel groups grub-install gunzip gzip
halt hdparm head helm host hostname hostnamectl htop hwclock iconv id ifconfig ifdown ifup init
insmod install ionice iostat iotop ip ip6tables ipcalc ipcs iperf3 iptables iptables-restore
iptables-save iw jobs join journalctl jq kill killall kubectl last lastlog ldconfig ldd less ln
locale locate logger login loginctl logout logrotate losetup ls lsattr lsblk lscpu lsmod lsof
lspci lvcreate lvextend lvremove lvresize lvs lxc make man md5sum mdadm minikube mkdir mkfifo
mkfs mkfs.ext4 mkfs.xfs mknod mkswap mktemp modinfo modprobe more mount mpstat mtr mv mysql
mysqladmin mysqldump nano nc ncat netcat netplan netstat newgrp nft nice nmap nmcli node nohup
nomad npm nslookup ntpdate ntpq numactl openssl parted passwd patch perf perl pg_ctl pg_dump
pg_restore pgrep php pidof ping pip pip3 pkill pm2 podman poweroff printenv printf prlimit ps
psql pstree pvcreate pvs pwd python python3 quota rabbitmqctl rbash read readlink reboot
redis-cli renice reset resize2fs rev rm rmdir rmmod rndc route rpm rsync ruby runuser salt sar
scp screen sed semanage seq service sestatus set setcap setenforce setfacl sftp sh sha256sum
shred shutdown slabtop sleep smartctl snap sort source split sqlite3 ss ssh ssh-add ssh-copy-id
ssh-keygen stat strace strings stty su sudo supervisorctl swapoff swapon sync sysctl systemctl
systemd-analyze tac tail tar tc tcpdump tee telinit telnet terraform test time timedatectl
timeout tmux top touch tput tr traceroute trap tree true truncate tune2fs type tzselect udevadm
ufw ulimit umask umount unalias uname uniq unlink unset unshare unxz unzip update-grub
update-rc.d updatedb uptime useradd userdel usermod uwsgi vault vgcreate vgs vi vim visudo
vmstat w wall watch wc wget whereis which who whoami wipefs xargs xfs_growfs xfs_repair xz yes
yum zcat zgrep zip zypper
"""

_OTHERS = """
access account added address administrator affirm already also alternative apache2 application
apply approval archive assets attempt automatic available backup balance batch because before
begin blacklist block bootstrap branch bridge broken buffer cached cancelled capacity catalog
category certificate change chapter check checkpoint cleanup cluster collapse command commit
compact complete component compress concatenate condition config configuration confirm connect
connection consistent console constant container context control copied copy core corrupt create
credentials critical current daemon-reload database deadlock debug default degraded delete
delicate deploy desktop details device diagnose direct disable disabled disk distribution
document domain download downtime drain drive duplicate effective elsewhere enable enabled
endpoint engine environment error escape establish exception exclude execute existing exit-code
expand expired explain exporter external failed failover failure fallback feature filesystem
filter finally firewall firmware fixed flush folder force-reload format forward frontend gateway
generate group handler haproxy hardware health healthy highest history hosting hostnames however
httpd https identity ignored image impact implement important inactive incident include incoming
independent index information insert inspect instance instruction interface internal interrupt
invalid inventory isolate issue keepalive kernel keyboard label latency latest leader legacy
libraries library license limit listen listener load-balancer localhost location locked logfile
logging lost maintenance manage manager manual mapping master maximum measure member memory
message metadata metrics middle migrate minimum mirror mismatch missing module monitor multiple
namespace network nginx nothing notice notify offline operator option orchestrator original
outage output overload override package parameter partition passed password pattern payload
pending performance permanent permission persistent platform plugin policy pool portable
position postfix postgres prefix prepare preset prevent previous primary priority private probe
problem process production profile program progress prompt property protect provide provision
proxy public publish purge quarantine query queue random ready reason rebuild receive recent
recover recreate redeploy redirect reduce refresh region register reinstall release reload
relocate remain remote remove rename renew repair repeat replace replica report repository
request require reschedule reserve resolve resource respond response restart restarted restore
restrict result resume retry return reverse revert review rollback rotate rotated runtime
sandbox scale schedule script search secondary secret section security segment select send
serial server session setting setup severity shadow share shell sidecar signal similar single
skipped snapshot socket software solution solved source-ip specific stable stage staging standby
start started startup state static status stop stopped storage stream string subnet success
summary supply support suspend switch symlink syncing syslog system systemd table target tcp
template temporary tenant terminal testing text thread threshold throttle ticket timer timestamp
timezone token topology total traffic transaction transfer transport trigger trouble tunnel undo
unexpected unhealthy unit unknown unlock unmask unmount unreachable unstable unused update
upgrade upload upstream usage user utility validate value variable vendor verify version virtual
volume waiting warning webserver whatever wheel window within without worker workload workspace
writable writer written zone
"""

COMMAND_NAMES = frozenset(_COMMANDS.split())

ALL_WORDS: tuple[str, ...] = tuple(
    sorted(COMMAND_NAMES.union(_OTHERS.split()), key=lambda word: (len(word), word))
)
"""The shortest first."""

COMMAND_START = (
    r"(?:^|[;&|(`\n]\s*)"
    r"(?:(?:sudo|env|nohup|exec|time|-[ug]\s+\S+|-\S*[^\sug]|\w+=\S*)\s+)*"
)
"""Matches up to where a command begins: at the start, behind `&&`, `;`, `|`, `(` or a line break,
and behind `sudo`, `env` and variables that are set for it."""
