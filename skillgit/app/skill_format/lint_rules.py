"""The rules of Agent Skills: what each demands, how much it matters, and how to fix what breaks it.

Source: the specification of Agent Skills (agentskills.io) and its reference validator ``skills-ref``.
``docs/moving.md`` lists the same rules; a test compares both.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from skillgit.domain.finding import Finding, Severity
from skillgit.plugin.skill_library import DESCRIPTION_LENGTH

KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_CLAUDE, _CURSOR = "Claude Code", "Cursor"
AGENT_KEYS = {
    "agent": (_CLAUDE,),
    "argument-hint": (_CLAUDE,),
    "arguments": (_CLAUDE,),
    "context": (_CLAUDE,),
    "disable-model-invocation": (_CLAUDE, _CURSOR),
    "disallowed-tools": (_CLAUDE,),
    "effort": (_CLAUDE,),
    "hooks": (_CLAUDE,),
    "model": (_CLAUDE,),
    "paths": (_CLAUDE, _CURSOR),
    "shell": (_CLAUDE,),
    "user-invocable": (_CLAUDE,),
    "version": (_CLAUDE,),
    "when_to_use": (_CLAUDE,),
}
"""Keys beyond the specification to the agents that document them."""
NAME_LENGTH, COMPATIBILITY_LENGTH = 64, 500
DOCUMENT_LINES, BODY_TOKENS = 500, 5000
CHARACTERS_PER_TOKEN = 4  # about how many characters of English prose make a token; models differ


class FormatRule(NamedTuple):
    """A rule of skill folders. An error breaks the skill for some agent or validator; a warning, for some or a bit."""

    severity: Severity
    demand: str
    mend: str


_ERROR, _WARNING = partial(FormatRule, Severity.ERROR), partial(FormatRule, Severity.WARNING)
RULES: Final = {
    "document-missing": _ERROR("A skill is a folder with a SKILL.md.", "add a SKILL.md"),
    "document-case": _WARNING("The file is called SKILL.md, in capitals.", "rename skill.md to SKILL.md"),
    "encoding": _ERROR("SKILL.md is UTF-8.", "save it as UTF-8"),
    "byte-order-mark": _ERROR("SKILL.md begins without a byte order mark.", "save it as UTF-8 without BOM"),
    "line-ends": _WARNING("Text files end their lines with LF alone.", "save it with LF line ends"),
    "hidden-character": _WARNING(
        "Text files hold no control, direction or invisible characters.",
        "remove them; editors and terminals do not show what they do",
    ),
    "companion-encoding": _WARNING("Other text files are UTF-8 without a byte order mark.", "save it as UTF-8"),
    "file-name": _ERROR("Every name in the folder is possible on any system.", "rename it"),
    "symbolic-link": _WARNING("A skill holds plain files only.", "copy what the link points to"),
    "link-leads-out": _ERROR(
        "No symbolic link leads out of the skill's folder.",
        "installers follow it and would publish what it leads to: put a plain file in its place",
    ),
    "frontmatter-missing": _ERROR("The first line of SKILL.md is ---.", "begin with --- and the keys"),
    "frontmatter-open": _ERROR("A second line --- ends the frontmatter.", "end it with a line '---'"),
    "frontmatter-fence": _ERROR(
        "Nothing in the frontmatter contains ---, where validators would split it.",
        "validators split there; write it another way",
    ),
    "frontmatter-length": _ERROR("The frontmatter has at most 64,000 characters.", "move what is long into the body"),
    "frontmatter-yaml": _ERROR("The frontmatter is YAML.", "quote values that contain a colon"),
    "frontmatter-keys": _ERROR("The frontmatter holds keys.", "it needs name and description"),
    "frontmatter-flow": _ERROR("Braces and brackets are not used.", "write one 'key: value' per line"),
    "frontmatter-repeated": _ERROR("A key occurs once.", "keep one of them"),
    "frontmatter-tag": _ERROR("Anchors, aliases and tags are not used.", "write the value itself"),
    "key-unknown": _ERROR(
        f"The keys are {', '.join(KEYS)}.",
        f"frontmatter may hold {', '.join(KEYS)} and nothing else; put the rest under metadata",
    ),
    "key-of-agents": _WARNING(
        f"Keys that an agent adds to the specification are {', '.join(AGENT_KEYS)}.",
        "keep it for that agent; others ignore it, and the reference validator refuses it",
    ),
    "key-not-text": _ERROR(
        "Every value but those of metadata and allowed-tools is text.",
        "write it as one text; only metadata may hold keys itself",
    ),
    "value-not-text": _WARNING(
        "Values under metadata are texts, and allowed-tools is one text with spaces between the tools.",
        "Claude Code reads it; the specification has one text there",
    ),
    "value-flow": _ERROR("Braces are not used inside of values.", "write one 'key: value' per line"),
    "value-unquoted": _WARNING("A value that YAML reads as number, date or truth value is quoted.", "quote it"),
    "name-missing": _ERROR("There is a name.", "add 'name: <folder name>'"),
    "name-form": _ERROR(
        "A name has lower-case letters a-z, digits and single hyphens inside.",
        f"use lower-case letters, digits and single hyphens, {NAME_LENGTH} characters at most",
    ),
    "name-length": _ERROR(f"A name has {NAME_LENGTH} characters at most.", f"{NAME_LENGTH} are allowed"),
    "name-folder": _ERROR("The name is that of the folder.", "rename the folder, or change the name"),
    "description-missing": _ERROR("There is a description.", "add 'description: …'"),
    "description-length": _ERROR(
        f"A description has {DESCRIPTION_LENGTH} characters at most.",
        f"{DESCRIPTION_LENGTH} are allowed",
    ),
    "compatibility-missing": _ERROR("A compatibility that is given says something.", "add 'compatibility: …'"),
    "compatibility-length": _ERROR(
        f"A compatibility has {COMPATIBILITY_LENGTH} characters at most.",
        f"{COMPATIBILITY_LENGTH} are allowed",
    ),
    "metadata-keys": _ERROR("Metadata hold keys with texts.", "write keys and values under it"),
    "installed-metadata": _ERROR(
        "Metadata hold nothing that an installer wrote.",
        "remove the keys github-... and local-path: they belong to an installed copy",
    ),
    "reserved-metadata": _WARNING(
        "Metadata hold no keys that the Model Context Protocol keeps for itself.",
        "rename the keys io.modelcontextprotocol/...: clients may read them as the protocol's own",
    ),
    "licence-file": _ERROR(
        "A file that the license names is in the folder.", "add the file, or name the licence alone"
    ),
    "body-empty": _WARNING("There is a text below the frontmatter.", "write what the agent shall do"),
    "document-lines": _WARNING(
        f"SKILL.md has fewer than {DOCUMENT_LINES} lines.", "move details to files under references/"
    ),
    "body-tokens": _WARNING(
        f"The body has fewer than {BODY_TOKENS} tokens.", "move details to files under references/"
    ),
    "link-missing": _ERROR("A file that SKILL.md links to is in the folder.", "add the file, or fix the link"),
    "link-outside": _WARNING("Links lead to files of the folder.", "bring the file into the folder, or leave it out"),
    "mention-missing": _WARNING(
        "A file that SKILL.md mentions by its path is in the folder.", "add it, or fix the path"
    ),
    "companion-link-missing": _WARNING("A file that another file links to is in the folder.", "fix the link"),
    "reference-chain": _WARNING(
        "SKILL.md links to every reference itself, so that none is found over another one only.",
        "link to it in SKILL.md too",
    ),
    "region-open": _WARNING("A skillgit region that is opened is closed.", "add its end marker"),
    "listing-absent": _WARNING(
        "Every agent lists every skill of a library.",
        "remove skills that are not needed",
    ),
    "listing-name": _WARNING(
        "A library is so small that Claude Code lists every description: 1 % of the context window.",
        "remove skills that are not needed, or shorten descriptions",
    ),
    "listing-cut": _WARNING(
        "Descriptions are so short that Claude Code (1,536 characters) and Codex (1,024; 2 % of the window) cut none.",
        "shorten it, and say first when to use the skill",
    ),
    "listing-alike": _WARNING(
        "The descriptions of a library distinguish its skills.",
        "say in each when the other one is meant, or make one skill of both",
    ),
}
"""Name, which never changes, to rule, in the order in which they are documented."""


def broken(name: str, path: str, line: int, sentence: str, mend: str = "") -> Finding:
    """Return what breaks the rule ``name``; ``mend`` is for a fault with another fix than the rule's.

    ``path`` is relative to the skill folder, and empty for the folder itself.
    """
    rule = RULES[name]
    return Finding(rule=name, severity=rule.severity, path=path, line=line, sentence=sentence, hint=mend or rule.mend)
