"""What an environment of Harbor's says of itself."""

from types import SimpleNamespace

EnvironmentCapabilities = SimpleNamespace
