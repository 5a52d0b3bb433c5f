"""``make bench-real_placebo``: how many texts that say the same in other words a gate lets pass, with a real model.

Forty rewordings of a skill that change no meaning are made by a seed: bullets change places, a sentence that asks for
nothing is added, headings get another word, white space changes. The target at an address of OpenAI's protocol works on
the selection items with each of them, and each gate policy compares the outcomes with those of the skill itself. By
default a candidate is tried on train items before the gate measures it (``refine``); the target works on those too, and
the share of such looks that a rewording survives is computed from all draws::

    python tests/bench/real_placebo.py --address http://127.0.0.1:8081/v1 --tasks tasks.jsonl --skill SKILL.md \
        --folder placebo

What was answered is kept in FOLDER, so that the same command goes on after any stop. Without an address a stand-in
answers whose noise is planted: of ``--flips`` of the items, each text tosses the outcome. It also measures candidates
with a planted gain, and so what each policy loses to caution. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from math import comb
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import measure

sys.path.insert(0, str(Path(__file__).parents[1]))

from prefix_cache import TASKS, CachedModel, number_of, served, solves

from skillgit.domain.agreement import exact_interval
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_policies import MARGIN, PAIRED, STRICT, Comparison, Policy, Terms
from skillgit.domain.placebo import no_op
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.statistics import sign_test
from skillgit.strategies.refine import LOOKED_FAILING, LOOKED_SOLVED

NO_OPS = measure.sized(40, 3)
ITEMS = measure.sized(0, 6)  # selection items; 0 for all
GAINS = measure.sized(12, 1)
"""Candidates with a planted gain: one for each kind of item that a line may speak of."""
POLICIES: Mapping[str, tuple[Policy, Terms]] = {
    "strict": (STRICT, Terms()),
    "margin 0.025": (MARGIN, Terms(margin=0.025)),
    "margin 0.05": (MARGIN, Terms(margin=0.05)),
    "paired 0.05": (PAIRED, Terms(alpha=0.05)),
    "paired 0.15": (PAIRED, Terms(alpha=0.15)),
}
DEFAULT = "strict"
HEADINGS = (("rules", "guidelines"), ("steps", "procedure"), ("examples", "samples"), ("notes", "remarks"))
_REWORDED, _LOOKED = "reworded", "looked"


def rewordings(skill: Skill, count: int, seed: int) -> list[Skill]:
    """Return so many texts that say what ``skill`` says, each another one, the same for the same seed."""
    random, texts = Random(f"rewordings {seed}"), dict[str, Skill]()  # noqa: S311 - the same texts every time
    for _ in range(100 * count):
        reworded = no_op(skill, random.randint(1, 4 * count)).skill
        for change in random.sample((_headed, _spaced, _starred), random.randint(0, 2)):
            reworded = reworded.with_text(DOCUMENT, change(reworded.document, random))
        if reworded.digest != skill.digest:
            texts.setdefault(reworded.digest, reworded)
        if len(texts) == count:
            return list(texts.values())
    raise SystemExit(f"the skill has no {count} rewordings: {len(texts)} differ")


def _headed(text: str, random: Random) -> str:
    """Return ``text`` with another word in a heading; with a further mark where no heading has such a word."""
    for word, other in random.sample(HEADINGS, len(HEADINGS)):
        changed = re.sub(rf"(?im)^(#+ .*)\b{word}\b", rf"\g<1>{other}", text)
        if changed != text:
            return changed
    return re.sub(r"(?m)^(# [^\n]+[^:\n])$", r"\g<1>:", text, count=1)


def _spaced(text: str, random: Random) -> str:
    """Return ``text`` with one blank line more where there is one."""
    places = [match.end() for match in re.finditer(r"\n\n(?=\S)", text)][1:]
    place = random.choice(places) if places else len(text)
    return f"{text[:place]}\n{text[place:]}"


def _starred(text: str, random: Random) -> str:
    """Return ``text`` with another sign for all of its bullets."""
    return re.sub(r"(?m)^- ", random.choice(("* ", "+ ")), text)


class Noisy(CachedModel):
    """A target of which each text tosses the outcome of some items anew, as a wording that does not matter does."""

    flips: float = 0.05

    def said(self, prompt: str, question: str) -> str:
        """Answer a settled question by luck and lines of the skill, and toss the answer to any other."""
        if number_of("loose", question) % 1000 < 2000 * self.flips:
            is_right = number_of("toss", prompt) % 2 == 0
        else:
            is_right = solves(prompt, question)
        return self.answers[question] if is_right else "nothing"


def survives(failing: int, fixed: int, solved: int, broken: int) -> float:
    """Return the share of looks at train items, drawn at random, in which a candidate fixes more than it breaks.

    The base fails ``failing`` of the items, of which the candidate solves ``fixed``; and it solves ``solved``, of which
    the candidate fails ``broken``.
    """
    tried, controls = min(LOOKED_FAILING, failing), min(LOOKED_SOLVED, solved)
    return sum(
        comb(fixed, gains) * comb(failing - fixed, tried - gains) * comb(broken, losses)
        * comb(solved - broken, controls - losses)
        for gains in range(1, tried + 1) for losses in range(min(gains, controls + 1))
    ) / (comb(failing, tried) * comb(solved, controls))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a candidate changed on the items of a split."""

    n: int
    base: int  # items that the skill itself solves
    fixed: int
    broken: int

    def passes(self, name: str) -> bool:
        policy, terms = POLICIES[name]
        comparison = Comparison(
            total=self.fixed - self.broken,
            scale=1,
            count=self.n,
            fixed=self.fixed,
            broken=self.broken,
            terms=terms,
            p_value=lambda: sign_test(self.fixed, self.broken),
            counts_decide=True,
        )
        return policy.accepts(comparison)


