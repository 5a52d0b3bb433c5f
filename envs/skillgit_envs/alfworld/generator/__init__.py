"""Games made from recipes: a room, a task and a seed become a ``game.tw-pddl`` in memory.

Domain, grammar, goals and what may lie where are those of the installed alfworld package; rooms and placement are ours.
Everything here but ``recipe`` runs in the process that has alfworld loaded.
"""
