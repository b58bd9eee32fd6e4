"""Well-known programs by name: how each is started so that it asks nobody, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field

MARK = "@"
"""Begins the name of a preset where a program could be named."""
TICKET = "{ticket}"
"""Stands for the whole ticket among the arguments of a program that does not read it from standard
input."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One program.

    Args:
        title: its name for people.
        argv: how it is started; more arguments come before the ticket.
        keys: variables of which it needs one, unless another way to its model was set up.
        passes: variables that it gets beside them, where they are set.
        sets: variables that it always gets.
        transcripts: where its transcript lies: patterns of paths in its working folder, or in its
            home where they begin with `~/`.
        asks: arguments on which it says its version, or at least something, and ends.
    """

    title: str
    argv: tuple[str, ...]
    keys: tuple[str, ...]
    passes: tuple[str, ...] = ()
    sets: dict[str, str] = field(default_factory=dict)
    transcripts: tuple[str, ...] = ()
    asks: tuple[str, ...] = ("--version",)


_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_OPENAI = ("OPENAI_API_KEY",)
_GEMINI = ("GEMINI_API_KEY", "GOOGLE_API_KEY")

PRESETS: dict[str, Preset] = {
    "claude-code": Preset(
        title="Claude Code",
        argv=(
            "claude",
            "--print",
            "--verbose",
            "--output-format=stream-json",
            "--dangerously-skip-permissions",
        ),
        keys=(*_ANTHROPIC, "CLAUDE_CODE_OAUTH_TOKEN"),
        passes=("ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"),
        sets={
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
        transcripts=("~/.claude/projects/**/*.jsonl",),
    ),
    "codex": Preset(
        title="Codex",
        argv=(
            "codex",
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ),
        keys=("CODEX_API_KEY", *_OPENAI),
        passes=("OPENAI_BASE_URL",),
        transcripts=("~/.codex/sessions/**/*.jsonl",),
    ),
    "gemini-cli": Preset(
        title="Gemini CLI",
        argv=("gemini", "--yolo"),
        keys=_GEMINI,
        passes=("GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"),
        sets={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
        transcripts=("~/.gemini/tmp/**/chats/*.json", "~/.gemini/tmp/**/chats/*.jsonl"),
    ),
    "copilot-cli": Preset(
        title="GitHub Copilot CLI",
        argv=(
            "copilot",
            "--allow-all-tools",
            "--allow-all-paths",
            "--no-ask-user",
            "--no-auto-update",
            "--prompt",
            TICKET,
        ),
        keys=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
        passes=("COPILOT_MODEL",),
        transcripts=("~/.copilot/session-state/**/*.jsonl",),
    ),
    "opencode": Preset(
        title="OpenCode",
        argv=("opencode", "run", TICKET),
        keys=(*_ANTHROPIC, *_OPENAI, *_GEMINI, "OPENROUTER_API_KEY"),
        sets={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        # It keeps its sessions as many files; only what `opencode export` writes can be read.
        transcripts=("*.export.json",),
    ),
    "mini-swe-agent": Preset(
        title="mini-swe-agent",
        argv=(
            "mini",
            "--yolo",
            "--exit-immediately",
            "--output=mini.traj.json",
            "--task",
            TICKET,
        ),
        keys=(*_ANTHROPIC, *_OPENAI, *_GEMINI, "OPENROUTER_API_KEY"),
        passes=("MSWEA_MODEL_NAME", "MSWEA_MODEL_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"),
        sets={"MSWEA_CONFIGURED": "true"},
        transcripts=("mini.traj.json",),
        asks=("--help",),
    ),
}
