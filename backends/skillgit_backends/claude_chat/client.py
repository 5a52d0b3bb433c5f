"""Owns the SDK's HTTP client with what it lacks: limits, and redirects that stay where they are."""

from __future__ import annotations

from anthropic import DefaultAioHttpClient

from skillgit_backends.bounded_http import BoundedClient


class AnthropicHttpClient(BoundedClient, DefaultAioHttpClient):
    """The client over aiohttp."""
