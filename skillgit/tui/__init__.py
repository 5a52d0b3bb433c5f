"""The terminal user interface: the same use cases as the command line, on a screen that stays open."""
