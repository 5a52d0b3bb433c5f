"""Screens and widgets that cannot be made before a subclass has filled in what they leave open."""

from __future__ import annotations

from abc import ABCMeta

from textual.message_pump import _MessagePumpMeta


class AbstractNode(_MessagePumpMeta, ABCMeta):
    """The class of such classes: Textual's own, and Python's for abstract ones."""
