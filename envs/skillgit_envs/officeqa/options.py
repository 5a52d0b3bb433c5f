"""The keys of the ``env`` section that OfficeQA understands, and which of their values it refuses."""

from __future__ import annotations

from skillgit.plugin.environment import Option
from skillgit.plugin.splits import OPTIONS

SCOPES = ("all", "item")

OFFICE_OPTIONS = (
    *OPTIONS,
    Option(
        name="docs_dir",
        type=str,
        default="",
        help="Folder of the documents, *.txt or *.md; its transformed if any.",
        path=True,
    ),
    Option(name="scope", type=str, default="all", help="Documents that the tools show: all, or those of the item."),
    Option(
        name="oracle_pages",
        type=bool,
        default=False,
        help="Give away the pages that the answer stands on (source_docs).",
    ),
    Option(name="use_local_tools", type=bool, default=True, help="Offer the tools glob, grep and read over documents."),
    Option(name="max_turns", type=int, default=24, help="Replies at most; the last one has to answer."),
    Option(name="scorer", type=str, default="official", help="official (the reward) or skillopt (exact match and F1)."),
    Option(
        name="tolerance",
        type=float,
        default=0.0,
        help="Relative error of a number that is still right: 0.01 is 1 %; for the official scorer.",
    ),
    Option(name="search_url", type=str, default="", help="Search service for a further tool, search; https only."),
    Option(name="search_auth_env", type=str, default="", help="Variable with the token of the search service."),
    Option(name="search_provider", type=str, default="", help="Source that the search service is to ask."),
    Option(name="search_max_num_results", type=int, default=4, help="Results of a search at most."),
    Option(name="search_timeout_seconds", type=float, default=20.0, help="Seconds that a search may take."),
    Option(name="sandbox", type=str, default="auto", help="How tools are isolated: auto, bubblewrap, landlock, none."),
)
