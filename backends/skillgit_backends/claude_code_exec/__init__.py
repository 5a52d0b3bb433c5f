"""The ``claude_code_exec`` backend: the Claude Code command line program as target.

Each call is one ``claude -p --output-format stream-json --verbose`` in a home and a workspace of its own, both removed
afterwards: no settings, hooks, memory or servers of yours take part. The skill is placed in ``.claude/skills``; the
system prompt tells the agent to load it. The task comes on standard input.

| setting | default | meaning |
|---|---|---|
| `model.claude_code_exec_path` | "claude" | the program |
| `model.claude_code_exec_effort` | "" | `low` to `max`; empty: `model.reasoning_effort` |
| `model.claude_code_exec_timeout_s` | 600.0 | seconds that one call may take, see below |
| `model.claude_code_exec_tools` | "Read,Skill" | the tools there are, with commas between |
| `model.claude_code_exec_allowed_tools` | "" | tools that may do what the permission mode would ask about |
| `model.claude_code_exec_permission_mode` | "dontAsk" | what happens to what it would ask about: denied |
| `model.claude_code_exec_sandbox` | true | commands run without credentials and apart; needs bubblewrap |
| `model.claude_code_exec_allow_root` | false | whether it may run as root |
| `model.claude_code_exec_max_thinking_tokens` | 0.0 | tokens to think with; 0 leaves it to the program |
| `model.claude_code_exec_request_retries` | 2.0 | repeats of one request within a call |
| `model.claude_code_exec_base_url` | "" | another address of the API; empty: `ANTHROPIC_BASE_URL`, else Anthropic's |
| `model.claude_code_exec_api_key_env` | "ANTHROPIC_API_KEY" | the variable that holds the key; "" uses the account |
| `model.claude_code_exec_pass_env` | "" | further variables to pass on, with commas between |
| `model.claude_code_exec_use_sdk` | "cli" | accepted from the reference (`cli`, `auto`); the program is always used |
| `model.claude_code_exec_profile` | "" | accepted from the reference, empty only |

**Login.** The key in `api_key_env` comes first, then `ANTHROPIC_AUTH_TOKEN`, then the token in
`CLAUDE_CODE_OAUTH_TOKEN` (`claude setup-token` makes one that lasts), then the account of `claude auth login` on this
machine, as far as it is in a file (`.credentials.json` in `CLAUDE_CONFIG_DIR`, else in `~/.claude`). The call gets a
copy that cannot be renewed: renewing it would end your own login. Use a token for runs that outlast the login.

**What it may do.** With the defaults it reads files of its workspace and skills; it cannot run commands or write.
`tools: Read,Skill,Bash` with `allowed_tools: Bash` lets it run commands, in the sandbox. Root is refused unless it is
allowed, because nothing then keeps a command from anything.

**Time.** `timeout_s` is the deadline of a call, unless `env.exec_timeout` for the target or `calls.timeout_s` for the
optimizer is set and ends it before. Raise it for long tasks.

Claude Code takes no temperature: `calls.temperature` must be null. `calls.max_output_tokens` limits each of its
messages.
"""

from __future__ import annotations

from skillgit_backends.claude_code_exec.backend import ClaudeCodeExecBackend

__all__ = ["ClaudeCodeExecBackend"]
