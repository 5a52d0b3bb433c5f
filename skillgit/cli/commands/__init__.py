"""One file per command; each defines ``command``, calls one use case and renders its result.

Use cases are imported when a command runs, so that help and completion stay fast.
"""
