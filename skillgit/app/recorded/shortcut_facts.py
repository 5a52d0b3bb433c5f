"""What scores without the question: a score that is not above the best shortcut says nothing about a skill.

Shortcuts are measured where the items are at hand, and kept in the private folder of the repository by the digest of
the items, so that a score can be compared with them where the items are not loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from skillgit.domain.evaluation import Gauge, Metric, Split, item_set_digest
from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.json_limits import loads
from skillgit.files import read_plain, write_file
from skillgit.lazy import loaded_on_use
from skillgit.store.repo import Repo

with loaded_on_use():  # few who show a score have what was kept of its shortcuts
    from skillgit.plugin import environment as environments
    from skillgit.plugin import shortcuts

_FOLDER = "shortcuts"


def best_shortcuts(
    repo: Repo, environment: environments.Environment, items: Mapping[Split, Sequence[Item]], gauge: Gauge
) -> Mapping[Split, shortcuts.BestShortcut]:
    """Return the best shortcut of each split under ``gauge``, and keep it for :func:`kept_shortcut`."""
    report = shortcuts.measure_shortcuts(environment, items, gauge)
    for split, best in report.best.items():
        path = _path(repo, item_set_digest({item.id: item.digest for item in items[split]}), gauge.metric)
        with suppress(OSError):  # it is measured again where it could not be kept
            path.parent.mkdir(exist_ok=True)
            write_file(path, json.dumps({"score": best.score, "rule": best.rule}).encode())
    return report.best


def kept_shortcut(repo: Repo, item_set: str, gauge: Gauge) -> shortcuts.BestShortcut | None:
    """Return the best shortcut on the items with the digest ``item_set``; None if it was not measured here."""
    try:
        document = loads(read_plain(_path(repo, item_set, gauge.metric)))
        return shortcuts.BestShortcut(score=float(document["score"]), rule=str(document["rule"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _path(repo: Repo, item_set: str, metric: Metric) -> Path:
    return repo.private_dir / _FOLDER / f"{item_set}-{metric.value}.json"


def not_above(score: float | None, split: str, best: shortcuts.BestShortcut | None, subject: str = "") -> str:
    """Return a sentence where a score is not above the best shortcut on the same items; empty where it is."""
    if score is None or best is None or best.score < shortcuts.GAIN or score > best.score:
        return ""
    head = f"{subject}: " if subject else ""
    return (
        f"{head}{score:.4f} on the {split} split is not above {best.score:.4f}, which {best.rule} scores there without"
        " the question"
    )
