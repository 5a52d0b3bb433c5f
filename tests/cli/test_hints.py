"""Every hint of the program that can be typed is typed, where it is printed, and leads somewhere else than back."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
from hint_collector import commands_in, hints, pattern
from once import copy_folder

from skillgit.cli import main
from skillgit.verbs.command_line import SHARED
from skillgit.view.catalogue import ENTRIES

ELSEWHERE = Path(__file__).with_name("hints_elsewhere.txt")
PROSE = {
    "stopped",
    "itself",
    "again",
    "on",
    "as",
    "may",
    "takes",
    "runs",
    "reach",
    "reaches",
    "in",
    "needs",
    "is",
    "can",
}

SITUATIONS = [
    # what is typed | what its hint says | what is typed then, where that is more than the hint's own command
    ("show first/e9", "skillgit log first --event slow-proposed", ""),
    ("show first/b9", "skillgit log first --event measured", ""),
    ("log first..second", "skillgit diff first second", ""),
    ("diff first/v0", "skillgit show first/v0", ""),
    ("blame first SKILL.md -L 999,1000", "-L 1,{}", "blame first SKILL.md -L 1,2"),
    ("why 999", "skillgit blame", ""),
    ("why nothinglikethis", "skillgit log --grep nothinglikethis", ""),
    ("uninstall --to nowhere", "Agents are", ""),
    ("export first/best taken", "write to ", "export first/best taken/repo"),
    ("verify nope", "skillgit claim REV", "claim first/best --key key"),
    ("claim first/best", "--key FILE", "claim first/best --key key"),
    ("revert first/v0", "skillgit revert --to first/v0", ""),
    ("revert --to first/v{last}", "skillgit log first", ""),
    (
        "revert --to first/v0",
        "git -C {} switch --detach",
        "git -C ../beside switch --detach",
        "git worktree add -q ../beside run/first",
    ),
    ("merge first first", "skillgit cherry-pick", "cherry-pick first/v1 --run second -n"),
    ("shorten first/v0 --words 5", "--help", "shorten --help"),
    ("shorten first/v0 --words", "skillgit revert --to first/v0", ""),
    ("propose nothing", "skills of main: repo", "propose repo -n"),
    (
        "propose repo",
        "skillgit promote",
        "runs",
        "git rm -rq skills/repo; git -c user.name=A -c user.email=a@example.com commit -qm gone",
    ),
    ("eval first/best --model no/x -n", "for a server of yours", "plugins"),
    ("train", "skillgit tasks add", "tasks add --skill repo --prompt Q --answer A"),
    ("train --run nope", "skillgit train CONFIG", "train demo --run nope -n"),
    ("train tasks -n", "tasks/default", "train tasks/default -n"),
    ("train demo --run first", "--from first/best --run NAME", "train demo --from first/best --run other -n"),
    (
        "train demo --run first -o train.seed=4",
        "--from first/v0 --run NAME",
        "train demo --from first/v0 --run other -n",
    ),
    ("train demo --max-calls 1 --run other", "--max-calls {} or more; --dry-run", "train demo --max-calls 999 -n"),
    ("tasks review --skill repo", "skillgit tasks draft repo --from sessions", "tasks draft repo --from sessions -n"),
    ("tasks draft repo -n", "name one: -o model.{}_backend", "tasks draft repo --help"),
    ("config demo -o train.num_epochs", "-o train.batch_size=20", "config demo -o train.batch_size=20"),
    ("config demo -o train.num_epochs=x", "skillgit config CONFIG", "config demo"),
    ("config demo -o model.targte=x", "did you mean 'model.target'", "config demo -o model.target=reader"),
    ("config demo -o model.openai_compatible_nonsense=5", "skillgit plugins openai_compatible", ""),
    ("gc", "skillgit gc --fold", "gc --fold -n"),
    ("push", "git remote add origin URL", "git remote add origin elsewhere"),
    ("pull nowhere", "git remote add nowhere URL", "git remote add nowhere elsewhere"),
    (
        "push",
        "git remote set-url origin URL",
        "git remote set-url origin elsewhere",
        "git remote add origin https://me:secret@example.org/x.git",
    ),
    (
        "push",
        "correct the address: git remote set-url origin URL",
        "git init -q --bare elsewhere",
        "git remote add origin elsewhere",
    ),
    ("runs --sort nothing", "--sort takes name", "runs --sort name"),
    ("tui", "skillgit log", ""),
    ("serve --revoke nobody", "skillgit serve --tokens", ""),
    (
        "train demo -n -o model.target_backend=openai_chat",
        "-o model.target=MODEL",
        "train demo -n -o model.target_backend=openai_chat -o model.target=m",
    ),
    (
        "train demo -n -o model.target_backend=openai_compatible -o model.target=m",
        "-o model.openai_compatible_base_url=http://127.0.0.1:8080/v1",
        "train demo -n -o model.target_backend=openai_compatible -o model.target=m -o model.openai_compatible_base_url=http://127.0.0.1:8080/v1",
    ),
    (
        "config demo -o model.target_backend=ollama",
        "-o model.openai_compatible_base_url=http://127.0.0.1:11434/v1",
        "config demo -o model.target_backend=openai_compatible -o model.openai_compatible_base_url=http://127.0.0.1:11434/v1",
    ),
    (
        "config demo -o model.base_url=http://x",
        "'model.openai_compatible_base_url', with model.target_backend=openai_compatible",
        "config demo -o model.openai_compatible_base_url=http://x -o model.target_backend=openai_compatible",
    ),
    (
        "train demo -n -o model.target_batch=true",
        "-o model.target_batch=false",
        "train demo -n -o model.target_batch=false",
    ),
    ("plugins nothing-of-it", "skillgit plugins", ""),
    ("plugins opneai_chat", "did you mean 'openai_chat'", "plugins openai_chat"),
    ("plugins nothing-of-it --fetch data/x", "installed: ", "plugins searchqa"),
    ("data fetch searchqa", "skillgit --help", "--help"),
    ("install first/best", "skillgit install --help", ""),
    ("hlep", "skillgit --help", "--help"),
    ("note --list first/v9", "v0", "note --list"),
    ("note first/v1", "skillgit note --help", ""),
    ("fork first/v1 second", "skillgit fork REV NAME", "fork first/v1 third"),
    ("cherry-pick first/v1 --run first", "skillgit diff first/v1 first/v{}", "diff first/v1 first/v0"),
    ("ablate first --rule 99", "skillgit ablate", "ablate first -n"),
    ("items --item nope", "its selection items are", "items first"),
    ("items first --type nope", "task types are", "items first --type date"),
    ("-C .. log", "skillgit init", "-C ../empty init"),
    ("-C nowhere log", "-C", "-C . log"),
    (
        "eval first/best --config demo --split test --dry-run --against nothing",
        "runs: ",
        "eval first/best --config demo --split test --dry-run --against first/v0",
    ),
    ("doctor --port 1", "skillgit doctor --help", ""),
    ("config demo -o env.name=nothing-of-it", "installed: ", "config demo -o env.name=searchqa"),
    ("tasks add tasks.jsonl", "skillgit tasks add --help", ""),
    ("train demo -n -o env.skill_init=nofile", "SKILL.md", "train demo -n -o env.skill_init=skills/repo"),
    ("train demo -n -o env.data_path=nofile", "-o paths refer", "config demo -o env.data_path=tasks.jsonl"),
    ("lint --window 5", "skillgit lint --help", "lint --library --window 5000"),
    ("lint --secrets x y", "skillgit lint --help", ""),
    ("checkout first/v77", "it has v0", "checkout first/v0"),
    ("train demo --tui", "skillgit train demo", "train demo -n"),
    (
        "train --run own",
        "skillgit train CONFIG --from own/v0 --run NAME",
        "train tasks/default -o env.data_path=tasks.jsonl --from own/v0 --run other -n",
        "change tasks",
    ),
    ("shorten own -n", "skillgit eval", "eval own/v0 -n -o env.data_path=tasks.jsonl", "change tasks"),
    ("log", "git config --unset skillgit.run, or skillgit runs", "runs", "git config skillgit.run nope"),
    ("revert first/v1 --gate", "skillgit revert --to {} --gate", "revert --to first/v1 --gate -n"),
    (
        "doctor demo -o model.target_backend=openai_chat -o model.target=m --max-tokens 1",
        "--no-call",
        "doctor demo -o model.target_backend=openai_chat -o model.target=m --no-call",
    ),
    ("serve --invite Ada", "skillgit serve --revoke 'Ada'", "serve --revoke Ada", "skillgit serve --invite Ada"),
    ("verify first/v1", "skillgit claim {} makes one", "claim first/v1 --key key"),
    (
        "train tasks/default -n -o env.data_path=drafts.jsonl",
        "skillgit tasks review drafts.jsonl",
        "tasks review drafts.jsonl",
        "drafts",
    ),
    (
        "install first/best --to ./here",
        "--yes replaces it",
        "install first/best --to ./here --yes",
        "skillgit install first/best --to ./here; edit installed",
    ),
    ("ablate own -n", "-o env.data_path=PATH", "ablate own -n -o env.data_path=../repo/tasks.jsonl", "clone"),
    ("report first --output nowhere/r.html", "mkdir -p", "report first --output r.html"),
    ("note first/v1 ' '", "skillgit note REV 'TEXT'", "note first/v1 'TEXT'"),
    ("note --remove nope", "skillgit note --list", ""),
    (
        "cherry-pick --rejected --run first --keep --model offline/reader",
        "leave out --keep",
        "cherry-pick --rejected --run first --model offline/reader -n",
    ),
    (
        "export first/best skills --as csv --table items",
        "name a file, or leave",
        "export first/best tables --as csv",
    ),
    (
        "export first/best tasks.jsonl --as csv --table items",
        "name a new file",
        "export first/best new.csv --as csv --table items",
    ),
    (
        "export first/best skills --as skillopt",
        "name a new folder",
        "export first/best outputs --as skillopt",
    ),
    ("export first/best x.zip", "--force replaces it", "export first/best x.zip --force", "cp key x.zip"),
    ("uninstall", "skillgit install --list", ""),
    (
        "uninstall",
        "skillgit uninstall --to",
        "uninstall --to ./here",
        "skillgit install first/best --to ./here; skillgit install first/best --to ./there",
    ),
    (
        "uninstall --to ./here",
        "--yes gives these changes up",
        "uninstall --to ./here --yes",
        "skillgit install first/best --to ./here; edit installed",
    ),
    (
        "export first/best out --as plugin --name 'Not A Name'",
        "--name NAME, with small letters",
        "export first/best out --as plugin --name good",
    ),
    (
        "export first/best out --as plugin --evals nofile.jsonl",
        "--evals tasks/NAME.jsonl",
        "export first/best out --as plugin --evals tasks.jsonl",
    ),
    ("lint --secrets first/v0 --evidence", "skillgit lint --help", ""),
    (
        "tasks draft --from sessions --project nowhere -n",
        "check --project",
        "tasks draft --from sessions -n --all-projects",
    ),
    ("tasks draft --from sesions", "--from takes model, sessions", "tasks draft --from sessions -n --all-projects"),
    ("tasks draft --from atif -n", "--from atif:PATH", "tasks draft --from atif:. -n"),
    ("claim first/best --key nofile", "--key names the file", "claim first/best --key key"),
    ("verify tasks.jsonl", "skillgit claim REV --output FILE", "claim first/best --key key --output FILE"),
    ("log first --skill other", "skillgit runs --skill skills/other", "", "second skill"),
    (
        "runs --skill other",
        "skillgit tasks add --skill other --prompt QUESTION --answer ANSWER",
        "tasks add --skill other --prompt QUESTION --answer ANSWER",
        "second skill",
    ),
    ("tasks review", "--skill other", "tasks draft other --from sessions -n", "second skill"),
    ("train demo --run first --fresh", "leave out --fresh", "train demo --run other --fresh -n"),
    ("items first --checks", "skillgit items first", ""),
    (
        "tasks review drafts.jsonl --accept nope",
        "skillgit tasks review drafts.jsonl lists them",
        "tasks review drafts.jsonl",
        "drafts",
    ),
    (
        "propose -n",
        "skillgit tasks add --skill repo --prompt QUESTION --answer ANSWER",
        "tasks add --skill repo --prompt QUESTION --answer ANSWER",
    ),
    ("propose repo -n --branch main", "--branch propose/NAME", "propose repo -n --branch propose/NAME"),
    (
        "train tasks/default -n",
        "name your own: -o env.data_path=FILE",
        "train tasks/default -n -o env.data_path=tasks.jsonl",
    ),
    (
        "train tasks/default --skill repo -n",
        ", or -o env.data_path=FILE",
        "train tasks/default --skill repo -n -o env.data_path=tasks.jsonl",
    ),
    ("-C ../empty runs", "skillgit init", "-C ../empty init", "git init -q ../empty"),
    (
        "-C ../empty runs",
        "--skill empty",
        "-C ../empty tasks add --skill empty --prompt Q --answer A",
        "skillgit -C ../empty init",
    ),
    (
        "-C ../empty log --skill nope",
        "skillgit init --skill PATH adds one",
        "-C ../empty init --skill ../repo/skills/repo",
        "git init -q ../empty",
    ),
    (
        "train demo --skill repo -n",
        "--from RUN/best takes the text of one",
        "train demo --skill repo --from first/best -n",
        "git rm -rq skills; git -c user.name=A -c user.email=a@example.com commit -qm gone",
    ),
    ("clone . ../repo", "skillgit clone URL DIR names another folder", "clone . ../copy"),
    ("fork first/r1 x", "a candidate becomes one if it passes", "cherry-pick first/r1 --run first -n"),
]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A repository with three runs, made once."""
    folder = tmp_path_factory.mktemp("hints") / "repo"
    folder.mkdir()
    rows = [
        {"id": f"t{n}", "question": f"Mill {n} burned down in {1800 + n}. When?", "answer": f"{1800 + n}"}
        for n in range(24)
    ]
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "drafts.jsonl").write_text(json.dumps({**rows[0], "status": "draft"}) + "\n")
    own = [
        "train",
        "tasks/default",
        "-o",
        "env.data_path=tasks.jsonl",
        "--run",
        "own",
        "-o",
        "train.num_epochs=1",
        "-q",
    ]
    for words in (
        ["init"],
        ["train", "demo", "--run", "first", "-o", "train.num_epochs=1", "--quiet"],
        [
            "train",
            "demo",
            "--run",
            "second",
            "--from",
            "first/v0",
            "-o",
            "train.num_epochs=1",
            "-o",
            "train.seed=7",
            "-q",
        ],
        own,
        ["fork", "first/v0", "forked"],
        ["use", "first"],
    ):
        assert main.run(["-C", str(folder), *words]) == 0
    (folder / "taken").mkdir()
    (folder / "taken" / "other.txt").write_text("not a skill\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    subprocess.run(["git", "repack", "-adq"], cwd=folder, check=True)  # each situation has a copy, of few files
    return folder


def last_version(folder):
    names = subprocess.run(
        ["git", "log", "--format=%(trailers:key=Skillgit-Version,valueonly)", "run/first"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return max(int(name.removeprefix("v")) for name in names)


def typed(capsys, words):
    code = main.run(shlex.split(words))
    said = capsys.readouterr().err
    errors = [line for line in said.splitlines() if line.startswith("skillgit:")]
    return code, errors[-1] if errors else "", said.partition("hint: ")[2]


def prepare(steps, folder, monkeypatch):
    """Do what comes before a situation: commands, or one of a few changes with names."""
    for step in filter(None, steps.split("; ")):
        if step == "change tasks":
            tasks = folder / "tasks.jsonl"
            tasks.write_text(tasks.read_text().replace("Mill 3 ", "The third mill "))
        elif step == "second skill":
            copy_folder(folder / "skills" / "repo", folder / "skills" / "other")
            document = folder / "skills" / "other" / "SKILL.md"
            document.write_text(document.read_text().replace("name: repo", "name: other"))
            assert main.run(["init", "--skill", "skills/other"]) == 0
        elif step == "edit installed":
            (path,) = (folder / "here").rglob("SKILL.md")
            path.write_text(path.read_text() + "\nBy hand.\n")
        elif step == "clone":
            monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))  # whose history is whose is kept there
            assert main.run(["clone", "--evidence", ".", "../copy"]) == 0
            monkeypatch.chdir(folder.parent / "copy")
        elif step.startswith("skillgit "):
            assert main.run(shlex.split(step)[1:]) == 0
        elif step != "drafts":
            subprocess.run(shlex.split(step), cwd=folder, check=True)


UNREAD = re.compile(r"there is no (?:option|command) |missing (?:option|argument)|unexpected extra argument")


def test_no_hint_leads_back_to_its_error_and_every_hint_has_a_situation(original, tmp_path, monkeypatch, capsys):
    printed, wrong = [], []
    for number, (words, hint, then, *before) in enumerate(SITUATIONS):
        folder = tmp_path / str(number) / "repo"
        copy_folder(original, folder)
        monkeypatch.chdir(folder)
        (folder.parent / "empty").mkdir()
        for step in before:
            prepare(step, folder, monkeypatch)
        last = last_version(folder) if "{last}" in words else 0
        _, error, first = typed(capsys, words.replace("{last}", str(last)))
        if not pattern(hint).search(first):
            wrong.append(f"{words}: expected '{hint}' in '{first.strip()}' ({error})")
            continue
        printed.append(first)
        command = then or hint.partition("skillgit ")[2]
        if not command:
            continue
        if command.startswith("git "):
            subprocess.run(shlex.split(command), check=True)
            command = words
        code, again, _ = typed(capsys, command)
        if code == 70 or UNREAD.search(again) or (again and again == error):
            wrong.append(f"{words}: '{command}' ends with {code}: {again}")
    assert not wrong, "\n".join(wrong)
    known = {line.partition(" | ")[0] for line in ELSEWHERE.read_text(encoding="utf-8").splitlines()}
    every = hints()
    lacking = [
        f"{template} | {path}"
        for template, path in every.items()
        if template not in known and not any(pattern(template).search(text) for text in printed)
    ]
    assert not lacking, (
        "\n".join(lacking) + "\ngive each a situation above, or a line with its reason in hints_elsewhere.txt"
    )
    assert sorted(known - every.keys()) == [], "these are no hints of the program any more"


def leaves(group, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))


