"""Envelopes: bytes signed with an SSH key, as DSSE wraps them, whose signature is one of ``ssh-keygen -Y sign``."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap

from skillgit.domain.untrusted.json_limits import read_document
from skillgit.errors import NotFoundError, UsageError
from skillgit.store.repo import Repo

PAYLOAD_TYPE = "application/vnd.in-toto+json"
NAMESPACE = "skillgit-claim"
"""What signatures are made for; git's are made for another, so that none of a claim passes for one of a commit."""
MOST_BYTES = 1 << 20
"""Bytes of an envelope: a claim has a few kilobytes."""
_MOST_SIGNATURE = 16 << 10
_HEAD, _FOOT = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_GOOD = re.compile(rf'Good "{NAMESPACE}" signature .*with (?P<key>[A-Za-z0-9-]+ key SHA256:[A-Za-z0-9+/=]+)')
_PUBLIC = re.compile(r"(?:key::)?(?P<key>(?:ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/=]+)(?: .*)?")
"""A key that is written out in git's configuration: its private half is with an agent."""


@dataclass(frozen=True, slots=True)
class Envelope:
    payload: bytes
    signature: bytes  # the SSHSIG blob

    @property
    def document(self) -> dict[str, object]:
        """The envelope as JSON values."""
        payload, signature = (base64.b64encode(data).decode() for data in (self.payload, self.signature))
        return {"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": [{"sig": signature}]}

    @property
    def text(self) -> bytes:
        return document_bytes(self.document)


def document_bytes(document: Mapping[str, object]) -> bytes:
    """Return the bytes of an envelope's file."""
    return f"{json.dumps(document, sort_keys=True, separators=(',', ':'))}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSignature:
    valid: bool  # whether it is that of the payload, and by a key of the signers where some were given
    key: str = ""  # type and fingerprint, as ``ED25519 key SHA256:…``; empty where it is not a signature
    principal: str = ""  # whom the file of signers names for the key; empty without such a file
    fault: str = ""  # why it is not valid, as a clause


def read_envelope(content: bytes) -> Envelope:
    """Return the envelope in ``content``, which may come from anyone; a UsageError if it is not one."""
    kind, data, blob = "", b"", b""
    try:
        match read_document(content, unique=True):
            case {"payloadType": str(kind), "payload": str(payload), "signatures": [{"sig": str(signature)}]}:
                data, blob = (base64.b64decode(text, validate=True) for text in (payload, signature))
    except ValueError:
        kind = ""
    if kind != PAYLOAD_TYPE:
        sentence = f"it is not a DSSE envelope of type {PAYLOAD_TYPE} with one signature"
        raise UsageError(sentence, hint="skillgit claim REV --output FILE writes one")
    if len(blob) > _MOST_SIGNATURE:
        raise UsageError(f"its signature is longer than {_MOST_SIGNATURE >> 10} KiB", hint="no SSH signature is")
    return Envelope(data, blob)


def signing_key(repo: Repo, key: str | None) -> str:
    """Return the key to sign with: ``key``, or git's; a UsageError where git has none that ssh-keygen can use."""
    if key is not None:
        return key
    setting = repo.config("user.signingkey")
    if not setting or repo.config("gpg.format") != "ssh":
        lack = "git signs with no SSH key here" if setting else "git has no signing key here"
        hint = "--key FILE, or git config gpg.format ssh and git config user.signingkey ~/.ssh/id_ed25519.pub"
        raise UsageError(lack, hint=hint)
    return setting


def sign(payload: bytes, key: str, folder: Path, environ: Mapping[str, str]) -> Envelope:
    """Sign ``payload``; ``key`` is a file, relative to ``folder``, or a public key whose private half an agent has."""
    with TemporaryDirectory(prefix="skillgit-") as temporary:
        options: tuple[str, ...] = ()
        if public := _PUBLIC.fullmatch(key):
            file = Path(temporary, "key.pub")
            file.write_text(f"{public['key']}\n", encoding="utf-8")
            options = ("-U",)
        else:
            home = environ.get("HOME", "")
            file = folder / (f"{home}{key[1:]}" if home and key.startswith("~/") else key)
        if not file.is_file():
            raise NotFoundError(f"there is no key {key}", hint="--key names the file of a private or a public SSH key")
        answer = _ssh_keygen("sign", *options, "-f", str(file), stdin=_encoded(payload), environ=environ)
    text = answer.stdout.decode(errors="replace")
    if answer.returncode or not text.startswith(_HEAD):
        reason = " ".join(answer.stderr.decode(errors="replace").split())[:200]
        hint = "ssh-add FILE gives an agent the key, or --key names another"
        raise UsageError(f"ssh-keygen cannot sign with {key}: {reason}", hint=hint)
    body = text.partition(_HEAD)[2].partition(_FOOT)[0]
    return Envelope(payload, base64.b64decode("".join(body.split())))


def check_signature(envelope: Envelope, signers: Path | None, environ: Mapping[str, str]) -> SshSignature:
    """Say who signed; with a file of allowed ``signers`` only their signatures are valid."""
    if signers is not None and not signers.is_file():
        raise NotFoundError(f"there is no file {signers}", hint="man ssh-keygen, ALLOWED SIGNERS, says what is in it")
    # no agent and no question: what a stranger wrote is only looked at
    calm = {name: value for name, value in environ.items() if name not in {"SSH_AUTH_SOCK", "SSH_ASKPASS"}}
    data = _encoded(envelope.payload)
    with _armoured(envelope.signature) as file:
        seal = ("-s", file)
        answer = _ssh_keygen("check-novalidate", *seal, stdin=data, environ=calm)
        match = _GOOD.search(answer.stdout.decode(errors="replace"))
        if answer.returncode or match is None:
            return SshSignature(valid=False, fault=f"it is not that of the payload, made for {NAMESPACE}")
        if signers is None:
            return SshSignature(valid=True, key=match["key"])
        names = _ssh_keygen("find-principals", *seal, "-f", str(signers), environ=calm, with_namespace=False)
        for principal in names.stdout.decode(errors="replace").splitlines():
            words = ("-f", str(signers), "-I", principal, *seal)
            if _ssh_keygen("verify", *words, stdin=data, environ=calm).returncode == 0:
                return SshSignature(valid=True, key=match["key"], principal=principal)
    return SshSignature(valid=False, key=match["key"], fault=f"{signers.name} does not allow its key")


def _encoded(payload: bytes) -> bytes:
    """Return what is signed: the pre-authentication encoding of DSSE, which covers the type too."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


@contextmanager
def _armoured(signature: bytes) -> Iterator[str]:
    with TemporaryDirectory(prefix="skillgit-") as folder:
        file = Path(folder, "signature")
        lines = wrap(base64.b64encode(signature).decode(), 70)
        file.write_text("\n".join([_HEAD, *lines, _FOOT, ""]), encoding="ascii")
        yield str(file)


def _ssh_keygen(
    action: str, *words: str, environ: Mapping[str, str], stdin: bytes = b"", with_namespace: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run ``ssh-keygen -Y``, which may ask for a passphrase on the terminal but opens no window."""
    line = ["ssh-keygen", "-Y", action, *(("-n", NAMESPACE) if with_namespace else ()), *words]
    surroundings = {**environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
    try:
        return subprocess.run(line, input=stdin, env=surroundings, capture_output=True, check=False)  # noqa: S603 - a list
    except FileNotFoundError:
        raise NotFoundError("there is no ssh-keygen on the PATH", hint="install OpenSSH's client") from None
