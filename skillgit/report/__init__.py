"""The page of ``skillgit report``: makes HTML of the value of the use case, and neither reads nor writes anything else.

Templates are filled in with Jinja2, which escapes what they print. A page has no script, and its policy forbids one.
"""
