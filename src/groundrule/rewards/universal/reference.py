"""The second layer: does the answer say what the reference says?

Equal after normalisation is right. What is not equal is often right in other words, so a judge has a second look,
several times, and every "same" must come with words of the answer that say it: words that do not stand there make it a
"different".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.messages import Message
from groundrule.data.protocols import ChatReply
from groundrule.data.score import total_cost
from groundrule.errors import JudgeError, LlmError
from groundrule.llm.cache import ReplyCache
from groundrule.rewards.ask import Reading, ask
from groundrule.rewards.attempt import Attempt, shared_len
from groundrule.rewards.calls import fitted_for
from groundrule.rewards.checklist.verdicts import verdict_and_quote
from groundrule.rewards.judges import Judge
from groundrule.rewards.parse import reply_object
from groundrule.rewards.prompt import framed, object_schema, reply_format
from groundrule.rewards.prompt_files import prompt_text, prompt_version
from groundrule.rewards.universal.case import Case, stands_in
from groundrule.rewards.universal.verdict import Verdict, majority
from groundrule.rewards.verifiers.exact import verify_exact

T = TypeVar("T")
Said = Literal["same", "different", "unclear"]

_FILE = "universal_reference.md"
_CLOSING = "Does the ANSWER say the same as the REFERENCE? Quote the words of the ANSWER that decide it."
_REPLY_TOKENS = 400
LONGEST_QUOTE = 300
"""Characters, for judges that are held to a schema: a weak one does not know when to stop."""


@dataclass(frozen=True)
class Vote:
    """One reading."""

    said: Said
    quote: str


def references_of(metadata: Mapping[str, Any]) -> list[str]:
    """The texts of which any is right; none where the reference is something else, such as a schema."""
    reference = metadata.get("reference")
    several = reference if isinstance(reference, list | tuple) else [reference]
    known = [str(one) for one in several if isinstance(one, str | int | float) and not isinstance(one, bool)]
    return [text for text in known if text.strip()] if len(known) == len(several) else []


def equals_reference(case: Case, references: Sequence[str]) -> bool:
    """Whether the whole answer is one of the references, after normalisation."""
    return verify_exact(case.answer, references).value == 1.0


def read_vote(reply: ChatReply) -> Vote:
    """The vote in a reply; raises `JudgeReplyError`."""
    return Vote(*verdict_and_quote(reply_object(reply, "verdict"), get_args(Said)))


@dataclass(frozen=True)
class ReferenceLayer:
    """Asks a judge several times, with the two texts in changing order."""

    judges: Sequence[Judge]
    votes: int = 3
    seed: int = 0
    cache: ReplyCache | bool | None = None

    async def verdict(self, case: Case, references: Sequence[str]) -> Verdict:
        """On one answer that is not equal to a reference."""
        results = await settle([self.vote(case, references, number) for number in range(self.votes)])
        readings, failed = readable(results)
        return self._counted(case, readings, failed)

    def _counted(
        self, case: Case, readings: Sequence[Reading[Vote]], failed: Sequence[BaseException]
    ) -> Verdict:
        votes = [_decided(reading.value, case.answer) for reading in readings]
        found = majority(votes, self.votes)
        yes, no = votes.count(True), votes.count(False)
        shown = [r.value.quote for r, v in zip(readings, votes, strict=True) if v]
        invented = sum(r.value.said == "same" for r in readings) - yes
        parts = {"votes/same": float(yes), "votes/different": float(no)}
        if invented:
            parts["votes/invalid_quote"] = float(invented)
        more = f" ({invented} of these said so with a quote that is not in the answer)" if invented else ""
        said = f"{yes} of {self.votes} votes say that it is the reference in other words, {no} that it is not{more}"
        values = [None if vote is None else float(vote) for vote in votes]
        cost = None if failed else total_cost([reading.cost_usd for reading in readings])
        if found is None:
            why = f"; {failed[0]}" if failed else ""
            return Verdict.abstain(
                f"the votes on the reference do not decide: {yes} same, {no} different of {self.votes}{why}",
                "reference",
                explanation=said,
                parts=parts,
                readings=values,
                calls=self.votes,
                cost_usd=cost,
            )
        agreeing = (yes if found else no) / (yes + no)
        return Verdict(
            score=float(found),
            layer="reference",
            reliability=agreeing if self.votes > 1 else None,
            evidence=tuple(dict.fromkeys(shown)) if found else (),
            explanation=said,
            parts=parts,
            readings=tuple(values),
            calls=self.votes,
            cost_usd=cost,
        )

    async def vote(self, case: Case, references: Sequence[str], number: int) -> Reading[Vote]:
        """One reading, as the judge gives it; raises `JudgeError` or `LlmError`."""
        seed = derive("vote", self.seed, number, case.attempt.key)
        judges = [told(judge, _schema, seed, is_drawn=self.votes > 1) for judge in self.judges]
        return await ask(
            judges,
            lambda judge: self.messages(judge, case, references, number),
            read_vote,
            purpose="judge/reference",
            cache=self.cache,
            key_parts={"kind": "reference", "prompt": prompt_version(_FILE), "vote": number},
        )

    def messages(self, judge: Judge, case: Case, references: Sequence[str], number: int) -> list[Message]:
        """What a judge is shown; in every other vote the reference stands first."""
        instructions = prompt_text(_FILE)
        text = "\n\nor: ".join(references)
        opening = case.attempt.turns[: case.given]
        reference = Attempt(
            turns=(*opening, {"role": "assistant", "content": text, "calls": []}), tools=case.attempt.tools
        )
        fitted = fitted_for(judge, [case.attempt, reference], instructions, reply_tokens=_REPLY_TOKENS)
        shown = dict(zip(("ANSWER", "REFERENCE"), fitted.attempts, strict=True))
        names = list(shown)[:: -1 if number % 2 else 1]
        content = framed(
            [shown[name] for name in names],
            _CLOSING,
            seed=derive("reference", self.seed, number),
            show_images=judge.takes_images,
            names=names,
            # All but its last turn, which is the reference: said, because an answer may be the same text.
            given=min(shared_len(fitted.attempts), len(shown["REFERENCE"].turns) - 1),
        )
        return [{"role": "system", "content": instructions}, {"role": "user", "content": content}]


def readable(results: Sequence[T | BaseException]) -> tuple[list[T], list[BaseException]]:
    """The readings, and what went wrong with the others; what is not the judge's fault is raised."""
    failed = [result for result in results if isinstance(result, BaseException)]
    for error in failed:
        if not isinstance(error, JudgeError | LlmError):
            raise error
    return [result for result in results if not isinstance(result, BaseException)], failed


def _decided(vote: Vote, answer: str) -> bool | None:
    if vote.said == "unclear":
        return None
    return vote.said == "same" and stands_in(vote.quote, answer)


def _schema(is_exact: bool) -> dict[str, Any]:
    quote = {"type": "string", "maxLength": LONGEST_QUOTE} if is_exact else {"type": "string"}
    return reply_format(
        "vote", object_schema(quote=quote, verdict={"type": "string", "enum": list(get_args(Said))})
    )


def told(judge: Judge, schema: Any, seed: int, *, is_drawn: bool = True) -> Judge:
    """The judge with what every reading asks for, unless its own parameters say otherwise.

    Several readings are drawn, each with a seed of its own: a judge that always answers the same would vote only once.
    `schema` gives the response format, exact for clients that keep to any; a judge with `response_format` None is
    asked without.
    """
    exact = bool(getattr(judge.client, "keeps_schemas", False))
    drawn = {"temperature": 1.0, "seed": seed >> 32} if is_drawn else {}
    params = {**drawn, "response_format": schema(exact), **judge.params}
    return replace(judge, params={name: value for name, value in params.items() if value is not None})
