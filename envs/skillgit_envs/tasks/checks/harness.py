"""The program that calls a function of a check file; it runs as a job and needs the standard library only.

It finds the file in the folder ``check``, the task and the answer in ``item.json`` and ``answer.txt``, what the target
made in the folder ``made``, and writes what the function says to ``result.json``.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from pathlib import Path
from typing import Any

CHECK, ANSWER, ITEM, MADE, RESULT = "check", "answer.txt", "item.json", "made", "result.json"


def outcome(value: Any) -> dict[str, object]:  # noqa: ANN401 - a function of the user may return anything
    """Return score and reason of what a check function returned: a truth value, a number, or one with a reason."""
    score, reason = value if isinstance(value, tuple) and len(value) == 2 else (value, "")  # noqa: PLR2004 - a pair
    if not isinstance(score, bool | int | float):
        raise TypeError(f"it returned {value!r}, which is neither a truth value nor a number")
    return {"score": float(score), "said": str(reason)}


def called(file: str, name: str) -> dict[str, object]:
    """Call the function ``name`` of ``file`` with as many of answer, item and folder as it takes."""
    path = Path(CHECK, file)
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name)
    item = json.loads(Path(ITEM).read_text(encoding="utf-8"))
    arguments = (Path(ANSWER).read_text(encoding="utf-8"), item, Path(MADE).resolve())
    count = len(inspect.signature(function).parameters)
    try:
        return outcome(function(*arguments[:count]))
    except AssertionError as error:
        return {"score": 0.0, "said": str(error)}


def main(file: str, name: str) -> None:
    Path(MADE).mkdir(exist_ok=True)
    try:
        result = called(file, name)
    except Exception as error:  # noqa: BLE001 - a check of the user may fail in any way
        result = {"error": f"{type(error).__name__}: {error}"}
    Path(RESULT).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    request = json.loads(Path("call.json").read_text(encoding="utf-8"))
    main(request["file"], request["function"])
