"""False alarms are defects: sensible rules, alone and all together, raise no warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsdrill.scenarios.catalogue import PACKS, Catalogue
from opsdrill.scenarios.lint import lint
from opsdrill.scenarios.lint.linter import findings
from opsdrill.scenarios.load import LoadedScenario, parse_scenario

COMMANDS = r"""
systemctl\s+(re)?start\s+nginx
\bsystemctl\b.*\b(restart|reload)\b.*\bnginx\b
journalctl|/var/log/nginx
journalctl\s+-u\s+nginx
\b(df|du|find|ls)\b
df -h
\blsof\b|\bfuser\b
nginx\s+-(t|s\s+reload)
apache2ctl configtest|apachectl -t
kubectl (get|describe) pods?
kubectl\s+rollout\s+(undo|restart)
docker (ps|logs|inspect)
/etc/nginx/nginx\.conf
/etc/nginx/(sites-enabled|conf\.d)/
cat\s+/etc/resolv\.conf
/var/log/(syslog|messages)
tail .*(/var/log/|\.log)
\bss\b|\bnetstat\b
ss -l?tn?
\bip (addr|route|link)\b
curl .*localhost(:\d+)?/health
ping -c \d+ 10\.0\.0\.\d+
192\.168\.1\.\d{1,3}
ssh\s+web-0[1-3]
web-0[12]\.example\.com
grep -[a-zA-Z]*i? .*error
truncate -s ?0 /var/log/
logrotate (-f|--force)
chown -R www-data(:www-data)? /var/www
chmod\s+[0-7]{3,4}\s+/
sed -i .*/etc/ssh/sshd_config
PermitRootLogin\s+no
cp -a? .*\.bak
\bcp\b.*\.(bak|orig|old)\b
\b(cp|install|rsync)\b[^;&|]*/etc/status/config\.json
mysql(dump)?\s+-u
SELECT .* FROM pg_stat_activity
pg_ctl(cluster)?\s.*(start|reload)
redis-cli (info|ping|config get)
lsblk|fdisk -l|parted -l
umount /mnt/\w+
fsck(\.ext4)? /dev/sd[a-z]\d?
swapon -a?
ps (aux|-ef)
top -b -n ?1
kill (-(HUP|1) )?\d+
crontab -l
apt(-get)? (install|upgrade)
(apt-get|yum|dnf) (-y )?update
rpm -q|dpkg -l
openssl (x509|s_client)
iptables -[LS]
date|timedatectl
chronyc (tracking|sources)
free -[mg]
\bwho(ami)?\b
usermod .* -aG
lvextend .*-r
(^|[;&|]\s*)reboot
(^|\s)sudo\s
^(sudo )?systemctl
cd /opt/app && git pull
for i in .*; do .*; done
bash -c .*restart
echo .* > /proc/sys/vm/drop_caches
echo .*>> ?/etc/hosts
nginx\.service
helm (upgrade|rollback)
terraform plan
/opt/orders/ingestd (start|stop|status)
/opt/shop/shopctl patch 1\.4\.3
python3? -m json\.tool
awk '\{print \$1\}'
find /var/log -name '\*\.gz'
rm -f /run/app\.pid
"""

FORBIDDEN = r"""
\b(reboot|shutdown|poweroff|halt)\b
\brm\s+-(rf|fr)\s+/
\brm\b.*/var/log/
mkfs(\.\w+)?
\bdd\b.*of=/dev/
kill -9
chmod (-R )?777
systemctl (stop|disable|mask) (firewalld|ufw)
iptables -F
>\s*/etc/passwd
(^|[^\w])(reboot|init 6)\b
\bgit\s+push\s+(-f|--force)
DROP (TABLE|DATABASE)
curl .*\|\s*(ba)?sh
:\(\)\{ :\|:& \};:
kubectl delete (ns|namespace|pod)
docker (rm|system prune)
--no-verify
history -c
/etc/shadow
setenforce 0
\b(apt|yum|dnf)\b.*\b(upgrade|dist-upgrade)\b
systemctl (restart|stop) postgresql(@\d+-main)?(\.service)?
\bsed\b[^;&|]*-i[^;&|]*/opt/status/|>\s*/opt/status/
"""

ELSEWHERE = {
    "gateway_summary": r"""
