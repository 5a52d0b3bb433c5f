"""The rules of ATIF 1.7 (RFC 1 of Harbor), which leave out no field and take no other one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

AGENTS_OWN = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
Extra = dict[str, Any] | None
Count = Annotated[int, Field(ge=0)] | None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Image(Strict):
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    path: str


class Part(Strict):
    type: Literal["text", "image"]
    text: str | None = None
    source: Image | None = None

    @model_validator(mode="after")
    def _whole(self) -> Part:
        assert (self.text is None) == (self.type == "image")
        assert (self.source is None) == (self.type == "text")
        return self


class Call(Strict):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: Extra = None


class Reference(Strict):
    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: Extra = None

    @model_validator(mode="after")
    def _found(self) -> Reference:
        assert self.trajectory_id or self.trajectory_path
        return self


class Result(Strict):
    source_call_id: str | None = None
    content: str | list[Part] | None = None
    subagent_trajectory_ref: list[Reference] | None = None
    extra: Extra = None


class Observation(Strict):
    results: list[Result]


class Metrics(Strict):
    prompt_tokens: Count = None
    completion_tokens: Count = None
    cached_tokens: Count = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: Extra = None


class FinalMetrics(Strict):
    total_prompt_tokens: Count = None
    total_completion_tokens: Count = None
    total_cached_tokens: Count = None
    total_cost_usd: float | None = None
    total_steps: Count = None
    extra: Extra = None


class Agent(Strict):
    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: Extra = None


class Step(Strict):
    step_id: Annotated[int, Field(ge=1)]
    timestamp: str | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    message: str | list[Part]
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: Count = None
    extra: Extra = None

    @field_validator("timestamp")
    @classmethod
    def _iso(cls, value: str | None) -> str | None:
        assert value is None or datetime.fromisoformat(value)
        return value

    @model_validator(mode="after")
    def _of_source(self) -> Step:
        if self.source != "agent":
            assert not [name for name in AGENTS_OWN if getattr(self, name) is not None]
        elif self.llm_call_count == 0:
            assert self.metrics is None
            assert self.reasoning_content is None
        calls = [call.tool_call_id for call in self.tool_calls or []]
        assert len(calls) == len(set(calls))
        for result in self.observation.results if self.observation else []:
            assert result.source_call_id is None or result.source_call_id in calls
        return self


class Trajectory(Strict):
    schema_version: Literal["ATIF-v1.7"]
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: Agent
    steps: Annotated[list[Step], Field(min_length=1)]
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: Extra = None
    subagent_trajectories: list[Trajectory] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Trajectory:
        assert [step.step_id for step in self.steps] == [*range(1, len(self.steps) + 1)]
        names = [each.trajectory_id for each in self.subagent_trajectories or []]
        assert all(names)
        assert len(names) == len(set(names))
        return self
