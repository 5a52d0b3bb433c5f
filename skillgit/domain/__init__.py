"""Words: the facts and the pure decisions of training. Standard library only; no I/O, no clock, no chance."""
