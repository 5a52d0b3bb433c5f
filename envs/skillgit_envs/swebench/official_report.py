"""Grades logs with the package ``swebench``; run by a Python that has it, in a process of its own.

It imports clients of Docker, Modal and the hub, which nothing else here shall load. Of the two files that it is called
with, the first has a JSON list of objects with ``instance``, ``log`` and ``patch``; the second gets a list of reports.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def reports(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from swebench.harness.grading import get_eval_report  # noqa: PLC0415 - only a process of its own has it
    from swebench.harness.utils import make_test_spec  # noqa: PLC0415 - see above

    results = []
    with TemporaryDirectory() as folder:
        log = Path(folder, "test_output.txt")
        for request in requests:
            log.write_text(request["log"], encoding="utf-8")
            instance = request["instance"]
            prediction = {
                "instance_id": instance["instance_id"],
                "model_name_or_path": "target",
                "model_patch": request["patch"],
            }
            report = get_eval_report(make_test_spec(instance), prediction, str(log), include_tests_status=True)
            results.append(report[instance["instance_id"]])
    return results


if __name__ == "__main__":
    requests, answer = map(Path, sys.argv[1:])
    answer.write_text(json.dumps(reports(json.loads(requests.read_bytes()))), encoding="utf-8")
