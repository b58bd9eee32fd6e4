"""Tools that agents of many makes share."""

from __future__ import annotations

import pytest

from opsdrill.evidence.transcripts.tools import known


@pytest.mark.parametrize(
    ("name", "arguments", "command"),
    [
        ("bash", {"cmd": "id"}, "id"),
        ("Bash", {"command": "id"}, "id"),
        ("execute_bash", {"command": "id"}, "id"),
        ("runShellCommand", {"command": "id"}, "id"),
        ("run_command", {"command": "id", "host": "web-01"}, "id"),
        ("functions.shell", {"command": ["bash", "-lc", "ls | wc -l"]}, "ls | wc -l"),
        ("local_shell", {"command": ["ls", "-l", "a b"]}, "ls -l 'a b'"),
        ("ssh", {"cmd": "id"}, "id"),
        ("terminal", "uptime", "uptime"),
        ("exec", {"command": "id"}, "id"),
    ],
)
def test_tools_that_run_commands(name: str, arguments: object, command: str) -> None:
    """A tool that is called after a shell and is given a command runs it."""
    found = known(name, arguments)
    assert found.kind == "shell"
    assert isinstance(found.arguments, dict) and found.arguments["command"] == command


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("execute_sql", {"command": "drop table x"}),
        ("bash_session", {"action": "type", "input": "ls\n"}),
        ("push", {"command": "id"}),
        ("publish", {"command": "id"}),
        ("str_replace_editor", {"command": "view", "path": "/etc/passwd"}),
        ("bash", {"command": ""}),
        ("bash", {"command": ["a", 1]}),
        ("bash", None),
        ("write_file", {"content": "x"}),
        ("read_file", {"path": "/etc/passwd"}),
        ("apply_patch", {"input": "no patch"}),
        ("", {}),
    ],
)
def test_tools_that_are_others(name: str, arguments: object) -> None:
    """Whatever else a tool does, or without what it needs: it is another one, as it was given."""
    found = known(name, arguments)
    assert (found.kind, found.arguments) == ("other", arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("str_replace_editor", {"command": "create", "path": "/a"}, "write_file"),
        ("text_editor", {"command": "insert", "path": "/a"}, "update_file"),
        ("str_replace_based_edit_tool", {"command": "undo_edit", "path": "/a"}, "update_file"),
        ("write_file", {"path": "/a", "content": "x"}, "write_file"),
        ("Write", {"file_path": "/a", "content": "x"}, "write_file"),
        ("MultiEdit", {"file_path": "/a"}, "update_file"),
        ("replace", {"file_path": "/a", "old_string": "x"}, "update_file"),
    ],
)
def test_tools_for_files(name: str, arguments: object, kind: str) -> None:
    """A file that is made is written, one that is changed is updated; its path is `path`."""
    found = known(name, arguments)
    assert found.kind == kind
    assert isinstance(found.arguments, dict) and found.arguments["path"] == "/a"


def test_a_patch_changes_several_files() -> None:
    """A patch is a call for each of its files."""
    patch = "*** Begin Patch\n*** Add File: /a\n+x\n*** Update File: /b\n@@\n-x\n+y\n*** End Patch"
    found = known("apply_patch", {"input": patch})
    assert [(kind, arguments["path"]) for kind, arguments in found.files] == [
        ("write_file", "/a"),
        ("update_file", "/b"),
    ]


def test_where_a_tool_works() -> None:
    """A host that the agent named counts for commands and files, and for nothing else."""
    assert known("run_command", {"command": "id", "host": "db-01"}).host == "db-01"
    assert known("run_command", {"command": "id", "host": ""}).host is None
    assert known("ping", {"host": "db-01"}).host is None


def test_tools_of_servers() -> None:
    """`mcp__SERVER__TOOL` is a tool of a server."""
    found = known("mcp__k8s__get_pods", {"ns": "x"})
    assert (found.kind, found.server, found.tool) == ("mcp", "k8s", "get_pods")
