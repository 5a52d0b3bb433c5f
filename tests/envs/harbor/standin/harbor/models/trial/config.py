"""Stands in for a few of Harbor's classes, so that the protocol can be tried without Harbor."""

from types import SimpleNamespace

AgentConfig = EnvironmentConfig = TaskConfig = TrialConfig = SimpleNamespace
