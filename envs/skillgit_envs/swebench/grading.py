"""Owns what the log of tests says of an instance: by the package ``swebench``, or by its rules for unittest's lines.

The package has the parsers of the benchmark's projects. A row of one's own may name the parser ``unittest`` instead,
whose lines are those of ``python -m unittest -v``; such a row needs no package.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.plugin.plugin_identity import install_command
from skillgit.plugin.process_start import whole_start
from skillgit_envs.swebench.engines import PATCH, BoxJob, processor
from skillgit_envs.swebench.instances import END, EXIT, START, Instance

if TYPE_CHECKING:
    from skillgit_envs.swebench.engines import Engine, Workbench

OWN_PARSER = "unittest"
OWN_RULES = "swebench-rules/1"  # changes whenever :func:`own_report` can change
_VERSIONS = re.compile(r"5\.(?:0\.(?:[2-9]|\d\d)|[1-9]\d*\.\d+)(?:[.\w]*)")
_PROGRAM = Path(__file__).with_name("official_report.py")
_WAIT_S = 300.0
F2P, P2P = "FAIL_TO_PASS", "PASS_TO_PASS"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """What tests say; without ``passed`` and ``failed`` they say nothing, and ``reason`` or ``fault`` says why."""

    is_resolved: bool = False
    passed: Mapping[str, Sequence[str]] = field(default_factory=dict)  # F2P and P2P to the tests that count as passed
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    errors: Sequence[str] = ()  # last lines of tracebacks
    reason: str = ""
    fault: str = ""  # what is wrong with the machine, where the log says so

    @property
    def is_gradeable(self) -> bool:
        return bool(self.passed)


def of_official(report: Mapping[str, Any]) -> LogReport:
    status = report.get("tests_status")
    if status is None:
        fault = str(report.get("infra_failure_reason", "")) if report.get("infra_failure") else ""
        return LogReport(fault=fault)
    passed, failed = ({name: status[name][end] for name in (F2P, P2P)} for end in ("success", "failure"))
    return LogReport(is_resolved=bool(report["resolved"]), passed=passed, failed=failed)


_LINE = re.compile(r"^(\w+ \([\w.]+\)) \.\.\. (ok|FAIL|ERROR|expected failure|skipped\b.*)$", re.MULTILINE)
_BROKEN = (">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out")


def own_report(instance: Instance, log: str) -> LogReport:
    """Grade a log of unittest by the rules of swebench 5.0.2 (``harness/grading.py``)."""
    if any(words in log for words in _BROKEN) or START not in log or END not in log:
        return LogReport()
    lines = dict(_LINE.findall(log.partition(START)[2].partition(END)[0]) or _LINE.findall(log))
    code = re.search(rf"{EXIT}:\s*(-?\d+)", log)
    is_contradictory = code is not None and int(code[1]) != 0 and not {"FAIL", "ERROR"} & set(lines.values())
    if not lines or is_contradictory:
        return LogReport()

    def counts(test: str, kind: str) -> bool:
        ending = str(lines.get(test, ""))
        if instance.text("eval_type") == "fail_only":
            return ending != "FAIL"
        return ending in {"ok", "expected failure"} or (kind == P2P and ending.startswith("skipped"))

    passed = {kind: [test for test in instance.tests(kind) if counts(test, kind)] for kind in (F2P, P2P)}
    failed = {kind: [test for test in instance.tests(kind) if not counts(test, kind)] for kind in (F2P, P2P)}
    return LogReport(is_resolved=not any(failed.values()), passed=passed, failed=failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """Runs the tests of instances and grades their logs."""

    python: str  # that has the package; empty for the one that runs this
    seconds: float  # that the tests of an instance may run
    network: bool

    def check(self, instances: Sequence[Instance]) -> None:
        """Refuse, by a ConfigError, instances whose logs only a package can read that is not here."""
        program = self.python or sys.executable
        if all(instance.text("log_parser") == OWN_PARSER for instance in instances):
            return
        if not _VERSIONS.fullmatch(version := package_version(self.python)):
            raise ConfigError(
                f"tests are graded by the package swebench, from 5.0.2 below 6, and {program} has {version or 'none'}",
                hint=f"{install_command('swebench')}, or name an environment that has it: env.grader_environment",
            )

    async def graded(self, engine: Engine, workbench: Workbench, instance: Instance, patch: bytes) -> LogReport:
        """Return what the tests say with ``patch``; an EnvironmentFaultError if they cannot run here."""
        script = instance.script(installs=engine.is_official).encode()
        log = await self._log(workbench, instance, {"eval.sh": script, PATCH: patch})
        if log is None:
            return LogReport(reason="the patch does not apply")
        errors = errors_in(log, instance)
        report = await self.report(instance, log, patch.decode(errors="replace"))
        if report.is_resolved or (report.is_gradeable and (engine.is_official or not report.failed[P2P])):
            return replace(report, errors=errors)
        # Either the change broke the tests, or they do not run here as they should.
        log = "" if report.fault else await self._log(workbench, instance, {"eval.sh": script}) or ""
        baseline = LogReport() if report.fault else await self.report(instance, log, "")
        if not baseline.is_gradeable or set(baseline.failed[P2P]) & set(report.failed.get(P2P, ())):
            tests = f"tests of {instance.item.id} that pass in its project"
            fault = report.fault or "; ".join(errors_in(log, instance)) or " ".join(log.split())[-200:]
            message = f"{tests} do not pass here without a change either: {fault}"
            raise EnvironmentFaultError(message, hint="check its environment, or leave the item out")
        reason = "" if report.is_gradeable else "with the change, the tests do not run to their end"
        return replace(report, reason=reason, errors=errors)

    async def _log(self, workbench: Workbench, instance: Instance, contents: Mapping[str, bytes]) -> str | None:
        """Return what the tests print; None if the patch does not apply."""
        job = BoxJob(script="grade", files=contents, seconds=self.seconds, network=self.network)
        result = await workbench(job)
        if result.is_late or result.breach:
            end = (
                f"did not end within {self.seconds:g} seconds" if result.is_late else f"broke a limit: {result.breach}"
            )
            hint = "raise env.test_timeout, run fewer at a time, or leave the item out"
            raise EnvironmentFaultError(f"the tests of {instance.item.id} {end}", hint=hint)
        if "exit" in result.files:
            return result.text("output")
        if "refused" in result.files:
            return None
        raise EnvironmentFaultError(f"the tests of {instance.item.id} left nothing behind", hint="try again")

    async def report(self, instance: Instance, log: str, patch: str) -> LogReport:
        if instance.text("log_parser") == OWN_PARSER:
            return own_report(instance, log)
        row = {"instance_id": instance.item.id, **instance.item.content}
        async with processor():
            (report,) = await official_reports(self.python, [{"instance": row, "log": log, "patch": patch}])
        return of_official(report)


async def official_reports(python: str, requests: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Return the reports of the package, which ``python`` has, for logs; it takes seconds to load."""
    with TemporaryDirectory(prefix="skillgit-swebench-") as folder:
        paths = [Path(folder, name) for name in ("requests.json", "reports.json")]
        await asyncio.to_thread(paths[0].write_text, json.dumps(requests), encoding="utf-8")
        command = (python or sys.executable, "-I", str(_PROGRAM), *map(str, paths))
        errors = asyncio.subprocess.PIPE
        process = await whole_start(
            asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=errors, stderr=errors)
        )
        try:
            async with asyncio.timeout(_WAIT_S):
                _, words = await process.communicate()
        except TimeoutError as error:
            raise EnvironmentFaultError("swebench did not grade a log in time", hint="try again") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            reason = " ".join(words.decode(errors="replace").split())[-300:]
            raise EnvironmentFaultError(f"swebench could not grade a log: {reason}", hint="install it again")
        reports: list[dict[str, Any]] = json.loads(await asyncio.to_thread(paths[1].read_bytes))
        return reports


