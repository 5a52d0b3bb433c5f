"""The checks that score a result: what each takes, how it grades, and what several of them add up to.

``check`` says what a check is, ``catalogue`` lists the kinds and reads them from a row, ``grading`` carries them out.
"""
