"""The program that runs one job: it puts files in place, confines and starts the command, watches it, ends all.

It runs in a process of its own, inside the namespaces where there are some, and needs the standard library only.
"""
