"""What backends share whose model is a coding agent's command line program.

A call is one process: a fresh home and workspace (``workspace``), the skill as a native skill folder and the task on
standard input (``prompting``), an environment of named variables (``child_environment``), a process group that does not
outlive the call (``process``, ``survivors``), JSON events that are read leniently (``events``), and failures told apart
(``faults``). ``backend`` holds these together.
"""
