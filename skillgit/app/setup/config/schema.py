"""The typed shape of a configuration: its sections, their keys, defaults and limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, create_model

from skillgit.engine.method_settings import (
    EvaluationSettings,
    GateSettings,
    GradientSettings,
    MethodSettings,
    OptimizerSettings,
    TargetSettings,
    TrainSettings,
    listed,
)
from skillgit.plugin.environment import EnvironmentInfo

Positive = Annotated[int, Field(gt=0)]
PositiveNumber = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]
Effort = Literal["", "low", "medium", "high", "xhigh", "max"]
Share = Annotated[float, Field(gt=0.0, le=1.0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
StopTexts = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(max_length=4, strict=False), BeforeValidator(listed)
]
ALL = 10_000  # as many at once as there are
Setting = str | int | float | bool | None | list[object] | dict[str, object]


class Section(BaseModel):
    """A section of a configuration: no unknown keys, no silent conversion."""

    # A section is built once, with the whole that it is part of.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class ModelSettings(Section):
    """Which models play the roles."""

    optimizer: Name = Field("analyst", description="Model that reflects on trajectories and proposes edits.")
    target: Name = Field("reader", description="Model that works on the items with the skill.")
    judge: str = Field(
        "", description="Model that scores answers where an environment asks one; empty takes the optimizer's."
    )
    optimizer_backend: Name = Field("offline", description="Backend of the optimizer.")
    target_backend: Name = Field("offline", description="Backend of the target.")
    judge_backend: str = Field("", description="Backend of the judge; empty takes the optimizer's.")
    reasoning_effort: Effort = Field(
        "", description="How hard reasoning models think; empty leaves it to the provider."
    )
    optimizer_reasoning_effort: Effort = Field("", description="The same for the optimizer; empty is as for all.")
    target_reasoning_effort: Effort = Field("", description="The same for the target; empty is as for all.")
    judge_reasoning_effort: Effort = Field("", description="The same for the judge; empty is as for all.")
    optimizer_top_p: Share | None = Field(
        None, description="Share of the likeliest tokens that are sampled from; null leaves it to the provider."
    )
    target_top_p: Share | None = Field(None, description="The same for the target.")
    judge_top_p: Share | None = Field(None, description="The same for the judge.")
    optimizer_seed: Seed | None = Field(
        None, description="Seed of the provider's sampling, where it has one; null sends none."
    )
    target_seed: Seed | None = Field(None, description="The same for the target.")
    judge_seed: Seed | None = Field(None, description="The same for the judge.")
    target_stop: StopTexts = Field((), description="Texts at which the target's replies end, four at most.")
    optimizer_batch: bool = Field(
        default=False,
        description="Ask the optimizer in batches: at half the price, answered within a day; openai_chat, claude_chat.",
    )
    target_batch: bool = Field(
        default=False, description="The same for the target, where an environment asks it once for an item."
    )
    judge_batch: bool = Field(default=False, description="The same for the judge.")
    prices: dict[str, Annotated[tuple[Dollars, ...], Field(min_length=2, max_length=4)]] = Field(
        default_factory=dict,
        description="Model to [US dollars for a million tokens in, the same out], and if they differ from those in, "
        "of tokens read from the provider's cache and of tokens written to it.",
    )
    context_window: dict[str, Positive] = Field(
        default_factory=dict,
        description="Model to the tokens that it takes, prompt and reply; for models that skillgit does not know.",
    )
    backend_settings: dict[str, Setting] = Field(
        default_factory=dict,
        description="The free keys '<backend>_<setting>' and '<role>_<setting>'; their backends check them.",
    )


class EnvSettings(Section):
    """Which tasks to train on; the environment's own options come on top."""

    name: Name = Field(description="Environment: an installed one, or path/to/file.py:Class.")
    skill_init: str = Field("", description="Skill to start from; empty takes the environment's seed.")
    split_mode: Literal["ratio", "stratified", "split_dir"] = Field(
        "ratio", description="How items are divided into splits."
    )
    split_ratio: str = Field("2:1:7", description="Shares of train, selection and test.")
    split_seed: int = Field(42, description="Seed of the division by ratio.")
    split_dir: str = Field("", description="Folder with train, val and test, or a manifest of ids.")
    data_path: str = Field("", description="File or folder to divide by ratio, or to pick from.")
    split_output_dir: str = Field("", description="Accepted; splits by ratio are computed and not written.")
    exec_timeout: PositiveNumber | None = Field(
        None, description="Seconds that one call of the target may take; null leaves it to the backend, else 120."
    )
    out_root: str = Field("", description="Accepted; the output is the repository.")


