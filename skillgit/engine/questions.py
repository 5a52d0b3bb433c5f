"""A question to the optimizer: its JSON reply is read, checked, and asked for once more if it cannot be used.

This is the door through which text of models enters: ``parse`` cleans every text of a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from skillgit.domain.document_rewrite import RewriteError, Template
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.json_limits import DocumentError, SeveralObjectsError, object_in
from skillgit.domain.untrusted.model_text import clean_json
from skillgit.engine.damaged_json import AmbiguousEscapeError, repaired_object, restored_escapes
from skillgit.engine.reply_schemas import ReplyModel, RewriteReply, key_names, strict_schema
from skillgit.errors import UnanswerableError
from skillgit.plugin.backend import Message, assistant, user

if TYPE_CHECKING:
    from skillgit.engine.session import Session

R = TypeVar("R", bound=ReplyModel)
_ONE_OBJECT = "one JSON object and nothing else"
_CUT = (
    "Your reply reached the limit of its length and was cut. Answer again within half of it: propose fewer items, the"
    f" most valuable first, and write shorter texts. Answer with {_ONE_OBJECT}."
)


class UnusableReplyError(Exception):
    """A reply is not the JSON that was asked for; the text says why, for the model to read."""


class MisplacedEditsError(UnusableReplyError):
    """Some edits of a reply have no place in the skill, or may not be made; the others can be used."""


def parse(text: str, schema: type[R], *, mend: bool = True) -> R:
    """Read the JSON in ``text`` and clean it; an UnusableReplyError if none fits ``schema``.

    Damage that has one reading is repaired, unless ``mend`` says otherwise: nothing of a reply that was cut is.
    """
    try:
        text = restored_escapes(text)
        value = clean_json(repaired_object(text, key_names(schema)) if mend else object_in(text) or None)
    except SeveralObjectsError as error:
        raise UnusableReplyError("it holds several JSON objects") from error
    except AmbiguousEscapeError as error:
        raise UnusableReplyError(str(error)) from error
    except DocumentError:
        value = None
    except RecursionError as error:  # a repaired reply may be nested at any depth
        raise UnusableReplyError("its JSON is nested too deeply") from error
    if value is None:
        raise UnusableReplyError("it contains no JSON object")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc'])) or 'object'}: {fault['msg']}" for fault in error.errors()[:5]]
        raise UnusableReplyError("; ".join(faults)) from error


def keeps_protected(skill: Skill) -> Callable[[ReplyModel], None]:
    """Return a check of replies with a whole new text: it must keep what is protected in ``skill``."""
    template = Template.of(skill.document)

    def check(reply: ReplyModel) -> None:
        if isinstance(reply, RewriteReply) and reply.body.strip():
            try:
                template.fill(reply.body)
            except RewriteError as error:
                raise UnusableReplyError(f"body: {error}") from error

    return check


async def ask(
    session: Session,
    stage: str,
    messages: Sequence[Message],
    schema: type[R],
    *,
    draw: tuple[str | int, ...],
    check: Callable[[R], object] = lambda _: None,
) -> R | None:
    """Ask the optimizer for JSON; a reply that does not fit is sent back once with the reason.

    Return None if the second reply does not fit either, or the question will never be answered: it is left out like a
    reply that cannot be used, see :func:`skillgit.engine.session.unanswered`. A reply of which only some edits have no
    place is better than none: it is returned unless the second is better.

    ``draw`` is the place in the run that the call belongs to. ``check`` raises an UnusableReplyError if a reply of the
    right shape cannot be used all the same.
    """
    conversation, partial = list(messages), None
    form = strict_schema(schema, messages[0].text) if session.settings.optimizer.structured_output == "auto" else None
    for attempt in (1, 2):
        key = (stage, session.seed, *draw, attempt)
        try:
            reply = await session.calls.call("optimizer", stage, conversation, draw=key, schema=form)
        except UnanswerableError:
            return partial  # the door keeps why
        is_cut = reply.finish_reason == "length"
        try:
            answer = parse(reply.text, schema, mend=not is_cut)
            check(answer)
        except MisplacedEditsError as fault:
            partial = answer
            again = (
                f"Some of your edits have no place in the skill, or may not be made. {fault}\nAnswer again with the"
                " whole JSON object, every edit included; copy each anchor from the skill as it is written there."
            )
            conversation += [assistant(reply.text), user(again)]
        except UnusableReplyError as fault:
            again = _CUT if is_cut else f"Your reply cannot be used: {fault}. Answer again with {_ONE_OBJECT}."
            conversation += [assistant(reply.text), user(again)]
        else:
            return answer
    return partial
