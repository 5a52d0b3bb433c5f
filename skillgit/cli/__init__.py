"""The command line: it reads arguments, calls one use case and renders what that returns."""
