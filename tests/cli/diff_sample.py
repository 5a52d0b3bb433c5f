"""Differences of the invented history's versions, as the use cases would return them."""

from __future__ import annotations

from dataclasses import replace

import cli_sample as sample

from skillgit.app.history.diff.items import ItemDiff, Length, TypeChange
from skillgit.app.history.diff.rules import RuleChange, RulesDiffed
from skillgit.app.history.diff.stat import DiffStat
from skillgit.app.history.diff.text import Diffed
from skillgit.domain.address import address_of
from skillgit.domain.conditions import Aspect, Difference
from skillgit.domain.skill_rules import Region
from skillgit.domain.text_diff import detailed, read_patch

PATCH = "".join(
    f"{line}\n"
    for line in (
        "diff --git a/skills/searchqa/SKILL.md b/skills/searchqa/SKILL.md",
        "index 1111111..2222222 100644",
        "--- a/skills/searchqa/SKILL.md",
        "+++ b/skills/searchqa/SKILL.md",
        "@@ -8,11 +8,11 @@",
        " ## Verify units",
        " ",
        " Read the question again before answering.",
        "-Answer in the unit of the table.",
        "+Answer in the unit of the question, and say it.",
        " If the table has two units, convert once.",
        "-Quote the row that you used.",
        "-Mind the \x1b[2Jgap.",
        " ",
        " ## Answer",
        " ",
        "+Quote the row that you used.",
        "+Count twice:\t東京",
        " Answer briefly.",
        "\\ No newline at end of file",
        "diff --git a/skills/searchqa/run.sh b/skills/searchqa/run.sh",
        "old mode 100644",
        "new mode 100755",
    )
)
DIFFED = Diffed(a=sample.V6, b=sample.V7, text=PATCH.encode())
AS_DATA = replace(DIFFED, files=detailed(read_patch(PATCH)))
SAME = replace(DIFFED, text=b"")
STAT = DiffStat(
    text=" skills/searchqa/SKILL.md | 3 ++-\n 1 file changed, 2 insertions(+), 1 deletion(-)\n",
    a=sample.V6,
    b=sample.V7,
    rules_added=2,
    rules_removed=1,
    rules_changed=1,
    rules_moved=0,
    fixed=7,
    broken=2,
    compared=40,
    not_measured=0,
    missing=0,
    differs=(),
    length=Length(before=183, after=215),
)
STOPPED_STAT = replace(STAT, b=sample.R18, fixed=0, broken=1, compared=4, not_measured=36)
OTHER_TARGET = (Difference(aspect=Aspect.TARGET, a="offline/reader", b="offline/agent"),)
OTHER_STAT = replace(STAT, differs=OTHER_TARGET)
UNMEASURED_STAT = replace(
    STAT,
    text="",
    a=None,
    rules_added=0,
    rules_removed=0,
    rules_changed=0,
    fixed=None,
    broken=None,
    compared=None,
    not_measured=None,
    missing=None,
)
ITEMS = ItemDiff(
    a=sample.V6,
    b=sample.V7,
    differs=(),
    metric="hard",
    rows=sample.ITEMS,
    fixed=("q17", "q22"),
    broken=("q03",),
    stable_pass=("q04",),
    stable_fail=("q05",),
    not_measured=(),
    missing=("q40",),
    p=0.5,
    p_worse=0.875,
    types=(
        TypeChange(task_type="jeopardy", n=3, before=0.75, after=0.4167, fixed=0, broken=1),
        TypeChange(task_type="units", n=2, before=0.125, after=0.75, fixed=2, broken=0),
    ),
    length=Length(before=183, after=215),
    notes=(),
)
STOPPED_ITEMS = replace(
    ITEMS,
    b=replace(sample.R18, score=None, delta=None, bound=0.7125),
    fixed=(),
    p=1.0,
    p_worse=0.5,
    types=(),
    rows=(
        *sample.ITEMS[:-1],
        replace(sample.ITEMS[-1], change="not-measured"),
    ),
    not_measured=("q40",),
    missing=(),
)
SETTLED_ITEMS = replace(
    STOPPED_ITEMS,
    broken=(),
    rows=tuple(row for row in STOPPED_ITEMS.rows if row.change not in {"fixed", "broken"}),
    p_worse=1.0,
)
OTHER_ITEMS = replace(ITEMS, differs=OTHER_TARGET, p=None, p_worse=None)
OTHER_SEED_ITEMS = replace(ITEMS, differs=(Difference(aspect=Aspect.SEED, a="7", b="42"),))


def rule(change: str, text: str, **facts: object) -> RuleChange:
    known = {
        "change": change,
        "file": "SKILL.md",
        "heading": "Verify units",
        "region": Region.BODY,
        "text": text,
        "before": "",
        "first": 12,
        "last": 12,
        "deed": "removed" if change == "removed" else "brought",
        "by": sample.RUN,
        "version": 7,
        "step": 17,
        "epoch": 2,
        "kind": "accepted",
        "origin": "step",
        "number": 0,
        "commit": sample.V7.commit,
        "source": "failure",
        "support": 4,
        "gain": 0.025,
    }
    known |= facts
    names = ("version", "step", "epoch", "origin", "number")
    called = {name: known[name] for name in names}
    return RuleChange(**known, address=address_of(known["kind"], run=known["by"], **called) if known["by"] else None)


RULES = RulesDiffed(
    a=sample.V6,
    b=sample.V7,
    rows=(
        rule("added", "Quote the span you rely on.", version=4, step=9, support=5),
        rule(
            "changed",
            "Answer in the unit the question asks for, and say it, whatever the table says.",
            before="Always answer in the unit of the table.",
        ),
        rule("moved", "Read again.", by="", version=None, step=None, kind="", source="seed", support=None, gain=None),
        rule("added", "Cite the row.", version=5, kind="slow-proposed", source="slow", support=None, gain=None),
        rule("removed", "Mind style.", version=6, kind="accepted", origin="prune", number=1, support=None, source=""),
        rule("removed", "If unsure, guess the nearest year.", version=5, step=11, source="success", gain=-0.05),
    ),
    kept=12,
)
SAME_RULES = replace(RULES, rows=())
APART = replace(
    RULES,
    a=sample.OTHER,
    rows=(rule("removed", "Read the whole page.", by=sample.OTHER.run, version=1, step=1, deed="brought"),),
)
