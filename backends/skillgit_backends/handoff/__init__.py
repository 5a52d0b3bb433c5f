"""The ``handoff`` backend: somebody else answers, from file to file; no key, no network.

| setting | default | meaning |
|---|---|---|
| `model.handoff_dir` | "handoff" | the folder of questions and answers, relative as all paths of a configuration are |
| `model.handoff_settle_s` | 0.5 | seconds without a new question after which a wave counts as complete |

A call whose answer is there returns it. Otherwise its prompt is written, and when no further call arrives, the run
stops with exit code 8. ``PROMPTS.md`` in the folder tells people and agents what to do: answer each
``<digest>.prompt.md`` in a fresh context and write the answer, and nothing else, to ``<digest>.answer.md``.
``pending.json`` says the same to programs. The same command then goes on where the run stands; it stops again at the
next wave.

A wave is as wide as ``calls.concurrency`` lets it be: raise it to be interrupted less often. Tokens are estimated at
four characters each. What is shaped like a credential is masked in all files, as it is in everything that is recorded.
Two calls that ask the same question get the same answer.
"""

from __future__ import annotations

from skillgit_backends.handoff.backend import HandoffBackend

__all__ = ["HandoffBackend"]
