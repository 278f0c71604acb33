"""Answers of which the truth is known, for `universal_verifier.py`: sums made from a seed, and facts written by hand.

Every task has two right answers, one as the reference has it and one in other words, and two wrong ones that look
alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.rewards.universal.simulated import SAME

SUMS = 60
SEED = 11

FACTS = """\
How many legs does a spider have? | eight | It walks on eight legs. | It has six legs. | Spiders have ten legs.
Which planet is nearest to the Sun? | Mercury | That would be Mercury. | Venus is the nearest. | Mars
What is the capital of Norway? | Oslo | Norway is governed from Oslo. | Bergen | The capital is Stockholm.
Which gas do plants take in to grow? | carbon dioxide | They take in CO2. | Oxygen | Plants take in nitrogen.
How many minutes are in a day? | 1440 | One thousand four hundred and forty minutes. | 1400 | It is 2440 minutes.
Who wrote Hamlet? | William Shakespeare | The play is by Shakespeare. | Christopher Marlowe | Ben Jonson wrote it.
What is frozen water called? | ice | We call it ice. | steam | It is called snowmelt.
Which metal is liquid at room temperature? | mercury | Quicksilver, that is mercury. | lead | Tin is liquid then.
How many sides has a hexagon? | six | A hexagon is bounded by 6 sides. | 8 | It has five sides.
Which ocean lies between Africa and Australia? | the Indian Ocean | It is the Indian one. | Pacific | The Atlantic Ocean
What do caterpillars become? | butterflies or moths | A butterfly, or a moth. | beetles | They become dragonflies.
Which organ pumps blood? | the heart | Blood is driven by the heart. | the liver | The lungs pump it.
How many strings has a violin? | four | There are 4 strings on it. | 6 | A violin has five strings.
In which year did the First World War begin? | 1914 | It began in the summer of 1914. | 1918 | It broke out in 1941.
What is the square root of 81? | 9 | Nine, because 9 times 9 is 81. | 8 | It equals 7.
Which language is spoken in Brazil? | Portuguese | Brazilians speak Portuguese. | Spanish | They speak French there.
What is the largest mammal? | the blue whale | No mammal is larger than the blue whale. | the elephant | The sperm whale
Which vitamin does sunlight help to make? | vitamin D | The skin makes D with it. | vitamin C | It is vitamin A.
How many bones has an adult human? | 206 | Two hundred and six. | 260 | There are 306 bones.
What is the chemical sign of gold? | Au | Chemists write Au. | Ag | It is written Go.
Which river flows through Cairo? | the Nile | Cairo lies on the Nile. | the Niger | The Congo flows there.
At how many degrees Celsius does water boil at sea level? | 100 | A hundred degrees. | 90 | It boils at 212 degrees.
Which instrument measures temperature? | a thermometer | One reads it from a thermometer. | a barometer | A hygrometer
How many players has a football team on the pitch? | eleven | 11, the keeper included. | 10 | Twelve players.
What is the longest side of a right triangle? | the hypotenuse | We call it hypotenuse. | the leg | The adjacent side
What is the hardest natural mineral? | diamond | None is harder than a diamond. | quartz | Topaz is the hardest.
Which season follows winter in Europe? | spring | After it comes spring. | autumn | Summer follows it.
How many hours is Tokyo ahead of UTC? | nine | It is 9 hours ahead. | seven | Tokyo is 19 hours ahead.
What do bees make from nectar? | honey | They turn it into honey. | milk | Bees make jam of it.
Which bird cannot fly and lives in Antarctica? | the penguin | Penguins are such birds. | the albatross | The puffin
What is three quarters as a decimal? | 0.75 | Written so it is .75 | 0.34 | It is 0.7
How many continents are there in the usual count? | seven | One counts 7 of them. | nine | There are six hundred.
Which animal gives wool? | the sheep | Wool comes from sheep. | the goose | It comes from the trout.
What is the past tense of "go"? | went | One says "went". | goed | It is "gone away".
Which colour do blue and yellow paint give? | green | Mixed, they turn green. | purple | They give orange.
How many degrees has a right angle? | 90 | Ninety of them. | 45 | It measures 180 degrees.
What do you call a baby kangaroo? | a joey | It is known as a joey. | a cub | It is called a foal.
Which country has Lisbon as its capital? | Portugal | Lisbon is the capital of Portugal. | Spain | It is Brazil.
What force keeps us on the ground? | gravity | We are held by gravity. | magnetism | It is air pressure alone.
Which part of the plant is in the soil? | the root | Its roots are down there. | the leaf | The blossom is.
"""


@dataclass(frozen=True)
class Item:
    """One answer, and whether it is right."""

    question: str
    reference: str
    answer: str
    is_right: bool
    check: dict[str, Any] | None = None

    def group(self) -> TrajectoryGroup:
        messages = [{"role": "user", "content": self.question}, {"role": "assistant", "content": self.answer}]
        metadata = {"question": self.question, "reference": self.reference}
        if self.check:
            metadata["check"] = self.check
        return TrajectoryGroup([Trajectory(messages_and_choices=messages)], metadata=metadata)


def items() -> list[Item]:
    """All of them: four a task."""
    rng = random.Random(SEED)
    return [item for _ in range(SUMS) for item in _sum(rng)] + [
        item for f in FACTS.splitlines() for item in _fact(f)
    ]


def _sum(rng: random.Random) -> list[Item]:
    a, b, c = rng.randint(12, 99), rng.randint(3, 19), rng.randint(101, 400)
    question, value = rng.choice(
        [
            (f"A box holds {a} nails. How many nails are in {b} boxes?", a * b),
            (f"From {c + a} seats {a} are taken. How many are free?", c),
            (f"A hall has {c} chairs and gets {a} more. How many has it then?", c + a),
            (f"{a * b} coins are shared among {b} people. How many does each get?", a),
        ]
    )
    near, far = value + rng.choice([-10, -1, 1, 10]), value * 2 + rng.randint(3, 9)
    said = [(str(value), True), (f"Worked out step by step, that makes {value} in all.", True),
            (str(near), False), (f"Worked out step by step, that makes {far} in all.", False)]  # fmt: skip
    # Only what is a bare number can be checked without a box.
    check = {"kind": "regex", "reference": rf"(?s)(.*\D)?{value}(\D.*)?"}
    return [Item(question, str(value), text, is_right, check) for text, is_right in said]


def _fact(line: str) -> list[Item]:
    question, reference, *answers = (part.strip() for part in line.split(" | "))
    right, near, far = answers
    said = [(reference, True), (right, True), (near, False), (far, False)]
    return [Item(question, reference, text, is_right) for text, is_right in said]


def truth_of(everything: list[Item]) -> Any:
    """What the simulated judge knows: of the reference and of the criteria of `universal_verifier.RUBRIC`."""
    known = {(item.question, item.answer): item.is_right for item in everything}
    by_question = {item.question for item in everything}

    def truth(statement: str, task: str, answer: str) -> bool:
        question = next((q for q in by_question if q in task), "")
        is_right = known.get((question, answer), False)
        return is_right if statement == SAME or "result" in statement else True

    return truth


NOT_FORESEEN = (
    "I will now solve this.", "Okay.", "First, consider the problem.", "See above.", "As an AI,", "It depends.",
    "The solution follows below:", "Let me work through the numbers carefully.", "This is a multiplication problem.",
    "Step 1: Identify what is given.", "The correct answer is provided below.", "<answer></answer>", r"\boxed{}",
    "We are asked for the number.", "Great question!",
)  # fmt: skip
"""Written after the gate, and nothing was changed for them."""


def master_keys(question: str) -> list[str]:
    """Thirty answers that say nothing, by kind: signs, openers, echoes, beginnings."""
    words = question.split()
    signs = ["", " ", ".", ":", ",", "!?", "...", "-"]
    openers = ["Thought process:", "Solution", "Solution:", "Let's solve this step by step.", "The answer is",
               "Answer:", "Final answer:", "Sure, here is the answer:"]  # fmt: skip
    echoes = [question, question.lower(), question.rstrip("?."), f"Question: {question}", f"You asked: {question}",
              f"{question} Let me think about this.", " ".join(words[: max(5, int(0.8 * len(words)))])]  # fmt: skip
    beginnings = ["To answer this, we first look at the", "The result of this is found by",
                  "As is well known, it is the", "Counting them one by one, we get the", r"So we find \boxed{",
                  "Here are the steps:", "We write this down as x ="]  # fmt: skip
    return [*signs, *openers, *echoes, *beginnings]