class BudgetSettings(Section):
    """What a run may cost in all; null means no limit."""

    max_calls: Positive | None = Field(None, description="Calls of a model.")
    max_tokens: Positive | None = Field(None, description="Tokens, in and out.")
    max_usd: PositiveNumber | None = Field(None, description="US dollars.")


class CallsSettings(Section):
    """How models are called."""

    concurrency: Positive = Field(
        16, description="Calls in flight per backend, and rollouts at once; fewer while a provider refuses so many."
    )
    executor: Literal["inline", "process", "ray"] = Field(
        "inline",
        description="Where rollouts are made: in this process, in a worker process for each processor, or on a Ray "
        "cluster; models are asked from this process in any case.",
    )
    ray_address: str = Field(
        "",
        description="Ray cluster, as host:port or auto; empty starts one on this machine for the time of the command.",
    )
    max_retries: Annotated[int, Field(ge=0)] = Field(
        4, description="Further attempts at a call that fails in a way that may pass; refusals do not count."
    )
    timeout_s: PositiveNumber | None = Field(
        None, description="The same as env.exec_timeout, for calls of the optimizer and the judge."
    )
    item_timeout_s: PositiveNumber | None = Field(
        None,
        description="Seconds that one item may take, without the time that it waits for its turn; null means no limit.",
    )
    retry_budget_s: PositiveNumber = Field(
        600.0, description="Seconds that a call spends in pauses before a further refusal (429, overloaded) ends it."
    )
    requests_per_minute: Positive | None = Field(
        None, description="Requests that are sent to one model of a backend in a minute; null means no limit."
    )
    tokens_per_minute: Positive | None = Field(
        None, description="Tokens, in and out and as estimated, for the same; null means no limit."
    )
    hedge: bool = Field(
        default=False,
        description="Send a call that takes unusually long a second time, at the price of both; one answer counts.",
    )
    max_output_tokens: Positive = Field(16384, description="Length of a reply at most.")
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = Field(
        None, description="Sampling temperature; null leaves it to the provider."
    )


class Config(Section):
    model: ModelSettings
    train: TrainSettings
    gradient: GradientSettings
    optimizer: OptimizerSettings
    target: TargetSettings
    evaluation: EvaluationSettings
    gate: GateSettings
    env: SerializeAsAny[EnvSettings]
    budget: BudgetSettings
    calls: CallsSettings

    @property
    def rollouts_at_once(self) -> int:
        """How many rollouts are in progress at most; those that wait for one batch have to be asked together."""
        return ALL if self.model.target_batch or self.model.judge_batch else self.calls.concurrency

    @property
    def method(self) -> MethodSettings:
        """The part that the engine works with."""
        all_at_once = {"analyst_workers": ALL} if self.model.optimizer_batch else {}
        return MethodSettings(
            train=self.train,
            gradient=self.gradient.model_copy(update=all_at_once),
            optimizer=self.optimizer,
            target=self.target,
            evaluation=self.evaluation,
            gate=self.gate,
        )


SECTIONS: dict[str, type[BaseModel]] = {
    "model": ModelSettings,
    "train": TrainSettings,
    "gradient": GradientSettings,
    "optimizer": OptimizerSettings,
    "target": TargetSettings,
    "evaluation": EvaluationSettings,
    "gate": GateSettings,
    "env": EnvSettings,
    "budget": BudgetSettings,
    "calls": CallsSettings,
}
"""The sections in the order in which they are shown."""

NOT_KEYS = frozenset({"model.backend_settings"})
"""Fields that hold other keys and cannot be written themselves."""


def env_settings(info: EnvironmentInfo) -> type[EnvSettings]:
    """Return the env section with an environment's options in it; its defaults win, the limits of common keys stay."""
    fields: dict[str, object] = {}
    for option in info.options:
        common = EnvSettings.model_fields.get(option.name)
        kind = (
            common.annotation if common is not None else Literal[tuple(option.values)] if option.values else option.type
        )
        metadata = list(common.metadata) if common is not None else []
        annotation = Annotated[kind, *metadata] if metadata else kind
        fields[option.name] = (annotation, Field(option.default, description=option.help))
    model: type[EnvSettings] = create_model("EnvSettings", __base__=EnvSettings, **fields)  # type: ignore[call-overload]
    return model


def keys(env: type[EnvSettings]) -> dict[str, object]:
    """Return every key that can be written, dotted, with the annotation of its values."""
    values: dict[str, object] = {}
    for section, settings in SECTIONS.items():
        shape = env if section == "env" else settings
        for name, field in shape.model_fields.items():
            if f"{section}.{name}" not in NOT_KEYS:
                values[f"{section}.{name}"] = field.annotation
    return values
