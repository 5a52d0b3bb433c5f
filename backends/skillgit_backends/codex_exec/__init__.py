"""The ``codex_exec`` backend: the Codex command line program as target or as optimizer.

Each call is one ``codex exec --json`` in a home and a workspace of its own, both removed afterwards. The skill is put
into ``.agents/skills`` and mentioned by its name, upon which Codex reads it in. The task comes on standard input.
Commands of the agent run in Codex's sandbox, without network and without credentials in their environment; they are
never approved by anybody, so what the sandbox forbids fails.

| setting | default | meaning |
|---|---|---|
| `model.codex_exec_path` | "codex" | the program |
| `model.codex_exec_sandbox` | "workspace-write" | what commands may write: `workspace-write` or nothing, `read-only` |
| `model.codex_exec_profile` | "" | a profile: `<profile>.config.toml` of your own `CODEX_HOME` is copied |
| `model.codex_exec_reasoning_effort` | "" | `none` to `xhigh`; empty: `model.reasoning_effort` |
| `model.codex_exec_timeout_s` | 600.0 | seconds that one call may take, see below |
| `model.codex_exec_model_provider` | "" | a provider that Codex or the profile knows, or the name of the one below |
| `model.codex_exec_base_url` | "" | the address of another provider, which must speak the Responses API |
| `model.codex_exec_api_key_env` | "CODEX_API_KEY" | the environment variable that holds the key |
| `model.codex_exec_request_retries` | 2.0 | repeats of one request within a call, at the provider of `base_url` |
| `model.codex_exec_network_access` | false | whether commands may use the network |
| `model.codex_exec_web_search` | false | whether the agent may search the web |
| `model.codex_exec_pass_env` | "" | further variables to pass on, with commas between |
| `model.codex_exec_approval_policy` | "never" | accepted from the reference; there is no other |
| `model.codex_exec_use_sdk` | "cli" | accepted from the reference (`cli`, `auto`); the program is always used |

**Login.** The key in `api_key_env` comes first; then the account of `codex login`, whose `auth.json` is linked into
the home of the call, so that Codex can renew it; then `OPENAI_API_KEY`. With `base_url` only `api_key_env` counts, and
if it is not set, no key is sent. `CODEX_HOME` says where your own settings are, else `~/.codex`; nothing else of them
is used.

**Time.** `timeout_s` is the deadline of a call, unless `env.exec_timeout` for the target or `calls.timeout_s` for the
optimizer is set and ends it before. Raise it for long tasks.

Codex takes no temperature and no limit of a reply's length: `calls.temperature` must be null, and
`calls.max_output_tokens` has no effect. A sandbox keeps commands from writing, not from reading: they can read what you
can read.
"""

from __future__ import annotations

from skillgit_backends.codex_exec.backend import CodexExecBackend

__all__ = ["CodexExecBackend"]
