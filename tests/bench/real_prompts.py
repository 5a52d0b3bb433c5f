"""``make bench-real_prompts``: what the form of the target's prompt does to a score, with a real model.

The same skill and the same items are asked in several forms: with a mark around the skill or without, with a role, with
the form of the answer in the system prompt or at the end of the user's turn, and in words that leave room for thought
or none::

    python tests/bench/real_prompts.py --address http://127.0.0.1:8081/v1 --tasks tasks.jsonl --skill SKILL.md \
        --split selection --folder answers

What was answered is kept in FOLDER, so that the same command goes on after any stop. Without an address a stand-in
answers. ``text, answer last`` is the form that skillgit sends; the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import measure
from openai import OpenAI
from real_placebo import TASKS, answering, place

from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.statistics import sign_test
from skillgit_envs.answers import exact_match, extract, in_tag

ROLE = "You carry out tasks."
ALONE = "Give the result, and nothing else, between <answer> and </answer>."
THINK = "Think about what the task asks for, then give the final answer between <answer> and </answer>."
GIVE = "Give the final answer between <answer> and </answer>."
OWN = "text, answer last"
ITEMS = measure.sized(0, 4)  # of the split; 0 for all
WORKERS = 4
MOST_TOKENS = 400


class Seen(NamedTuple):
    """What the target sees of a skill and an item."""

    name: str
    description: str
    text: str
    question: str


def _mark(seen: Seen) -> str:
    return f'<skill name="{seen.name}">\n{seen.text}\n</skill>'


FORMS: Mapping[str, Callable[[Seen], tuple[str, str]]] = {
    "role, mark, 'nothing else' in the system prompt": lambda seen: (
        f"{ROLE}\n\n{_mark(seen)}\n\n{ALONE}",
        seen.question,
    ),
    "role, mark, 'nothing else' last": lambda seen: (f"{ROLE}\n\n{_mark(seen)}", f"{seen.question}\n\n{ALONE}"),
    "text, 'nothing else' in the system prompt": lambda seen: (f"{seen.text}\n\n{ALONE}", seen.question),
    "text, think in the system prompt": lambda seen: (f"{seen.text}\n\n{THINK}", seen.question),
    "text, think last": lambda seen: (seen.text, f"{seen.question}\n\n{THINK}"),
    OWN: lambda seen: (seen.text, f"{seen.question}\n\n{GIVE}"),
    "role, text, answer last": lambda seen: (f"{ROLE}\n\n{seen.text}", f"{seen.question}\n\n{GIVE}"),
    "mark, answer last": lambda seen: (_mark(seen), f"{seen.question}\n\n{GIVE}"),
    "as an agent loads it, answer last": lambda seen: (
        f"# Skill: {seen.name}\n\n{seen.description}\n\n{seen.text}",
        f"{seen.question}\n\n{GIVE}",
    ),
    "all in the user's turn": lambda seen: ("", f"{seen.text}\n\n{seen.question}\n\n{GIVE}"),
}
"""What a form is called, to the system prompt, empty for none, and the user's turn."""


class Answers:
    """Replies of one model, each kept in a file as soon as it is there."""

    def __init__(self, client: OpenAI, model: str, folder: Path) -> None:
        self._client, self._model, self._folder = client, model, folder

    def ask(self, prompt: tuple[str, str]) -> str:
        system, user = prompt
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": user})
        file = self._folder / sha256(json.dumps([self._model, messages]).encode()).hexdigest()[:24]
        if not file.is_file():
            reply = self._client.chat.completions.create(
                model=self._model,
                messages=messages,  # type: ignore[arg-type]
                temperature=0,
                max_tokens=MOST_TOKENS,
            )
            fresh = file.with_suffix(".new")
            fresh.write_text(reply.choices[0].message.content or "", encoding="utf-8")
            fresh.replace(file)
        return file.read_text(encoding="utf-8")


def wanted() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="", help="of a server of OpenAI's protocol; a stand-in without one")
    parser.add_argument("--model", default="target", help="name of the model there")
    parser.add_argument("--tasks", type=Path, default=TASKS / "tasks.jsonl", help="rows with question, answer, split")
    parser.add_argument("--skill", type=Path, default=TASKS / "best.md", help="the text that is shown")
    parser.add_argument("--split", default="selection", help="of the items")
    parser.add_argument("--folder", type=Path, help="where answers are kept; without it, nowhere")
    parser.set_defaults(flips=0.0)
    return parser.parse_args()


def main() -> None:
    words = wanted()
    rows = [json.loads(line) for line in words.tasks.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["split"] == words.split][: ITEMS or None]
    document = words.skill.read_text(encoding="utf-8")
    head = frontmatter(document)
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    text = document[len(head) :].strip()
    results: dict[str, list[tuple[bool, bool]]] = {}
    with answering(words) as address, place(words.folder) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        with closing(OpenAI(base_url=address, api_key="none", timeout=1200)) as client:
            answers = Answers(client, words.model, folder)
            for name, form in FORMS.items():  # form by form, so that the server's prefix cache serves
                prompts = [
                    form(Seen(fields.get("name", ""), fields.get("description", ""), text, row["question"]))
                    for row in rows
                ]
                with ThreadPoolExecutor(WORKERS) as pool:
                    replies = list(pool.map(answers.ask, prompts))
                results[name] = [
                    (in_tag(reply) is not None, exact_match(extract(reply), row["answer"]))
                    for reply, row in zip(replies, rows, strict=True)
                ]
    report(results)


def report(results: Mapping[str, list[tuple[bool, bool]]]) -> None:
    """Print how many replies have the form and the right answer, and how sure the difference from our form is."""
    table, figures = [("form", "in the form", "right", "against ours: fixed, broken, p")], dict[str, float]()
    own = [is_right for _, is_right in results[OWN]]
    for name, outcomes in results.items():
        right = [is_right for _, is_right in outcomes]
        fixed = sum(ours and not theirs for ours, theirs in zip(own, right, strict=True))
        broken = sum(theirs and not ours for ours, theirs in zip(own, right, strict=True))
        score = sum(right) / len(right)
        versus = "" if name == OWN else f"{fixed}, {broken}, {sign_test(fixed, broken):.4f}"
        table.append((name, f"{sum(has for has, _ in outcomes)} of {len(outcomes)}", f"{score:.3f}", versus))
        figures[name] = round(score, 4)
    measure.report("What the form of the target's prompt does", table, figures)


if __name__ == "__main__":
    main()
