"""What git and its transports say when a connection fails, in words that tell what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillgit.domain.untrusted.names import shown
from skillgit.errors import RemoteError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    signs: re.Pattern[str]
    sentence: str
    hint: str
    nameless: str = ""
    missing: bool = False


def _case(signs: str, sentence: str, hint: str, *, nameless: str = "", missing: bool = False) -> _Case:
    """Return a case; ``nameless`` is the hint where the address is no remote's yet, if that is another one."""
    return _Case(
        signs=re.compile(signs, re.IGNORECASE), sentence=sentence, hint=hint, nameless=nameless, missing=missing
    )


_CASES = (
    _case(
        r"terminal prompts disabled|could not read (?:Username|Password)|no askpass|No such device or address",
        "{remote} asks for a name and a password, and nobody is here to type them",
        "let git remember them: git help credentials; or use an ssh address: skillgit remote set-url {remote} URL",
        nameless="let git remember them: git help credentials; or use an ssh address",
    ),
    _case(
        r"Authentication failed|Invalid username or (?:password|token)|HTTP Basic: Access denied|error: 401",
        "{remote} refused the name, the password or the token",
        "correct what git remembers (git help credentials); many hosts take a token in place of the password",
    ),
    _case(
        r"Permission denied \(|Host key verification failed|no matching host key",
        "{remote} refused the ssh key, or this machine does not know the host's key",
        "try it by hand: ssh -T HOST",
    ),
    _case(
        r"error: 403|Permission to \S+ denied|Write access to repository not granted|not allowed to push|read-only",
        "{remote} lets you read, but not write",
        "ask its owner for the right to push, or push to a repository of your own: skillgit remote add NAME URL",
    ),
    _case(
        r"Repository not found|repository '[^']*' (?:not found|does not exist)|does not appear to be a git repository"
        r"|error: 404|invalid gitfile format|project you were looking for could not be found",
        "there is no repository at {remote}, or you may not see it",
        "create it first, without any file in it, or correct the address: skillgit remote set-url {remote} URL",
        nameless="correct the address, or ask its owner to let you see it",
        missing=True,
    ),
    _case(
        r"SSL certificate|certificate (?:verify failed|verification)|server certificate|TLS|SSL_",
        "the certificate of {remote} cannot be trusted",
        "git help config tells of http.sslCAInfo",
    ),
    _case(
        r"hung up unexpectedly|unexpected disconnect|early EOF|RPC failed|Connection reset|Broken pipe|Empty reply"
        r"|Recv failure|transfer closed|invalid index-pack output|error: 5\d\d",
        "the connection to {remote} broke",
        "run it again: what has arrived stays, and what has not is sent again",
    ),
    _case(
        r"Could not resolve|Failed to connect|Couldn't connect|Connection refused|Connection timed out|No route to host"
        r"|Network is unreachable|Name or service not known|unable to look up",
        "{remote} cannot be reached",
        "check the network and the address: skillgit remote",
        nameless="check the network and the address",
    ),
)
_UNSOUND = re.compile(r"^(?:fatal|error): object (?P<oid>[0-9a-f]{12})[0-9a-f]*: \w+: (?P<what>.+)$", re.MULTILINE)
"""What git says of an object that it does not let in."""
_UNWRITABLE = re.compile(
    r"^(?:error|fatal): (?:unable to (?:create|write) (?:file|symlink) |cannot (?:stat|create directory at) )"
    r"'?(?P<name>[^\n]+?)'?(?:: (?P<why>[^:\n]+))?$",
    re.MULTILINE,
)
"""What git says of a file that it cannot check out."""
_FINAL = re.compile(r"^(?:fatal|error): (?P<said>.+)$", re.MULTILINE)


def refusal(remote: str, said: str, *, named: bool = True) -> RemoteError:
    """Return the error for git's last words ``said`` on the connection to ``remote``.

    Args:
        remote: What it is called.
        said: What git said.
        named: Whether that is the name of a remote; else it is an address.
    """
    if unsound := _UNSOUND.search(said):
        return RemoteError(
            f"{remote} has an object that is not let in: {unsound['oid']} {unsound['what']}",
            hint="nothing came in; its owner has to mend the history, which could harm whoever checks it out",
        )
    if file := _UNWRITABLE.search(said):
        why = f": {file['why'].lower()}" if file["why"] else ""
        return RemoteError(
            f"{remote} has a file that cannot be checked out here, {shown(file['name'])}{why}",
            hint="git clone --no-checkout URL DIR brings the history alone; skillgit pull in DIR then makes its runs",
        )
    for case in _CASES:
        if case.signs.search(said):
            advice = case.hint if named else case.nameless or case.hint
            sentence, hint = (text.format(remote=remote) for text in (case.sentence, advice))
            return RemoteError(sentence, hint=hint, missing=case.missing)
    last = [match["said"] for match in _FINAL.finditer(said)]
    told = " ".join((last[-1] if last else said.strip().rpartition("\n")[2] or "git said nothing").split())
    return RemoteError(f"git cannot talk to {remote}: {told}", hint="skillgit remote" if named else "check the address")