VERBS = dict(leaves(main.cli))
EVERY_OPTION = {
    option for verb in (main.cli, *VERBS.values()) for param in (*verb.params, *SHARED) for option in param.opts
}


def test_every_command_in_a_hint_exists_with_its_options():
    for template in hints():
        for name, *rest in commands_in(template):
            if name in PROSE or name.startswith(("-", "{")):
                continue
            assert name in ENTRIES, template
            verb = VERBS.get((name, *rest[:1])) or VERBS.get((name,))
            if verb is None or isinstance(verb, click.Group):
                continue
            options = {option for param in verb.get_params(click.Context(verb)) for option in param.opts}
            for word in rest:
                option = word.partition("=")[0]
                if re.fullmatch(r"--[a-z][a-z-]*", option):
                    assert option in options or option in EVERY_OPTION, (template, option)


def test_every_option_in_a_hint_exists():
    programs = ("git ", "{} run", "--headless", "ray start", "gh pr", "--force-reinstall")
    for template in hints():
        if not any(program in template for program in programs):
            for option in re.findall(r"(?:^|\s)(--[a-z][a-z-]*)", template):
                assert option in EVERY_OPTION | {"--help"}, (template, option)


def test_the_reasons_are_given():
    for line in ELSEWHERE.read_text(encoding="utf-8").splitlines():
        assert len(line.partition(" | ")[2]) > 10, line
