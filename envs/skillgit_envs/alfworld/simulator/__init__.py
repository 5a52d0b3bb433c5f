"""The games of ALFWorld, each played in a process of its own: ``client`` is all that the environment sees of them.

TextWorld is loaded in the ``fork_server`` process only, and each game runs in a fork of it.
"""
