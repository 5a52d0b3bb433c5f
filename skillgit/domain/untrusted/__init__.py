"""The boundary between what others say and what is acted on: recorded settings, names in trees, text of models.

What arrives from a repository, a model or an archive is data. It becomes something that the rest of the program
acts on only through a function of this package, and carries a type that only this package makes.
"""
