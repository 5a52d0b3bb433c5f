"""The model ``agent``, which plays household games by rules, and what the analyst knows of such games.

The agent reads what any target reads: the skill, what it saw, and the commands that are possible. It does not know the
game's files. Left to itself it goes about things naively, and it does what its skill says, harmful things included.
"""
