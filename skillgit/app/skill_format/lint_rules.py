"""The rules of Agent Skills: what each demands, how much it matters, and how to mend what breaks it.

Source: the specification of Agent Skills (agentskills.io) and its reference validator ``skills-ref``. ``docs/
agent-skills.md`` lists the same rules; a test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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


class RuleSeverity(StrEnum):
    """How much a broken rule matters."""

    ERROR = "error"  # agents or validators refuse the skill, or a part of it does not work
    WARNING = "warning"  # it works, but not everywhere or not well


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatRule:
    """A rule."""

    name: str  # never changes
    severity: RuleSeverity
    demand: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A place where a rule is broken."""

    rule: str
    severity: RuleSeverity
    path: str  # the file, relative to the skill folder; empty for the folder itself
    line: int  # the line, counted from 1; 0 for the whole file
    sentence: str  # what is wrong, without a full stop
    mend: str


def _error(name: str, demand: str, mend: str) -> FormatRule:
    return FormatRule(name=name, severity=RuleSeverity.ERROR, demand=demand, mend=mend)


def _warning(name: str, demand: str, mend: str) -> FormatRule:
    return FormatRule(name=name, severity=RuleSeverity.WARNING, demand=demand, mend=mend)


_LIST = (
    _error("document-missing", "A skill is a folder with a SKILL.md.", "add a SKILL.md"),
    _warning("document-case", "The file is called SKILL.md, in capitals.", "rename skill.md to SKILL.md"),
    _error("encoding", "SKILL.md is UTF-8.", "save it as UTF-8"),
    _error("byte-order-mark", "SKILL.md begins without a byte order mark.", "save it as UTF-8 without BOM"),
    _warning("line-ends", "Text files end their lines with LF alone.", "save it with LF line ends"),
    _warning(
        "hidden-character",
        "Text files hold no control, direction or invisible characters.",
        "remove them; editors and terminals do not show what they do",
    ),
    _warning("companion-encoding", "Other text files are UTF-8 without a byte order mark.", "save it as UTF-8"),
    _error("file-name", "Every name in the folder is possible on any system.", "rename it"),
    _warning("symbolic-link", "A skill holds plain files only.", "copy what the link points to"),
    _error(
        "link-leads-out",
        "No symbolic link leads out of the skill's folder.",
        "installers follow it and would publish what it leads to: put a plain file in its place",
    ),
    _error("frontmatter-missing", "The first line of SKILL.md is ---.", "begin with --- and the keys"),
    _error("frontmatter-open", "A second line --- ends the frontmatter.", "end it with a line '---'"),
    _error(
        "frontmatter-fence",
        "Nothing in the frontmatter contains ---, where validators would split it.",
        "validators split there; write it another way",
    ),
    _error("frontmatter-length", "The frontmatter has at most 64,000 characters.", "move what is long into the body"),
    _error("frontmatter-yaml", "The frontmatter is YAML.", "quote values that contain a colon"),
    _error("frontmatter-keys", "The frontmatter holds keys.", "it needs name and description"),
    _error("frontmatter-flow", "Braces and brackets are not used.", "write one 'key: value' per line"),
    _error("frontmatter-repeated", "A key occurs once.", "keep one of them"),
    _error("frontmatter-tag", "Anchors, aliases and tags are not used.", "write the value itself"),
    _error(
        "key-unknown",
        f"The keys are {', '.join(KEYS)}.",
        f"frontmatter may hold {', '.join(KEYS)} and nothing else; put the rest under metadata",
    ),
    _warning(
        "key-of-agents",
        f"Keys that an agent adds to the specification are {', '.join(AGENT_KEYS)}.",
        "keep it for that agent; others ignore it, and the reference validator refuses it",
    ),
    _error(
        "key-not-text",
        "Every value but those of metadata and allowed-tools is text.",
        "write it as one text; only metadata may hold keys itself",
    ),
    _warning(
        "value-not-text",
        "Values under metadata are texts, and allowed-tools is one text with spaces between the tools.",
        "Claude Code reads it; the specification has one text there",
    ),
    _error("value-flow", "Braces are not used inside of values.", "write one 'key: value' per line"),
    _warning("value-unquoted", "A value that YAML reads as number, date or truth value is quoted.", "quote it"),
    _error("name-missing", "There is a name.", "add 'name: <folder name>'"),
    _error(
        "name-form",
        "A name has lower-case letters a-z, digits and single hyphens inside.",
        f"use lower-case letters, digits and single hyphens, {NAME_LENGTH} characters at most",
    ),
    _error("name-length", f"A name has {NAME_LENGTH} characters at most.", f"{NAME_LENGTH} are allowed"),
    _error("name-folder", "The name is that of the folder.", "rename the folder, or change the name"),
    _error("description-missing", "There is a description.", "add 'description: …'"),
    _error(
        "description-length",
        f"A description has {DESCRIPTION_LENGTH} characters at most.",
        f"{DESCRIPTION_LENGTH} are allowed",
    ),
    _error("compatibility-missing", "A compatibility that is given says something.", "add 'compatibility: …'"),
    _error(
        "compatibility-length",
        f"A compatibility has {COMPATIBILITY_LENGTH} characters at most.",
        f"{COMPATIBILITY_LENGTH} are allowed",
    ),
    _error("metadata-keys", "Metadata hold keys with texts.", "write keys and values under it"),
    _error(
        "installed-metadata",
        "Metadata hold nothing that an installer wrote.",
        "remove the keys github-... and local-path: they belong to an installed copy",
    ),
    _error(
        "licence-file", "A file that the license names is in the folder.", "add the file, or name the licence alone"
    ),
    _warning("body-empty", "There is a text below the frontmatter.", "write what the agent shall do"),
    _warning(
        "document-lines", f"SKILL.md has fewer than {DOCUMENT_LINES} lines.", "move details to files under references/"
    ),
    _warning(
        "body-tokens", f"The body has fewer than {BODY_TOKENS} tokens.", "move details to files under references/"
    ),
    _error("link-missing", "A file that SKILL.md links to is in the folder.", "add the file, or mend the link"),
    _warning("link-outside", "Links lead to files of the folder.", "bring the file into the folder, or leave it out"),
    _warning(
        "mention-missing", "A file that SKILL.md mentions by its path is in the folder.", "add it, or mend the path"
    ),
    _warning("companion-link-missing", "A file that another file links to is in the folder.", "mend the link"),
    _warning(
        "reference-chain",
        "SKILL.md links to every reference itself, so that none is found over another one only.",
        "link to it in SKILL.md too",
    ),
    _warning("region-open", "A skillgit region that is opened is closed.", "add its end marker"),
    _warning(
        "listing-absent",
        "Every agent lists every skill of a library.",
        "remove skills that are not needed",
    ),
    _warning(
        "listing-name",
        "A library is so small that Claude Code lists every description: 1 % of the context window.",
        "remove skills that are not needed, or shorten descriptions",
    ),
    _warning(
        "listing-cut",
        "Descriptions are so short that Claude Code (1,536 characters) and Codex (1,024; 2 % of the window) cut none.",
        "shorten it, and say first when to use the skill",
    ),
    _warning(
        "listing-alike",
        "The descriptions of a library tell its skills apart.",
        "say in each when the other one is meant, or make one skill of both",
    ),
)

RULES = {rule.name: rule for rule in _LIST}  # name to rule, in the order in which they are documented


def broken(name: str, path: str, line: int, sentence: str, mend: str = "") -> Fault:
    """Return what breaks the rule ``name``; ``mend`` is for a fault that is not mended as others of the rule are."""
    rule = RULES[name]
    return Fault(rule=name, severity=rule.severity, path=path, line=line, sentence=sentence, mend=mend or rule.mend)