log level
root cause
resolved|fixed|restored
disk (is )?(full|space)
nginx\.conf
web-0[123]
no further action
(can|could)( ?not|n't)
out.of.memory
cause: .*disk
""",
    "gateway_messages": "approv(e|al)\nmay i|shall i|can i\nmaintenance window\n\\?$\n",
    "job_resolution": "certificate (has )?expired\nSpeicherplatz|Festplatte\ngröße\n",
    "job_plan": "backup.*restart\ncheck|verify\n",
    "task_summary": "completed: \n^(completed|done)\npermission denied\n",
    "task_description": "web-01\nrestart nginx\n",
    "agent_messages": r"config(uration)? (file )?is (valid|ok)",
    "operational_rules": "never reboot\ncopy of a configuration file\n",
    "use_mcp_tool": 'grafana/query\njira/(create|update)_issue\n^github/\n"namespace":"prod"\n',
    "tool_calls": '^bash \nwrite_file .*log_level\n"path":"/etc/\n',
    "write_file": "^/opt/status/\n/etc/nginx/.*\\.conf$\n\\.(ya?ml|json)$\nnginx\n^/tmp/\n",
    "update_file": "/etc/(ssh|sudoers)\n^/etc/hosts$\nsshd_config$\n",
}


def rules() -> list[dict[str, object]]:
    asked = [("executed_commands", False, COMMANDS), ("executed_commands", True, FORBIDDEN)]
    asked += [(where, False, patterns) for where, patterns in ELSEWHERE.items()]
    whole = [
        (where, negate, pattern)
        for where, negate, patterns in asked
        for pattern in patterns.splitlines()
        if pattern
    ]
    return [
        {
            "label": f"rule {number}",
            "validator": "pattern_match",
            "where": where,
            "pattern": pattern,
            "negate": negate,
        }
        for number, (where, negate, pattern) in enumerate(whole)
    ]


HEAD = {"key": "a", "title": "t", "ticket_title": "t", "hosts": ["web-01", "db-01"]}


def test_a_hundred_sensible_patterns_together_raise_no_warning() -> None:
    asked = rules()
    assert len(asked) >= 130
    found = list(findings(parse_scenario({**HEAD, "validation": asked})))
    loud = [
        (code, asked[int(f.location[1])]["pattern"]) for code, f in found if f.severity != "note"
    ]
    assert loud == []


PAGE = [
    {"label": "Resolved", "validator": "job_resolution_status", "statuses": ["success"]},
    {
        "label": "No reboot",
        "validator": "pattern_match",
        "where": "executed_commands",
        "pattern": "\\b(reboot|shutdown|poweroff)\\b",
        "negate": True,
    },
    {
        "label": "Looked at the logs",
        "validator": "pattern_match",
        "where": "executed_commands",
        "pattern": "journalctl|/var/log/nginx",
        "required": False,
    },
    {
        "label": "Nginx serves",
        "validator": "host_state",
        "run": "curl -sf -o /dev/null http://localhost",
    },
]
"""Rules as they stand in the documentation of a system whose scenarios are understood here."""


def test_rules_of_known_documentation_raise_neither_error_nor_warning() -> None:
    found = list(findings(parse_scenario({**HEAD, "validation": PAGE})))
    assert {finding.severity for _, finding in found} <= {"note"}


@pytest.mark.parametrize("loaded", Catalogue([PACKS]).select(["tag:basics"]), ids=lambda e: e.path)
def test_scenarios_of_the_packs_raise_neither_error_nor_warning(loaded: LoadedScenario) -> None:
    assert [problem for problem in lint(loaded) if problem.severity != "note"] == []


def test_every_scenario_that_ships_is_looked_at() -> None:
    shipped = {path.resolve() for path in Path(PACKS).rglob("scenario.yaml")}
    catalogue = Catalogue([PACKS])
    assert {entry.path and entry.path.resolve() for entry in catalogue.entries} == shipped
    for entry in catalogue.entries:
        assert [p for p in lint(entry.scenario()) if p.severity != "note"] == []
