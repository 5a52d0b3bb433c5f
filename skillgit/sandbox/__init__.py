"""The one door for code that a model wrote: it runs apart from this machine, within limits; what it makes comes back.

``sandbox`` chooses one of the ``mechanisms`` and drives the ``launcher``, which is a program of its own. ``job`` is
what is asked and what comes back. ``tools`` offers documents and Python to a model, ``conversation`` is the loop in
which it uses them, and ``libreoffice`` recalculates workbooks.
"""

from skillgit.sandbox.job import Job, Limits, Result
from skillgit.sandbox.mechanisms import Mode
from skillgit.sandbox.sandbox import Sandbox

__all__ = ["Job", "Limits", "Mode", "Result", "Sandbox"]