class Workplace:
    """A repository in a folder, with the skill, its rewordings as commits, and the ledger of what was answered."""

    def __init__(self, folder: Path, tasks: Path, skill: Path, settings: Sequence[str]) -> None:
        self._folder, self._settings = folder, settings
        if not (folder / "tasks.jsonl").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tasks, folder / "tasks.jsonl")
            self._skillgit("init", ".", "--skill", str(skill.resolve()))
            self._git("add", "-A")
            self._git("commit", "-qm", "base")
            self._git("tag", "base")

    @property
    def document(self) -> Path:
        return next(path for path in sorted(self._folder.rglob(DOCUMENT)) if ".git" not in path.parts)

    def compared(self, name: str, texts: Sequence[Skill], split: Split = Split.SELECTION) -> list[Compared]:
        """Measure ``texts`` and the skill itself, text by text, as far as the ledger does not know the answers."""
        tags = [self._tag(name, text) for text in texts]
        words = [word for setting in self._settings for word in ("-o", setting)]
        against = ("--against", "base", "--split", split, "--config", "tasks/default")
        command = ("eval", *tags, *against, *words, "--no-note", "--json", "-q")
        document = json.loads(self._skillgit(*command))
        (whole,) = (arm["splits"][0]["overall"] for arm in document["arms"] if arm["name"].startswith("base"))
        base = round(whole["hard"] * whole["scored"])
        rows = document["comparisons"]
        return [Compared(n=row["n"], base=base, fixed=len(row["fixed"]), broken=len(row["broken"])) for row in rows]

    def _tag(self, name: str, text: Skill) -> str:
        """Return the tag of a commit with ``text``, which is made unless it was made before the last stop."""
        tag = f"{name}-{blake2b(text.document.encode(), digest_size=6).hexdigest()}"
        if not self._git("tag", "--list", tag):
            self._git("checkout", "-q", "base")
            self.document.write_text(text.document, encoding="utf-8")
            self._git("commit", "-qam", tag)
            self._git("tag", tag)
            self._git("checkout", "-q", "base")
        return tag

    def _git(self, *words: str) -> str:
        author = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
        done = subprocess.run(("git", *author, *words), cwd=self._folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def _skillgit(self, *words: str) -> str:
        done = subprocess.run((measure.SKILLGIT, *words), cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"skillgit {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def planted(skill: Skill) -> list[Skill]:
    """Return texts with a line that solves one kind of item."""
    lines = [f"- Rule {kind} holds for its kind of package." for kind in range(GAINS)]
    return [skill.with_text(DOCUMENT, f"{skill.document.rstrip()}\n{line}\n") for line in lines]


@contextmanager
def answering(words: argparse.Namespace) -> Iterator[str]:
    """Give the address of the target: the one that was asked for, or that of a stand-in."""
    if words.address:
        yield words.address
        return
    rows = [json.loads(line) for line in words.tasks.read_text(encoding="utf-8").splitlines()]
    model = Noisy(answers={row["question"]: row["answer"] for row in rows}, seconds=0.0)
    model.flips = words.flips
    with served(model) as address:
        yield address


@contextmanager
def place(folder: Path | None) -> Iterator[Path]:
    """Give the folder that was asked for, or one that ends with the process."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory() as name:
        yield Path(name)


def wanted() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="", help="of a server of OpenAI's protocol; a stand-in without one")
    parser.add_argument("--model", default="target", help="name of the model there")
    parser.add_argument(
        "--tasks", type=Path, default=TASKS / "tasks.jsonl", help="items, as the environment tasks reads"
    )
    parser.add_argument("--skill", type=Path, default=TASKS / "best.md", help="the text that is reworded")
    parser.add_argument("--folder", type=Path, help="where answers are kept; without it, nowhere")
    parser.add_argument("--seed", type=int, default=1, help="of the rewordings")
    parser.add_argument("--flips", type=float, default=0.05, help="share of items that a text of the stand-in tosses")
    parser.add_argument("--looks", action="store_true", help="have the target work on the train items too")
    parser.add_argument("--workers", type=int, default=4, help="calls at once")
    return parser.parse_args()


def main() -> None:
    words = wanted()
    with answering(words) as address, place(words.folder) as folder:
        settings = (
            *("model.target_backend=openai_compatible", f"model.target={words.model}"),
            *(f"model.target_base_url={address}", f"calls.concurrency={words.workers}"),
            *("env.data_path=tasks.jsonl", f"evaluation.sel_env_num={ITEMS}", "calls.temperature=0"),
        )
        workplace = Workplace(folder, words.tasks, words.skill, settings)
        skill = Skill("skill", {DOCUMENT: workplace.document.read_bytes()})
        texts = rewordings(skill, NO_OPS, words.seed)
        results = {_REWORDED: workplace.compared(_REWORDED, texts)}
        if words.looks:
            results[_LOOKED] = workplace.compared(_REWORDED, texts, Split.TRAIN)
        if not words.address:
            results["gain"] = workplace.compared("gain", planted(skill))
    report(results, "a stand-in" if not words.address else f"{words.model} at {words.address}")


def report(results: Mapping[str, Sequence[Compared]], target: str) -> None:
    """Print what passed under each policy."""
    no_ops, gains = results[_REWORDED], results.get("gain", ())
    looks = [survives(each.n - each.base, each.fixed, each.base, each.broken) for each in results.get(_LOOKED, ())]
    rows = [("policy", f"accepted of {len(no_ops)}", "exact 95 %", "planted gains accepted", "after a look")]
    figures: dict[str, object] = {
        "items": max(each.n for each in no_ops),
        "changed": sum(each.fixed + each.broken for each in no_ops) / sum(each.n for each in no_ops),
        "flips": [[each.fixed, each.broken] for each in no_ops],
    }
    for name in POLICIES:
        count = sum(each.passes(name) for each in no_ops)
        low, high = exact_interval(count, len(no_ops))
        share = sum(each.passes(name) for each in gains) / len(gains) if gains else None
        title = f"{name} (default)" if name == DEFAULT else name
        after = sum(chance for each, chance in zip(no_ops, looks, strict=True) if each.passes(name)) if looks else None
        cells = ("" if share is None else f"{share:.2f}", "" if after is None else f"{after:.1f}")
        rows.append((title, str(count), f"{low:.3f} to {high:.3f}", *cells))
        figures[name] = {"accepted": count, "interval": [round(low, 4), round(high, 4)]}
        if after is not None:
            figures[name] |= {"after a look": round(after, 2)}  # type: ignore[operator]
        if share is not None:
            figures[name] |= {"gains": round(share, 3)}  # type: ignore[operator]
    head = f"Rewordings that a gate lets pass, with {target}: each changed {figures['changed']:.1%} of the items"
    measure.report(head, rows, figures)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
