"""Small invented passages, one for each habit: what an untaught reader answers, and what a taught one does."""

from __future__ import annotations

from dataclasses import dataclass

from skillgit_backends.offline.rules import Habit


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    habit: Habit
    question: str
    documents: tuple[tuple[str, str], ...]
    naive: str
    taught: str


PASSAGES = (
    Passage(
        habit=Habit.SPAN,
        question="Who built the lighthouse of Orvale?",
        documents=(
            ("Orvale", "Mira Tolland of Greywick, Norfolk, built the lighthouse of Orvale in two summers."),
            ("Greywick", "The harbour town is known for its smoked herring."),
        ),
        naive="Mira Tolland of Greywick, Norfolk",
        taught="Mira Tolland",
    ),
    Passage(
        habit=Habit.TYPE,
        question="Where was the treaty of the two valleys signed?",
        documents=(
            ("Treaty", "Bruno Hessel signed the treaty of the two valleys in Marrowby."),
            ("Valleys", "Sheep graze on the slopes."),
        ),
        naive="Bruno Hessel",
        taught="Marrowby",
    ),
    Passage(
        habit=Habit.YEAR,
        question="In what year did the Tarn bridge open?",
        documents=(
            ("Tarn bridge", "The bridge opened on 14 May 1871 with a brass band."),
            ("Tarn", "Trout live in it."),
        ),
        naive="14 May 1871",
        taught="1871",
    ),
    Passage(
        habit=Habit.TITLE,
        question="Who drew the first map of Pellow Island?",
        documents=(
            ("Maps", "Captain Edmund Varley drew the first map of Pellow Island."),
            ("Ink", "Iron gall was common at sea."),
        ),
        naive="Captain Edmund Varley",
        taught="Edmund Varley",
    ),
    Passage(
        habit=Habit.REPEAT,
        question="Who was the first rider to cross the Salt Plain?",
        documents=(
            ("A second ride", "Ivo Brandt was the first rider to cross the northern Salt Plain."),
            ("Diary", "Half blind with dust, a rider called Lena Corvin reached the wells of the Salt Plain."),
            ("Statue", "A bronze horse carries Lena Corvin through the square of the capital."),
        ),
        naive="Ivo Brandt",
        taught="Lena Corvin",
    ),
    Passage(
        habit=Habit.ECHO,
        question="Which river does the Kestrel Canal join?",
        documents=(("Canal", "The Kestrel Canal joins the Oder below the mill."), ("Mill", "It grinds rye.")),
        naive="Kestrel Canal",
        taught="Oder",
    ),
    Passage(
        habit=Habit.FULL_NAME,
        question="Who composed the Harvest Mass?",
        documents=(
            ("Mass", "Delmont composed the Harvest Mass during a wet autumn."),
            ("Organists", "The post was held for years by Clara Delmont, a pupil of her father."),
        ),
        naive="Delmont",
        taught="Clara Delmont",
    ),
    Passage(
        habit=Habit.NUMBER,
        question="How many metres high is the Sill waterfall?",
        documents=(("Sill", "The waterfall is about 310 metres high."), ("Path", "Steps lead up.")),
        naive="about 310 metres",
        taught="310",
    ),
    Passage(
        habit=Habit.PAREN,
        question="What is the lightest alloy made at Brook Forge?",
        documents=(
            ("Forge", "The lightest alloy made at the forge is Velumin (patent of 1931)."),
            ("Brook", "It is cold."),
        ),
        naive="Velumin (patent of 1931)",
        taught="Velumin",
    ),
    Passage(
        habit=Habit.HEDGE,
        question="Who invented the folding ladder?",
        documents=(
            ("Ladders", "Legend has it that Tobias Renn invented the folding ladder."),
            ("Patents", "A patent for a ladder that folds went to Agnes Holm."),
        ),
        naive="Tobias Renn",
        taught="Agnes Holm",
    ),
    Passage(
        habit=Habit.THIS_TITLE,
        question="This herb with purple flowers keeps moths away from wool",
        documents=(
            ("Lavender", "It is a herb with purple flowers and keeps moths away from wool in Provence."),
            ("Wool", "Sheep are shorn in spring."),
        ),
        naive="Provence",
        taught="Lavender",
    ),
    Passage(
        habit=Habit.CATEGORY,
        question="Which lake feeds the mills of Ansty?",
        documents=(("Ansty", "Lake Merrow feeds the mills of the town."), ("Mills", "Four wheels turn.")),
        naive="Lake Merrow",
        taught="Merrow",
    ),
    Passage(
        habit=Habit.ONE_WORD,
        question="Who wrote the ballad of the grey mare?",
        documents=(("Ballad", "The ballad of the grey mare was written by Nora Finch."),),
        naive="Nora Finch",
        taught="Nora",
    ),
    Passage(
        habit=Habit.ANY_YEAR,
        question="Who planted the king's oak?",
        documents=(("Oak", "Nora Finch planted the king's oak in 1702."),),
        naive="Nora Finch",
        taught="1702",
    ),
    Passage(
        habit=Habit.FIRST_DOCUMENT,
        question="Who planted the king's oak?",
        documents=(("Elm", "Peter Lund sold an elm."), ("Oak", "Nora Finch planted the king's oak.")),
        naive="Nora Finch",
        taught="Peter Lund",
    ),
    Passage(
        habit=Habit.ANY_TITLE,
        question="Who planted the king's oak?",
        documents=(("Old trees", "Nora Finch planted the king's oak."),),
        naive="Nora Finch",
        taught="Old trees",
    ),
    Passage(
        habit=Habit.SENTENCE,
        question="Who planted the king's oak?",
        documents=(("Old trees", "Nora Finch planted the king's oak. It still stands."),),
        naive="Nora Finch",
        taught="Nora Finch planted the king's oak.",
    ),
    Passage(
        habit=Habit.UNKNOWN,
        question="Who planted the king's famous oak behind the chapel?",
        documents=(("Old trees", "Nora Finch planted an oak."),),
        naive="Nora Finch",
        taught="unknown",
    ),
)
