"""Asking a use case: its workspace is opened for this one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace


def ask(use_case: Callable[..., Any], context: Context, *args: object, **named: object) -> Any:
    with Workspace(context) as workspace:
        answer = use_case(workspace, *args, **named)
        return iter([*answer]) if isinstance(answer, Iterator) else answer
