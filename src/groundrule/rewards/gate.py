"""The gate before the judge: answers that say nothing get the floor and are never shown.

Judges give high scores to empty openers ("Solution:", "Let's solve this step by step.", a lone colon), and
a policy in training finds them. They are short, finitely many in kind, and need no model to be recognised.
The gate must not fire on short true answers: anything with a letter, a digit or a symbol that is not one of
these openers passes. A system prompt that asks for an empty answer, for a single punctuation mark or for
the very word "Solution" needs `gate=False`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

from groundrule.data.messages import text_of
from groundrule.rewards.attempt import Attempt, Turn, shared_len
from groundrule.rewards.neutral import visible

GATED_SCORE = 0.0
"""What a gated attempt gets. It is a score, not "no score": the answer was read, and is worth nothing."""

_OPENERS = """
thought process | thinking process | thinking | reasoning | analysis | explanation | solution | the solution
answer | the answer | the answer is | final answer | the final answer | the final answer is | my answer
response | here is the answer | here is my answer | here is the solution | here's the answer
here's the solution | here is my response | step 1 | step one | first step | introduction | conclusion
summary | sure here is the answer | sure here's the answer | sure here you go | let me think
let me think about this | let me think about it | let's see | let's begin | let's get started | let's start
let me explain | 思考过程 | 思路 | 分析 | 解 | 解答 | 解析 | 解决方案 | 答案 | 答案是 | 回答 | 最终答案
让我想想 | 解题过程 | 推理过程 | 让我们一步一步来解决 | 让我们一步一步地解决这个问题
让我们逐步解决这个问题 | 让我们逐步思考 | 让我们一步一步思考 | 思考過程 | 解説 | かいせつ | 答え | 回答は
答えは | 解決策 | ステップバイステップで考えましょう | 順を追って考えましょう | 一歩ずつ解いていきましょう
풀이 | 해설 | 정답 | 답 | 답변 | 사고 과정 | 단계별로 풀어봅시다 | 단계별로 생각해 봅시다
proceso de pensamiento | razonamiento | solución | respuesta | la respuesta | la respuesta es
respuesta final | explicación | vamos paso a paso | resolvamos esto paso a paso
vamos a resolver esto paso a paso | pensemos paso a paso | processus de réflexion | raisonnement | réponse
la réponse | la réponse est | réponse finale | explication | résolvons cela étape par étape
résolvons ce problème étape par étape | réfléchissons étape par étape | gedankengang | denkprozess
überlegung | lösung | die lösung | lösungsweg | antwort | die antwort | die antwort lautet
endgültige antwort | erklärung | begründung | lass uns das schritt für schritt lösen | schritt für schritt
lösen wir das schritt für schritt | gehen wir schritt für schritt vor | denken wir schritt für schritt
ход мыслей | рассуждение | решение | ответ | итоговый ответ | объяснение | давайте решим это шаг за шагом
давай решим это шаг за шагом | подумаем шаг за шагом | давайте подумаем шаг за шагом
processo de pensamento | raciocínio | solução | resposta | a resposta é | resposta final
vamos resolver isso passo a passo | vamos pensar passo a passo | soluzione | risposta | la risposta
la risposta è | ragionamento | spiegazione | risolviamo passo dopo passo | ragioniamo passo dopo passo
الحل | الإجابة | الجواب | عملية التفكير | हल | उत्तर | समाधान
"""
_STEP_BY_STEP = re.compile(
    r"(?:(?:ok|okay|sure|alright|certainly|of course),? )?"
    r"(?:(?:let'?s|let us|let me|i will|i'll|we will|we'll|we can|i can|to answer this,? (?:let's|we)) )?"
    r"(?:think|work|go|solve|reason|break|analy[sz]e|approach|tackle|answer|do)\b[a-z' ,]{0,60}"
    r"\b(?:step[ -]by[ -]step|one step at a time|carefully)"
)
_MARKUP = re.compile(r"</?[a-zA-Z][^<>\n]{0,40}>|\\(?:boxed|text|begin|end)\b(?:\{[a-z*]*\})?|```\w*")
_SENTENCE_END = re.compile(r"[.!?:;\n。！？：；…।]+")
_WORD = re.compile(r"[a-z0-9']+")
_LONGEST = 400
"""Characters; a longer answer is no mere opener."""


def trivial(attempt: Attempt, question_len: int | None = None) -> str | None:
    """Why the attempt says nothing; None where a judge should read it.

    `question_len` is how many opening turns the attempt was given (see there); None: all before the agent's
    first turn. Any tool call, tool result, refusal, image or other part, and any further conversation in
    which the agent did something, counts as substance.
    """
    start = _given(attempt.turns) if question_len is None else question_len
    own = [turn for turn in attempt.turns[start:] if turn["role"] not in ("user", "system", "developer")]
    if any(_acts(turn) for turns in (own, *attempt.histories) for turn in turns):
        return None
    if any(says_nothing(text_of(turn["content"])) is None for h in attempt.histories for turn in _agent(h)):
        return None
    reasons = [says_nothing(text_of(turn["content"])) for turn in own]
    if not reasons:
        return "the agent gave no answer"
    return None if None in reasons else reasons[-1]


def question_len(attempts: Sequence[Attempt]) -> int:
    """How many opening turns the members of a group were given, as far as one can tell.

    That is what all share, up to the last turn that is not the agent's or a tool's: an attempt's own work
    stays its own even where all members did the same.
    """
    end = shared_len(attempts)
    while end and attempts[0].turns[end - 1]["role"] in ("assistant", "tool"):
        end -= 1
    return end


def _given(turns: Sequence[Turn]) -> int:
    return next((i for i, turn in enumerate(turns) if turn["role"] in ("assistant", "tool")), len(turns))


def _agent(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn["role"] == "assistant"]


def _acts(turn: Turn) -> bool:
    parts = turn["content"] if isinstance(turn["content"], list) else []
    return bool(
        turn["calls"]
        or turn["role"] == "tool"
        or turn.get("refusal")
        or (turn["role"] == "assistant" and any(not text_of([part]) for part in parts))
    )


def says_nothing(text: str) -> str | None:
    """The reason, or None for a text with substance."""
    bare = visible(text).strip()
    if not bare:
        return "the answer is empty"
    if len(bare) > _LONGEST:
        return None
    words = _MARKUP.sub(" ", bare)
    if not any(_is_substance(character) for character in words):
        return f"the answer has no letter, digit or symbol: {bare[:40]!r}"
    pieces = (_plain(piece) for piece in _SENTENCE_END.split(words))
    if all(piece in _openers() or _STEP_BY_STEP.fullmatch(piece) for piece in pieces if piece):
        return f"the answer is only an opener: {bare[:60]!r}"
    return None


def _is_substance(character: str) -> bool:
    """Letters and digits of any script; emoji, check marks and signs such as ∞, which can be an answer."""
    return character.isalnum() or (character > "\x7f" and unicodedata.category(character) in ("So", "Sm"))


@functools.cache
def _openers() -> frozenset[str]:
    return frozenset(_plain(opener) for opener in re.split(r"[|\n]", _OPENERS) if opener.strip())


def _plain(text: str) -> str:
    """Small letters without accents and without what stands around and between the words."""
    if text.isascii():
        return " ".join(_WORD.findall(text.lower()))
    folded = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    letters = [c if c == "'" or _is_substance(c) else " " for c in folded if not unicodedata.combining(c)]
    return " ".join("".join(letters).split())
