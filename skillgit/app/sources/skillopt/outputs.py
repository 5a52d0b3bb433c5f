"""``skillgit import``: the output directory of a SkillOpt run becomes a run with commits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, repeat
from os.path import normpath
from pathlib import Path
from typing import Any

from skillgit.app.sources.skillopt.directory import (
    ACCEPTED,
    ORIGIN,
    ROUNDING,
    SKIPPED,
    Directory,
    ImportedScore,
    Outcomes,
    ReferenceSettings,
    Row,
    Step,
    count,
    imported_score,
    number,
    own,
    read_outcomes,
    read_steps,
)
from skillgit.app.sources.skillopt.skill_texts import Texts, alike, with_our_markers, without_their_markers
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import ProposalKind, RewriteError, Template, changed_hunks, rewritten
from skillgit.domain.edit import Edit, EditReport, EditSource, EditStatus, Op, Patch, apply
from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Metric, Split
from skillgit.domain.event import CANDIDATES, NOBODY, Event, Inherited, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import COMPARISON, FINDINGS, ROLLOUT
from skillgit.domain.gate_decision import Decision, Flips, GateRule, NoRegression, Verdict, decide, decision, flips
from skillgit.domain.gate_policies import POLICIES
from skillgit.domain.ids import check_run_name, new_run_name, text_digest
from skillgit.domain.outcomes import contradicted
from skillgit.domain.proposal import BudgetSource, EditRecord, PatchCounts, changed_lines
from skillgit.domain.protected_regions import has_marker, with_slow_guidance
from skillgit.domain.run_state import RunState, advance, begin
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.statistics import sign_test
from skillgit.domain.untrusted.model_text import EMPTY, SkillText, clean, verbatim
from skillgit.engine.evidence_files import json_file, patch_file
from skillgit.errors import ConflictError, DataError, RevisionNotFoundError, SkillError
from skillgit.store import history_reader, refs
from skillgit.store.commit_message import Recorded
from skillgit.store.event_writer import RunWriter
from skillgit.store.lock import RunLock
from skillgit.store.promotion import existing_trunk
from skillgit.store.repo import Repo

_SEED = "skills/skill_v0000.md"
_BASELINE = "selection_eval_baseline"
_FILES = (
    *("step_record.json", "merged_patch.json", "ranked_edits.json", "lr_decision.json", "rewrite_result.json"),
    *("full_rewrite_result.json", "trajectory_digest.json"),
)
_REASONS = {
    "skip_no_patches": "no usable patches",
    "skip_no_rewrite": "no usable rewrite",
    "": "nothing is recorded of this step",
}
_PLACEHOLDER = "inject_placeholder"
_GATED = frozenset({"accept_new_best", "accept", "reject"})
"""What a gate decides on guidance; by default the reference asks none."""
_TESTS = (("test_eval_baseline", "baseline_test"), ("test_eval", "test"), ("test_eval_final", "final_test"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    event: Event
    skill: Skill | None = None  # what the skill folder holds; absent where it stays, or follows from the event
    evidence: Mapping[str, bytes]
    time: datetime


class ImportedRun:
    """The run of a directory: its events, made in their order and checked one after the other as in any run."""

    def __init__(self, directory: Directory, run: str) -> None:
        config = directory.mapping("config.json") or {}
        self.directory, self.settings, self._run = directory, ReferenceSettings(config), run
        first = directory.text(_SEED)
        if first is None:
            problem = f"what the run in {directory.path} began with is not known: {directory.fault(_SEED)}"
            raise DataError(problem, hint="copy the directory again, or resume the run where it was made")
        self.chapters: list[Chapter] = []
        self.skills: list[Skill] = []
        self.state: RunState
        self._outcomes: list[Evaluation | None] = []  # those behind each version's score, if known
        self._steps, self.remarks = read_steps(directory)
        baseline = read_outcomes(directory, [_BASELINE], "selection")
        self._items = tuple(baseline.outcomes) if baseline is not None else ()  # of the selection split, if known
        # the outcomes of texts that were measured, by the hash that the reference has of them
        self._by_hash = {} if baseline is None else {_text_hash(first): baseline}
        self._texts = Texts(self.settings.environment or "skill", first)
        self._summary = directory.mapping("summary.json") or {}  # empty if the run was interrupted
        self._start(config, first, baseline)
        for position, step in enumerate(self._steps):
            self._step(step)
            following = self._steps[position + 1 : position + 2]
            if not following or following[0].epoch > step.epoch:
                self._end_of_epoch(step, is_last=not following)
            text, version = directory.text(f"skills/skill_v{step.number:04d}.md"), version_label(self.state.version)
            if text is not None and not alike(self._texts.skill(text).document, self.skills[-1].document):
                self._remark(
                    f"skills/skill_v{step.number:04d}.md is not the text of {version}, which was current after step"
                    f" {step.number}: it changed without a gate, and the difference shows with the next candidate"
                )
        self._end()
        self._check_end()
        for sentence in directory.remarks:
            self._remark(sentence)

    @property
    def skill_path(self) -> str:
        return f"skills/{self._texts.name}"

    def score(self, version: int) -> float:
        rule = self.settings.rule
        return self.state.evaluation(version).score(rule.metric, rule.soft_weight)

    def _remark(self, sentence: str) -> None:
        if sentence and sentence not in self.remarks:
            self.remarks.append(sentence)

    def _facts(self, epoch: int) -> dict[str, Any]:
        return {"run": self._run, "skill": self.skill_path, "epoch": epoch}

    def _measured(self, outcomes: Outcomes | None, where: str, **claims: Any) -> ImportedScore | None:  # noqa: ANN401 - of imported_score
        return imported_score(outcomes, self._items, self.settings.seed, where=where, **claims)

    def _tell(
        self,
        event: Event,
        evidence: Mapping[str, bytes],
        *files: str,
        skill: Skill | None = None,
        outcomes: Evaluation | None = None,
    ) -> None:
        """Add an event at the time of the first of ``files``; ``outcomes`` are behind the score of its version."""
        self.state = begin(event) if event.kind is EventKind.RUN_STARTED else advance(self.state, event)
        earlier = self.chapters[-1].time if self.chapters else datetime.fromtimestamp(0, UTC)
        time = max(self.directory.time(*files) or earlier, earlier)
        self.chapters.append(Chapter(event=event, skill=skill, evidence=evidence, time=time))
        if event.new_version is not None:
            if skill is None:
                raise AssertionError("a version has a text")
            self.skills.append(skill)
            self._outcomes.append(outcomes)

    def _start(self, config: Row, first: SkillText, baseline: Outcomes | None) -> None:
        settings, directory = self.settings, self.directory
        # The summary has the score of the seed, or the first step that did not accept. Under other metrics the number
        # is the gate's, not the strict score that it is named after.
        hard, source = _share(self._summary, "baseline_selection_hard"), "summary.json"
        if hard is None and self._steps and self._steps[0].action and not self._steps[0].accepted:
            hard, source = self._steps[0].score("current_score"), "history.json"
        hard = hard if settings.rule.metric is Metric.HARD or not self._items else None
        score = self._measured(baseline, source, hard=hard, soft=None)
        if score is None:
            raise DataError(
                f"{directory.path} was interrupted before its first skill had a score, so that there is nothing to"
                " import",
                hint="resume the run where it was made",
            )
        self._remark(score.remark)
        mark = f"{ORIGIN}:{settings.environment}" if settings.environment else ORIGIN
        document = {"name": settings.environment, "digest": mark, "imported_from": ORIGIN}
        evidence = {
            "config.json": json_file(settings.sections),
            "environment.json": json_file(document),
            f"{ORIGIN}/config.json": json_file(config),
        }
        if baseline is None:
            self._remark(
                f"{_BASELINE}/results.jsonl is missing; the one recorded score of the first skill is taken for both"
                " its strict score and the one with partial credit"
            )
        else:
            evidence |= baseline.evidence("selection.json", is_consistent=score.evaluation is not None)
        name = settings.environment or "an unnamed environment"
        event = Event(
            kind=EventKind.RUN_STARTED,
            **self._facts(0),
            title=f"import {settings.environment or 'a run'} from {ORIGIN}",
            why=f"The run was trained by the reference implementation on {name}, and imported from its output"
            " directory.",
            config=f"{ORIGIN}:{settings.digest}",
            splits="",
            environment=mark,
            models=settings.models,
            evaluation=score.summary,
            gauge=settings.gauge,
        )
        skill = self._texts.skill(first)
        self._tell(event, evidence, "config.json", _SEED, skill=skill, outcomes=score.evaluation)

    def _step(self, step: Step) -> None:
        """Tell a step; one whose candidate has lost its text or its score is one without a candidate."""
        directory, settings = self.directory, self.settings
        text, path = None, f"skills/skill_v{step.number:04d}.md"
        if step.action == "reject" or step.accepted:
            text = directory.text(f"{step.folder}/candidate_skill.md")
        if text is None and step.accepted:
            text = directory.text(path)
        # A candidate whose text had been measured before was not measured again.
        outcomes = read_outcomes(directory, [f"{step.folder}/selection_eval"], "selection")
        outcomes = outcomes or self._by_hash.get(str(step.record.get("candidate_hash")))
        score = self._measured(
            outcomes,
            f"step {step.number} of history.json",
            hard=step.score("selection_hard"),
            soft=step.score("selection_soft"),
            is_partial=bool(step.own.get("unneeded")),
            spare=count(step.own.get("spare")) or 0,
        )
        times = (f"{step.folder}/step_record.json", path)
        if text is None or score is None:
            title = _REASONS.get(step.action, "")
            if not title:
                missing = "score" if score is None else "text"
                title = f"{'accepted' if step.accepted else 'rejected'}, and the candidate's {missing} is lost"
                self._remark(f"step {step.number} was {title}; it is imported as a step without a candidate")
            facts, _, evidence = self._changes(step, None)
            facts["title"] = str(step.own.get("title") or title)
            self._tell(Event(kind=EventKind.SKIPPED, **facts), evidence, *times)
            return
        base, skill = self.skills[-1], self._texts.skill(text)
        if skill.name != self._texts.name:
            raise AssertionError("all texts of a directory are versions of one skill")
        self._remark(score.remark)
        facts, edits, evidence = self._changes(step, skill)
        # A step says itself where nothing was gated.
        rule = replace(settings.rule, enabled=settings.rule.enabled and step.action != "force_accept")
        where = f"step {step.number}"
        verdict, pairs, is_consistent = self._judge(
            _rule_of(rule, step.own), score, is_accepted=step.accepted, where=where
        )
        claim = number(step.record.get("candidate_gate_score"))
        if claim is not None and not settings.density and abs(claim - verdict.score) > ROUNDING:
            self._remark(
                f"{where} of history.json gives the candidate's score as {claim:.6g} to the gate, and its evaluation"
                f" says {verdict.score:.6g}; the latter is kept"
            )
        if outcomes is not None:
            is_consistent = is_consistent and score.evaluation is not None
            evidence |= outcomes.evidence("selection.json", is_consistent=is_consistent)
            self._by_hash[_text_hash(text)] = outcomes
        facts |= {"base": self.state.version, "edits": edits, "changes": changed_lines(base, skill)}
        facts |= {"evaluation": score.summary, "verdict": verdict, "fixed": pairs.fixed, "broken": pairs.broken}
        event = (
            Event(kind=EventKind.ACCEPTED, **facts, version=self.state.version + 1)
            if step.accepted
            else Event(kind=EventKind.REJECTED, **facts)
        )
        self._tell(event, evidence, *times, skill=skill, outcomes=score.evaluation)

    def _changes(
        self, step: Step, candidate: Skill | None
    ) -> tuple[dict[str, Any], tuple[EditRecord, ...], dict[str, bytes]]:
        """Return what ``step`` did, as fields of its event, its edits, and its evidence.

        ``patch.json`` is among the evidence if applying the edits to the base gives the candidate here too.
        """
        directory, base, mode = self.directory, self.skills[-1], self.settings.mode
        ranking = directory.mapping(f"{step.folder}/ranked_edits.json") or {}
        merge = directory.mapping(f"{step.folder}/merged_patch.json") or {}
        items = _items(ranking) or _items(merge)
        rows = directory.listing(f"{step.folder}/edit_apply_report.json") or ()
        reports = zip(items, chain((str(row.get("status", "")) for row in rows), repeat("applied")), strict=False)
        effective = [(item, status) for item, status in reports if status.startswith("applied")]
        edits = tuple(_edit(item, status) for item, status in effective if str(item.get("op") or "") in set(Op))
        summary = step.record.get("rewrite_change_summary")
        texts = [str(line) for line in summary] if isinstance(summary, list) else []
        texts += [str(item.get("title") or item.get("content") or item.get("target") or "") for item, _ in effective]
        lines = (line.strip(" -*#") for text in texts for line in text.splitlines())
        title = str(step.own.get("title") or next(filter(None, lines), f"step {step.number}"))
        # What the optimizer wrote speaks of all its edits.
        reason = ranking.get("reasoning") or merge.get("reasoning") if len(effective) == len(items) else ""
        reasoning = str(step.own.get("why") or reason or "")
        records, evidence = tuple(map(EditRecord.of, edits)), dict[str, bytes]()
        if candidate is not None and mode.proposals is ProposalKind.EDITS:
            application = apply(base, edits)
            if len(application.applied) == len(edits) and application.skill.digest == candidate.digest:
                patch = Patch(edits=edits, reasoning=reasoning, title=title)
                evidence |= patch_file(patch, application.reports)
        elif candidate is not None:  # the stretches of lines that a rewrite changed
            edits = changed_hunks(base, candidate, support=0, source=EditSource.MIXED)
            records, body = tuple(map(EditRecord.of, edits)), verbatim(Template.of(candidate.document).body)
            try:
                is_same = rewritten(base, body).digest == candidate.digest
            except RewriteError:
                is_same = False
            if is_same:  # it kept what is protected here
                reports_ = [EditReport(edit=edit, status=EditStatus.APPLIED) for edit in edits]
                evidence |= patch_file(Patch(edits=edits, reasoning=reasoning, title=title), reports_, body)
        counts = self._counts(step, len(records))
        findings = self._add_evidence(step, evidence)
        patterns = [] if "why" in step.own else [str(row["pattern"]) for row in findings]
        facts = {
            **self._facts(step.epoch),
            "title": title,
            "why": "\n\n".join([reasoning, *patterns[:8]]),
            "step": step.number,
            "patch": counts,
            "models": self.settings.models,
            "cost": step.cost,
        }
        return facts, records, evidence

    def _counts(self, step: Step, effective: int) -> PatchCounts:
        record, mode = step.record, self.settings.mode
        summary = record.get("edit_apply_summary")
        summary = summary if isinstance(summary, dict) else {}
        rank_count, budget = count(record.get("n_edits_ranked")) or 0, count(record.get("edit_budget"))
        control, number_applied = str(record.get("lr_control_mode") or ""), count(summary.get("applied"))
        by = BudgetSource.OPTIMIZER if control in {"autonomous", "auto", "optimizer"} else BudgetSource.SCHEDULE
        is_unlimited = control in {"none", "off", "no_lr"} and mode.proposals is ProposalKind.DOCUMENTS
        if budget is not None and rank_count > budget and not is_unlimited:
            self._remark(
                f"step {step.number} applied {rank_count} edits with a budget of {budget}; the budget is left out"
            )
        if is_unlimited or budget is None or rank_count > budget:
            budget, by = None, BudgetSource.NONE
        return PatchCounts(
            merged=count(record.get("n_edits_merged")) or 0,
            ranked=rank_count,
            applied=effective if number_applied is None else number_applied,
            skipped=(count(summary.get("skipped")) or 0) + (count(summary.get("errors")) or 0),
            budget=budget,
            by=by,
            mode=mode,
        )

    def _add_evidence(self, step: Step, files: dict[str, bytes]) -> list[Row]:
        """Add rollouts, findings and the directory's own files of a step to ``files``, and return the findings."""
        directory = self.directory
        batches = (f"{step.folder}/batch_{batch}" for batch in directory.numbered(step.folder, "batch_"))
        folders = [step.folder, *batches]
        rollout = read_outcomes(directory, [f"{folder}/rollout" for folder in folders], "rollout")
        if rollout is not None:
            files |= rollout.evidence(ROLLOUT)
        patches = [path for folder in folders for path in directory.files(f"{folder}/patches", ".json")]
        patch_documents = {path: directory.mapping(path) for path in patches}
        findings = [row for document in patch_documents.values() for row in _findings(document or {})]
        if findings:
            files[FINDINGS] = json_file({"findings": findings, "unusable_replies": 0})
        documents: dict[str, object] = {name: directory.mapping(f"{step.folder}/{name}") for name in _FILES}
        for name in ("edit_apply_report.json", "appendix_notes.json"):
            documents[name] = directory.listing(f"{step.folder}/{name}")
        documents |= {f"patches/{path.rpartition('/')[2]}": document for path, document in patch_documents.items()}
        documents["step_record.json"] = documents["step_record.json"] or step.record or None
        files |= {f"{ORIGIN}/{name}": json_file(content) for name, content in documents.items() if content is not None}
        return findings

    def _judge(
        self, rule: GateRule, score: ImportedScore, *, is_accepted: bool, where: str
    ) -> tuple[Verdict, Flips, bool]:
        """Return the gate's decision on a candidate of the current version, by the numbers of the scores.

        With it come the items that differ, as far as both sides are known, and whether the outcomes behind it add up
        to it. A recorded decision that does not follow is kept as accepted without a gate, or as not decided.
        """
        state, base = self.state, self._outcomes[-1]
        if score.evaluation is not None and base is not None:
            best = None if state.best == state.version else self._outcomes[state.best]
            is_known = best is not None or state.best == state.version
            verdict = decide(rule, score.evaluation, base, best if is_known else self._best_score(rule))
            pairs = flips(score.evaluation, base, rule.metric, rule.soft_weight)
        else:
            verdict = self._from_means(rule, score.summary.score(rule.metric, rule.soft_weight))
            pairs = Flips(fixed=(), broken=(), stable_pass=(), stable_fail=())
        if is_accepted == verdict.decision.accepted:
            return verdict, pairs, True
        numbers = f"{verdict.score:.6g} against {verdict.current:.6g}"
        if is_accepted:
            self._remark(
                f"{where} was accepted, and its scores do not say so ({numbers}); it is kept as accepted without a gate"
            )
            without_gate = replace(verdict, gated=False)
            return replace(without_gate, decision=decision(without_gate)), pairs, True
        is_consistent = verdict.decision is Decision.INDECISIVE
        if not is_consistent:
            self._remark(f"{where} was rejected, and its scores say otherwise ({numbers}); it is kept as not decided")
        return replace(verdict, decision=Decision.INDECISIVE), pairs, is_consistent

    def _best_score(self, rule: GateRule) -> float:
        return self.state.evaluation(self.state.best).score(rule.metric, rule.soft_weight)

    def _from_means(self, rule: GateRule, score: float | None) -> Verdict:
        """Return the verdict on a score, None for that of the current version, without the items behind it."""
        current = self.state.evaluation(self.state.version).score(rule.metric, rule.soft_weight)
        verdict = Verdict(
            decision=Decision.INDECISIVE,
            policy=rule.policy.name,
            metric=rule.metric,
            score=current if score is None else score,
            current=current,
            best=self._best_score(rule),
            fixed=0,
            broken=0,
            p=sign_test(0, 0) if rule.metric is Metric.HARD else 1.0,
            soft_weight=rule.soft_weight,
            gated=rule.enabled,
        )
        return replace(verdict, decision=decision(verdict))

    def _end_of_epoch(self, step: Step, *, is_last: bool) -> None:
        """Tell the slow update after the last step of an epoch, if the directory has one with something to say."""
        directory, epoch = self.directory, step.epoch
        folder, meta_file = f"slow_update/epoch_{epoch:02d}", f"meta_skill/epoch_{epoch:02d}/meta_skill_result.json"
        slow_file = f"{folder}/slow_result.json"
        slow, meta = directory.mapping(slow_file) or {}, directory.mapping(meta_file) or {}
        guidance, memory = _guidance(slow.get("slow_update_content")), _guidance(meta.get("meta_skill_content"))
        action = str(slow.get("action") or "")
        is_silent = action in {"", _PLACEHOLDER}
        if is_silent and not memory:
            return
        if guidance.removed:
            self._remark(f"{slow_file} is imported without {guidance.removed} hidden characters")
        outcomes = read_outcomes(directory, [f"{folder}/selection_eval"], "selection") if guidance else None
        lines = (line.strip(" -*#") for line in guidance.splitlines())
        proposal = Event(
            kind=EventKind.SLOW_PROPOSED,
            **self._facts(epoch),
            title=str(own(slow).get("title") or next(filter(None, lines), "nothing to add")),
            why=str(own(slow).get("why") or slow.get("reasoning") or meta.get("reasoning") or ""),
            step=step.number,
            base=self.state.version,
            guidance=EMPTY if is_silent else guidance,
            memory=memory,
            models=self.settings.models,
            cost=Cost(seconds=number(slow.get("time_s")) or 0.0),
        )
        documents = {"slow_result.json": slow, "meta_skill_result.json": meta}
        evidence = {f"{ORIGIN}/{name}": json_file(content) for name, content in documents.items() if content}
        pairs = directory.listing(f"{folder}/comparison_pairs.json")
        if pairs is not None:
            evidence[COMPARISON] = json_file(list(map(_pair, pairs)))
        if not proposal.guidance:
            self._tell(proposal, evidence, slow_file, meta_file)
            return
        where, is_accepted = f"the slow update of epoch {epoch}", action in ACCEPTED
        score = self._measured(
            outcomes,
            where,
            hard=number(slow.get("selection_hard")),
            soft=number(slow.get("selection_soft")),
            is_partial=bool(own(slow).get("unneeded")),
            spare=int(str(own(slow).get("spare") or 0)),
        )
        rule = _rule_of(self.settings.rule, own(slow))
        if action not in _GATED or score is None:
            rule = replace(rule, enabled=False)
        if score is None and is_last and is_accepted:  # the reference measures the last text at the end of a run
            outcomes = read_outcomes(directory, ["final_selection_eval"], "selection")
            hard, soft = (number(self._summary.get(f"final_selection_{kind}")) for kind in ("hard", "soft"))
            if outcomes is not None:
                score = self._measured(outcomes, "final_selection_hard in summary.json", hard=hard, soft=soft)
        if score is None:  # a text that was never measured takes over the score of the current version
            verdict = self._from_means(replace(rule, enabled=False), None)
            verdict = verdict if is_accepted else replace(verdict, decision=Decision.INDECISIVE)
            proposal = replace(proposal, verdict=verdict)
        else:
            self._remark(score.remark)
            verdict, differences, is_consistent = self._judge(rule, score, is_accepted=is_accepted, where=where)
            if outcomes is not None:
                is_consistent = is_consistent and score.evaluation is not None
                evidence |= outcomes.evidence("selection.json", is_consistent=is_consistent)
            proposal = replace(
                proposal,
                evaluation=score.summary,
                verdict=verdict,
                fixed=differences.fixed,
                broken=differences.broken,
            )
        self._tell(proposal, evidence, slow_file)
        if not verdict.decision.accepted:
            return
        base, skill = self.state.version, self.skills[-1]
        merge = Event(
            kind=EventKind.SLOW_MERGED,
            **self._facts(epoch),
            title=proposal.title,
            why=proposal.why,
            step=proposal.step,
            version=base + 1,
            base=base,
            evaluation=Inherited(version=base) if score is None else score.summary,
            verdict=verdict,
        )
        skill = skill.with_text(DOCUMENT, with_slow_guidance(skill.document, proposal.guidance))
        self._tell(merge, {}, skill=skill, outcomes=self._outcomes[-1] if score is None else score.evaluation)

    def _end(self) -> None:
        state, settings, directory = self.state, self.settings, self.directory
        if not self._summary:
            last = self._steps[-1].number if self._steps else 0
            self._remark(
                f"there is no summary.json: the run was interrupted after step {last}, and has no end here either"
            )
            return
        evaluations, evidence = self._tests()
        final = read_outcomes(directory, ["final_selection_eval"], "final")
        newest = next((chapter.event for chapter in reversed(self.chapters) if chapter.skill is not None), None)
        # What was measured at the end may be the last guidance, and is part of its event.
        is_told = (
            newest is not None
            and newest.kind is EventKind.SLOW_MERGED
            and not newest.verdict.gated
            and newest.summary is not None
        )
        if final is not None and not is_told:
            evidence |= final.evidence("final_selection.json", is_consistent=False)
        for name in ("config.json", "runtime_state.json", "summary.json", "history.json"):
            content = directory.listing(name) if name == "history.json" else directory.mapping(name)
            if content is not None:
                evidence[f"{ORIGIN}/{name}"] = json_file(content)
        if state.best:
            by_version = {summary.version: summary for summary in evaluations}
            seed, best, rule = by_version.get(0), by_version.get(state.best), settings.rule
            is_lower = seed and best and contradicted(seed, best, rule.metric, rule.soft_weight)
            outcome = RunOutcome.NOT_CONFIRMED if is_lower else RunOutcome.IMPROVED
        else:
            has_candidates = any(chapter.event.kind in CANDIDATES for chapter in self.chapters)
            outcome = RunOutcome.NULL_RESULT if has_candidates else RunOutcome.NO_CANDIDATES
        event = Event(
            kind=EventKind.RUN_FINISHED,
            **self._facts(state.epoch),
            step=state.step,
            title=f"{outcome.value} after {state.step} {'step' if state.step == 1 else 'steps'}",
            outcome=outcome,
            evaluations=tuple(evaluations),
            models=settings.models if evaluations else NOBODY,
            cost=Cost(),
        )
        self._tell(event, evidence, "summary.json")

    def _tests(self) -> tuple[list[EvaluationSummary], dict[str, bytes]]:
        """Return the scores on the test split, of each version once, and the outcomes behind them."""
        summaries, evidence = list[EvaluationSummary](), dict[str, bytes]()
        # The best version is the newest whose text is that of ``best_skill.md``.
        best, text = self.state.best, self.directory.text("best_skill.md")
        if text is not None:
            document = self._texts.skill(text).document
            same = [version for version, skill in enumerate(self.skills) if alike(skill.document, document)]
            best = best if best in same or not same else same[-1]
        for (folder, key), version in zip(_TESTS, (0, best, self.state.version), strict=True):
            if version in {summary.version for summary in summaries}:
                continue
            name = f"test-{version_label(version)}"
            outcomes = read_outcomes(self.directory, [folder], name)
            score = imported_score(
                outcomes,
                tuple(outcomes.outcomes) if outcomes is not None else (),
                self.settings.seed,
                where=f"{key}_hard in summary.json",
                split=Split.TEST,
                hard=_share(self._summary, f"{key}_hard"),
                soft=_share(self._summary, f"{key}_soft"),
            )
            if score is None:
                continue
            self._remark(score.remark)
            summaries.append(replace(score.summary, version=version))
            if outcomes is not None:
                evidence |= outcomes.evidence(f"{name}.json", is_consistent=score.evaluation is not None)
        return summaries, evidence

    def _check_end(self) -> None:
        """Say where the directory's own account of its end differs from that of its steps."""
        directory, best = self.directory, version_label(self.state.best)
        text, score = directory.text("best_skill.md"), self.score(self.state.best)
        if text is not None and not alike(self._texts.skill(text).document, self.skills[self.state.best].document):
            self._remark(f"best_skill.md is not the text of {best}, which has the highest score that was accepted")
        claim = number(self._summary.get("best_selection_hard"))
        if claim is not None and abs(claim - score) > ROUNDING:
            self._remark(
                f"summary.json gives the best score as {claim:.6g}, and that of {best} is {score:.6g};"
                " the latter is kept"
            )
        for name, actions in (("accepts", ACCEPTED), ("rejects", {"reject"}), ("skips", SKIPPED)):
            total, steps = self._summary.get(f"total_{name}"), sum(step.action in actions for step in self._steps)
            if isinstance(total, int) and total != steps:
                self._remark(f"summary.json counts {name} as {total}, and the steps {steps}")
        last, stands = len(self._steps), (directory.mapping("runtime_state.json") or {}).get("last_completed_step")
        if isinstance(stands, int) and stands != last:
            self._remark(f"runtime_state.json is at step {stands}, and the steps end with {last}; the steps are taken")
        for step in directory.numbered("steps", "step_"):
            if step > last:
                self._remark(f"step {step} was begun and not finished; it is left out")
        if self.settings.density:
            self._remark("the gate's scores had a bonus for emphatic words; the scores here are without it")


