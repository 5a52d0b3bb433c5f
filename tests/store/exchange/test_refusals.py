from __future__ import annotations

import pytest

from skillgit.store.exchange.transport import refusal

SAID = [
    ("fatal: could not read Username for 'https://github.com': terminal prompts disabled", "asks for a name"),
    ("fatal: Authentication failed for 'https://x/y.git/'", "refused the name"),
    ("remote: HTTP Basic: Access denied\nfatal: Authentication failed for 'https://x/'", "refused the name"),
    ("git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.", "ssh key"),
    ("Host key verification failed.\nfatal: Could not read from remote repository.", "ssh key"),
    ("fatal: unable to access 'https://x/': The requested URL returned error: 403", "does not let you read it"),
    ("remote: Repository not found.\nfatal: repository 'https://github.com/a/b.git/' not found", "no repository at"),
    ("ERROR: Repository not found.\nfatal: Could not read from remote repository.", "no repository at"),
    ("fatal: '/x' does not appear to be a git repository", "no repository at"),
    ("fatal: unable to access 'https://x/': Could not resolve host: x", "cannot be reached"),
    ("ssh: connect to host x port 22: Connection refused\nfatal: Could not read from remote repository.", "cannot be"),
    ("fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate", "certificate of"),
    ("error: RPC failed; curl 56 Recv failure\nfatal: the remote end hung up unexpectedly", "connection to"),
    ("send-pack: unexpected disconnect while reading sideband packet", "connection to"),
    ("fatal: something new\n", "git cannot talk to origin: something new"),
    ("", "git cannot talk to origin: git said nothing"),
]


@pytest.mark.parametrize(("said", "told"), SAID, ids=[told for _, told in SAID])
def test_what_git_says_becomes_one_sentence_with_a_hint(said, told):
    error = refusal("origin", said)
    assert told in error.message
    assert "origin" in error.message
    assert error.hint
    assert error.exit_code == 5
    assert error.missing == ("no repository at" in told)


FORBIDDEN = [
    "remote: Permission to a/b.git denied to c.\nfatal: unable to access 'https://x/': error: 403",
    "fatal: unable to access 'https://x/': The requested URL returned error: 403",
    "remote: Write access to repository not granted.\nfatal: unable to access 'https://x/': error: 403",
    "GitLab: You are not allowed to push code to this project.",
    "ERROR: this repository is read-only",
]


@pytest.mark.parametrize("words", FORBIDDEN)
@pytest.mark.parametrize("has_name", [True, False])
def test_a_refusal_speaks_of_the_direction_that_was_refused(words, has_name):
    sent, fetched = (refusal("origin", words, has_name=has_name, pushes=pushes) for pushes in (True, False))
    assert "not write" in sent.message
    assert "push" in sent.hint
    assert "not let you read" in fetched.message
    assert not {"write", "push"} & {*f"{fetched.message} {fetched.hint}".split()}