@cache
def package_version(python: str) -> str:
    """Return the version of swebench that ``python``, or this one, has; empty if it has none. It is not imported."""
    code = "from importlib.metadata import version; print(version('swebench'))"
    try:
        process = subprocess.run(  # noqa: S603 - a Python that the user chose, or this one
            [python or sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return process.stdout.strip()


_ERROR = re.compile(r"^(?:E\s+)?((?:\w+\.)*\w*(?:Error|Exception|Failure)\b:?.*)$", re.MULTILINE)
_MOST_ERRORS, _LONGEST_ERROR, _SHORTEST = 5, 200, 12


def errors_in(log: str, instance: Instance) -> list[str]:
    """Return the last lines of tracebacks between the marks; what quotes the tests or the right patch is cut off."""
    secret = f"{instance.text('test_patch')}\n{instance.text('patch')}\n{instance.text('eval_script')}"
    texts: list[str] = []
    for match in _ERROR.finditer(log.partition(START)[2].partition(END)[0]):
        kind, colon, words = match[1].partition(":")
        words = words.strip()
        quotes = words.startswith("assert") or (len(words) >= _SHORTEST and words in secret)
        texts.append((kind if quotes else f"{kind}{colon} {words}").strip()[:_LONGEST_ERROR])
    return list(dict.fromkeys(texts))[:_MOST_ERRORS]
