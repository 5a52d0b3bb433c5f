"""Three tasks of 40 items whose rules no prompt states: labels, an extraction, and replies that a rubric grades."""

from __future__ import annotations

from itertools import cycle, islice

SPLITS = [*["train"] * 14, *["selection"] * 14, *["test"] * 12]

_DESKS = {
    "tracing": [
        "My order was posted on Monday and has not been delivered yet, the tracking page stands still.",
        "Where is my order? The tracking number shows no movement.",
        "The tracking of order two says delivered, but nothing came.",
        "Your tracking link for my order is empty.",
    ],
    "atelier": [
        "One drawer of the order is scratched, can somebody mend it?",
        "The lamp came with my order and its glass is cracked, please mend it.",
        "The order has a loose leg; I would rather have somebody mend it than send it back.",
        "Can you mend the zip of the bag from my last order?",
    ],
    "stock": [
        "Is the blue chair of my old order still made, or is it discontinued?",
        "I hear that the oak table is discontinued; may I add one to my order?",
        "The shelf in my order was discontinued, what is like it?",
        "Which colours are discontinued this year? I plan an order.",
    ],
    "billing": [
        "The sum on the invoice of my order is too high.",
        "Please send the invoice for my order again.",
        "There are two invoices for one order.",
        "I paid the order twice, see the invoice.",
    ],
}
_CITIES = ["Lyon", "Turin", "Bergen", "Ghent", "Porto", "Graz", "Malmo", "Leeds", "Tartu", "Basel"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def labels() -> list[dict[str, object]]:
    rows = []
    for number, (label, city) in enumerate(islice(zip(cycle(_DESKS), cycle(_CITIES)), 40)):
        text = _DESKS[label][number // 4 % 4]
        task = f"A customer from {city} (house {number + 3}) writes: {text}\n\nName the desk."
        rows.append({"prompt": task, "answer": label})
    return rows


def extraction() -> list[dict[str, object]]:
    rows = []
    for number in range(40):
        day, month, year = 1 + number * 7 % 28, number * 5 % 12, 2019 + number % 6
        kilograms = (3 + number * 17 % 90) / 10
        date = f"{day} {MONTHS[month]} {year}"
        text = f"Parcel {number + 100} left {_CITIES[number % 10]} on {date} and weighs {kilograms} kg."
        answer = f"{year}-{month + 1:02}-{day:02}, {round(kilograms * 1000)} g"
        rows.append({"prompt": f"{text}\n\nTake down date and weight.", "answer": answer, "check": "exact"})
    return rows


ASKED = "\n\nReply to the customer."


def rubric() -> list[dict[str, object]]:
    criteria = ["It begins with a greeting.", "It names the case.", "It says by when the customer hears from us."]
    texts = [text for messages in _DESKS.values() for text in messages]
    return [
        {
            "prompt": f"{texts[number % 16]} (CASE-{4100 + number * 13}, {_CITIES[number % 10]}){ASKED}",
            "check": {"type": "judge", "criteria": criteria},
        }
        for number in range(40)
    ]


SEEDS = {
    "labels": "Name the desk that a message goes to.",
    "extraction": "Take down the date and the weight of a parcel.\n\n- Write dates as DD.MM.YYYY.",
    "rubric": "Reply to a customer.",
}
TASKS = {"labels": labels, "extraction": extraction, "rubric": rubric}
