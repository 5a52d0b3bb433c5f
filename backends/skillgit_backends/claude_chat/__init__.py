"""The ``claude_chat`` backend: Anthropic's Messages API through the official SDK.

| setting | default | meaning |
|---|---|---|
| `model.claude_chat_base_url` | "" | another address of the API; empty: `ANTHROPIC_BASE_URL`, else Anthropic's |
| `model.claude_chat_api_key_env` | "" | the environment variable that holds the key; empty: `ANTHROPIC_API_KEY` |
| `model.claude_chat_thinking` | "auto" | how `model.reasoning_effort` is asked for, see below |
| `model.claude_chat_cache` | "prefix" | what the provider shall cache: `prefix`, `system` or `off` |

Without a key in `ANTHROPIC_API_KEY`, a token in `ANTHROPIC_AUTH_TOKEN` is used. Keys are read at each call. They go to
Anthropic, or to the address in `ANTHROPIC_BASE_URL`; an address from the settings gets only the key that `api_key_env`
names, and without one a word that local servers ignore.

**Thinking.** Without `model.reasoning_effort`, nothing is said of it and the model's default holds. With it, `adaptive`
lets the model think as much as it finds right at that effort; `budget` gives it so many tokens (low 1024, medium 4096,
high 16384, xhigh 32768, max 65536, and never more than half of `calls.max_output_tokens`, which counts both thinking
and answer); `off` forbids it. `auto` is `budget` for the models that know nothing else, up to Claude 4.5, and
`adaptive` for all others. With a budget, a model does not think on while tools are in use: its earlier thoughts would
have to be sent back, and a conversation does not keep them. A temperature cannot be set together with thinking.

**Caching.** The system prompt, with the tools before it, is marked for caching, and so is the first user text of 4096
characters or more that something follows, for only a prefix can be read again. Writing a cache costs a quarter more
than reading plain tokens, reading it a tenth.

**Long answers.** Above 21333 tokens of `calls.max_output_tokens` answers are streamed, for the API refuses to wait.
"""

from __future__ import annotations

from skillgit_backends.claude_chat.backend import ClaudeChatBackend

__all__ = ["ClaudeChatBackend"]
