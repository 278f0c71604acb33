"""The built-in set "pydoc": questions about the running Python's own language reference.

Python carries its reference as plain text (what `help("with")` prints). Each section and each
described method becomes one scenario: a question made from its title, and its opening prose as the
retrieved passage. There is no reference answer; the passage is all that is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from groundrule._util.seed import derive
from groundrule.data.scenario import Scenario, Split
from groundrule.errors import DataError

SYSTEM_PROMPT = (
    "You are a documentation assistant for Python programmers. Answer the question from the retrieved "
    "passage alone, in at most three sentences of your own. Keep the names of functions, types and "
    "keywords exactly as the passage writes them. If the passage does not answer the question, say: "
    "I can't find that in the documents."
)

MIN_WORDS, ENOUGH_WORDS, MAX_WORDS = 60, 90, 180

_UNDERLINE = re.compile(r"([*=\-~^])\1{2,}")
_METHOD = re.compile(r"([A-Za-z_]\w*\.\w+)\(.*\)")
_ITEM = re.compile(r"(?:[*-]|\d+\.) ")
_TABLE = re.compile(r"[|+]|-{3,} +-{3,}")
_ASIDE = re.compile(r"(?:New|Changed|Deprecated|Added) (?:in|since) version|Note:|See also|Warning:")
_INTRODUCES = re.compile(r"\b(?:following|follows|this|syntax|examples?)\b[^.]*:$", re.IGNORECASE)
_SENTENCE_GAP = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\)))(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z(\"“])")
_ENDS = re.compile(r"[.!?:;][)\"”]*$")
_NEEDS_TABLE = re.compile(r"\b(?:following|the|this) table\b", re.IGNORECASE)
_HEADING_WORD = re.compile(r"\(?[A-Z][a-z]+(?:-[A-Za-z][a-z]+)*[,)]?")
_PROPER = {"None", "Ellipsis", "Python", "Unicode", "Boolean"}

_STATEMENT_FORMS = (
    "How does {title} work in Python?",
    "What does {title} do in Python?",
    "What should I know about {title} in Python?",
)
_SECTION_FORMS = (
    "What does Python's documentation say about {title}?",
    "Can you explain {title} in Python?",
    "What should I know about {title} in Python?",
    "What are the main points about {title} in Python?",
)
_METHOD_FORMS = (
    'What does "{title}()" do in Python?',
    'What is "{title}()" for in Python?',
    'Can you explain "{title}()" in Python?',
)


@dataclass
class _Unit:
    """A titled piece of a topic, and the prose at its own indentation; None marks skipped blocks."""

    title: str
    is_method: bool = False
    paragraphs: list[str | None] = field(default_factory=list)


def pydoc_scenarios() -> list[Scenario]:
    """Scenarios from the documentation that comes with the running Python.

    Ids and splits come from topic and title, so they are the same on every machine; another Python
    version may word a passage differently.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise DataError(
            "this Python comes without its documentation texts (module pydoc_data.topics), which the "
            'built-in set "pydoc" reads; use a Python from python.org or the built-in set "support"'
        ) from error
    return scenarios_from_topics(topics)


def scenarios_from_topics(topics: Mapping[str, str]) -> list[Scenario]:
    """Cut topics into scenarios, in order of topic name.

    Topics repeat each other's sections. The shortest topic keeps a repeated one, so that no passage
    is in both splits.
    """
    seen: set[str] = set()
    by_topic: dict[str, list[Scenario]] = {}
    for topic in sorted(topics, key=lambda name: (len(topics[name]), name)):
        by_topic[topic] = []
        for unit in _units(topics[topic]):
            passage = _passage(unit.paragraphs)
            scenario = _scenario(topic, unit, passage)
            lines = passage.split("\n")
            if len(passage.split()) < MIN_WORDS or seen.intersection(
                [*lines, scenario.question, scenario.id]
            ):
                continue
            seen.update([*lines, scenario.question, scenario.id])
            by_topic[topic].append(scenario)
    return [scenario for topic in sorted(by_topic) for scenario in by_topic[topic]]


def _scenario(topic: str, unit: _Unit, passage: str) -> Scenario:
    name = "-".join(re.findall(r"\w+", unit.title.lower()))
    split: Split = "held-out" if derive("pydoc split", topic) % 4 == 0 else "train"
    return Scenario(
        id=f"pydoc-{topic}-{name}",
        system=SYSTEM_PROMPT,
        question=_question(unit),
        context=passage,
        split=split,
        metadata={"topic": topic, "section": unit.title},
    )


