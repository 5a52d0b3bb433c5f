"""The checks that score a result: what each takes, how it grades, and what several of them add up to.

``comparisons`` says what a check is, ``catalogue`` lists the kinds, reads them from a row and grades by them.
"""