def _text_hash(text: str) -> str:
    """Return what the reference knows ``text`` by: 16 hexadecimal characters of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rule_of(rule: GateRule, fields: Row) -> GateRule:
    """Return ``rule`` with what ``fields`` say of a gate that the reference does not have."""
    policy, guard = fields.get("policy"), fields.get("guard")
    if policy not in POLICIES or guard not in set(NoRegression):
        return rule
    alpha, margin = number(fields.get("alpha")), number(fields.get("margin")) or 0.0
    policy, guard = POLICIES[str(policy)], NoRegression(str(guard))
    alpha = rule.alpha if alpha is None else alpha
    return replace(rule, policy=policy, no_regression=guard, alpha=alpha, margin=margin)


def _share(record: Row, key: str) -> float | None:
    """Return the score in a record; None if there is none between 0 and 1."""
    value = number(record.get(key))
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _guidance(value: object) -> SkillText:
    text = clean(without_their_markers(str(value or "")).strip())
    return EMPTY if has_marker(text) else text


def _pair(pair: Row) -> Row:
    entry: Row = {"category": str(pair.get("category") or ""), "id": str(pair.get("id") or ""), "shown": True}
    for name, side in (("current", pair.get("curr")), ("previous", pair.get("prev"))):
        if isinstance(side, dict):
            scores = {key: number(side.get(key)) or 0.0 for key in ("hard", "soft")}
            entry[name] = {"answer": str(side.get("predicted_answer") or ""), **scores}
    return entry


def _items(patch: Row) -> list[Row]:
    for key in ("edits", "revise_suggestions", "skill_candidates"):
        entries = patch.get(key)
        if isinstance(entries, list):
            return [row for row in entries if isinstance(row, dict)]
    return []


def _edit(item: Row, status: str) -> Edit:
    """Return an edit that took effect, in the way that its status says."""
    op, source = Op(str(item["op"])), str(item.get("source_type") or "")
    is_fallback = "fallback" in status
    return Edit(
        op=Op.APPEND if is_fallback else op,
        anchor=EMPTY if is_fallback or op == Op.APPEND else clean(with_our_markers(str(item.get("target") or ""))),
        content=clean(str(item.get("content") or "")),
        support=count(item.get("support_count")) or 0,
        source=EditSource(source) if source in set(EditSource) else EditSource.MIXED,
    )


def _findings(patch: Row) -> list[Row]:
    summary, findings = patch.get("failure_summary"), list[Row]()
    for row in summary if isinstance(summary, list) else ():
        if isinstance(row, dict) and (row.get("description") or row.get("failure_type")):
            ids = row.get("task_ids")
            items = [str(item) for item in ids] if isinstance(ids, list) else []
            pattern = str(row.get("description") or row["failure_type"])
            findings.append({"pattern": pattern, "count": count(row.get("count")) or 0, "items": items})
    return findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    run: str
    skill: str
    events: int
    written: int  # how many were written now, or would be
    versions: int  # how many versions it has, the seed included
    rejected: int
    skipped: int
    slow: int
    best: int
    first_score: float  # the score of the seed under the metric of its gate
    best_score: float
    finished: bool
    remarks: tuple[str, ...]  # what the directory does not say, or says in two ways, one sentence each
    dry_run: bool

    @property
    def already(self) -> bool:
        return self.written == 0


def import_outputs(context: Context, outputs: Path, run: str | None = None, *, dry_run: bool = False) -> Imported:
    """Turn a SkillOpt output directory into a run, or add to the run that it became what is new in it.

    A directory that was imported before is found by its events and texts, under any name of the run. So an import that
    was killed is finished by the next one, and so is the import of a run that went on meanwhile. Without ``run``, the
    name is made from environment and date.
    """
    if run is not None:
        check_run_name(run)
    source = ImportedRun(Directory.open(Path(normpath(context.directory / outputs))), "import")
    with Workspace(context) as workspace:
        repo = workspace.repo
        # The name is the same for every copy of the directory whose files keep their times.
        digest = bytes.fromhex(text_digest(f"{source.settings.digest} {source.skills[0].digest}"))
        day, environment = source.chapters[0].time.date(), source.settings.environment or "import"
        name = _known(repo, source.chapters) or run or new_run_name(environment, day, digest)
        chapters = _of_run(source.chapters, name)
        with RunLock(repo, name, context.clock):
            records = history_reader.read_run(repo, name) if name in history_reader.runs(repo) else []
            same = _same(repo, records, chapters)
            if same < min(len(records), len(chapters)):
                problem = f"run {name} exists already, and differs from this directory from its event {same + 1} on"
                raise ConflictError(problem, hint="--run NAME imports it under another name")
            if not dry_run and same < len(chapters):
                start, time = existing_trunk(repo)[1], chapters[same].time
                writer = RunWriter(repo, name, lambda: time)
                for chapter in chapters[same:]:
                    time = chapter.time  # the clock of the writer shows it
                    writer.append(chapter.event, chapter.skill, chapter.evidence, start=start)
                workspace.index.refresh()
    events = [chapter.event for chapter in chapters]
    return Imported(
        run=name,
        skill=source.skill_path,
        events=len(events),
        written=len(events) - same,
        versions=1 + sum(event.kind in {EventKind.ACCEPTED, EventKind.SLOW_MERGED} for event in events),
        rejected=sum(event.kind is EventKind.REJECTED for event in events),
        skipped=sum(event.kind is EventKind.SKIPPED for event in events),
        slow=sum(event.kind is EventKind.SLOW_MERGED for event in events),
        best=source.state.best,
        first_score=source.score(0),
        best_score=source.score(source.state.best),
        finished=any(event.kind is EventKind.RUN_FINISHED for event in events),
        remarks=tuple(source.remarks),
        dry_run=dry_run,
    )


def _known(repo: Repo, chapters: Sequence[Chapter]) -> str:
    """Return the run that a directory became, recognised by all that it has; empty if it is new here."""
    candidates: list[tuple[int, str]] = []
    for name in history_reader.runs(repo):
        try:
            tip = repo.tip(refs.version_tag(name, 0))
            start = None if tip is None else history_reader.read_commit(repo, tip).event
        except RevisionNotFoundError:
            continue
        if start is not None and start == replace(chapters[0].event, run=name):
            records = history_reader.read_run(repo, name)
            same = _same(repo, records, _of_run(chapters, name))
            if same == min(len(records), len(chapters)):
                candidates.append((same, name))
    return max(candidates)[1] if candidates else ""


def _of_run(chapters: Sequence[Chapter], run: str) -> list[Chapter]:
    return [replace(chapter, event=replace(chapter.event, run=run)) for chapter in chapters]


def _same(repo: Repo, records: Sequence[Recorded], chapters: Sequence[Chapter]) -> int:
    """Return how many events a run and a directory have in common, with their texts, before they differ."""
    for position, (record, chapter) in enumerate(zip(records, chapters, strict=False)):
        if record.event != chapter.event:
            return position
        try:
            text = history_reader.skill_at(repo, record.commit, chapter.event.skill) if chapter.skill else None
        except (RevisionNotFoundError, SkillError):  # what is there is not this text
            return position
        if text != chapter.skill:
            return position
    return min(len(records), len(chapters))
