"""What backends share whose model is a coding agent's command line program.

A call is one process: a fresh home, workspace and environment (``backend``), the skill as a native skill folder and
the task on standard input (``prompting``), a process group that does not outlive the call and JSON events that are read
leniently (``process``), and failures classified (``error_mapping``). ``backend`` holds these together.
"""