def _question(unit: _Unit) -> str:
    if unit.is_method:
        forms: Sequence[str] = _METHOD_FORMS
    else:
        forms = _STATEMENT_FORMS if unit.title.endswith(" statement") else _SECTION_FORMS
    form = forms[derive("pydoc question", unit.title) % len(forms)]
    return form.format(title=unit.title if unit.is_method else _inside_a_sentence(unit.title))


def _inside_a_sentence(title: str) -> str:
    """The title without capitals that only a heading needs: `Numeric literals` -> `numeric literals`."""
    words = [
        word.lower() if _HEADING_WORD.fullmatch(word) and word not in _PROPER else word
        for word in title.split(" ")
    ]
    article = "the " if title.endswith('" clause') else ""
    return article + " ".join(words)


def _units(text: str) -> list[_Unit]:
    units: list[_Unit] = []
    collecting = heading = ""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if len(lines) == 2 and _UNDERLINE.fullmatch(lines[1]):
            title = _plain(lines[0])
            units.append(_Unit(f"{heading} ({title.lower()})" if title == "Overview" else title))
            collecting, heading = "section", title
        elif method := _METHOD.fullmatch(block):
            units.append(_Unit(method[1], is_method=True))
            collecting = "method"
        elif block.startswith("-[") or (collecting == "method" and not block.startswith(" ")):
            collecting = ""  # Footnotes, or text after the last method: it has no title of its own.
        elif collecting:
            units[-1].paragraphs.append(_prose(lines, indent=3 if collecting == "method" else 0))
    return units


def _prose(lines: list[str], *, indent: int) -> str | None:
    """One paragraph on one line, or None for code, grammar, tables and version notes."""
    margin = " " * indent
    first = lines[0].removeprefix(margin)
    inside = lines[0].startswith(margin) and not first.startswith(" ")
    if not inside or _TABLE.match(first) or _ASIDE.match(first) or "::=" in "".join(lines):
        return None
    if len(lines) > 1 and not _ITEM.match(first) and any(line.startswith(margin + "  ") for line in lines):
        return None
    text = " ".join(line.strip() for line in lines)
    if _NEEDS_TABLE.search(text) or not (_ITEM.match(text) or _ENDS.search(_plain(text))):
        return None
    return _plain(re.sub(r"(?<=\w)- (?=\w)", "-", text))


def _plain(text: str) -> str:
    """Without emphasis marks and footnote numbers."""
    text = re.sub(r"\s+\[\d+\](?=\W|$)", "", text)
    text = re.sub(r"\*\*(\w[^*]*)\*\*", r"\1", text)
    text = re.sub(r"(?<![\w*\"'])\*(\w[^*\"]*)\*(?![\w*])", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"^\* ", "- ", text)).strip()


def _passage(paragraphs: Sequence[str | None]) -> str:
    """The opening prose, one paragraph a line, up to `MAX_WORDS`."""
    kept: list[str] = []
    words = 0
    for paragraph, following in pairwise([*paragraphs, None]):
        if words >= ENOUGH_WORDS or (paragraph is None and words >= MIN_WORDS):
            break
        if paragraph is None:
            continue
        introduces_items = following is not None and _ITEM.match(following)
        text = paragraph if introduces_items else _without_introduction(paragraph)
        fitting = _sentences_within(text, MAX_WORDS - words)
        kept.extend([fitting] if fitting else [])
        words += len(fitting.split())
        if fitting != text:
            break
    return "\n".join(kept)


def _without_introduction(text: str) -> str:
    """Drop a last sentence that only leads to code which the passage does not show."""
    if not text.endswith(":"):
        return text
    *before, last = _SENTENCE_GAP.split(text)
    only_leads_on = _INTRODUCES.search(last) or len(last.split()) < 6
    return " ".join(before if only_leads_on else [*before, last[:-1] + "."])


def _sentences_within(text: str, limit: int) -> str:
    kept: list[str] = []
    for sentence in _SENTENCE_GAP.split(text):
        limit -= len(sentence.split())
        if limit < 0:
            break
        kept.append(sentence)
    return " ".join(kept)
