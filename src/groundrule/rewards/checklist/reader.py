"""The checklist in place of one overall score: same passes, same merging, other question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from groundrule._util.seed import derive
from groundrule.data.messages import Message, text_of
from groundrule.data.protocols import ChatReply
from groundrule.llm.cache import ReplyCache
from groundrule.rewards.ask import ask
from groundrule.rewards.attempt import Attempt
from groundrule.rewards.calls import Call, Said, fitted_for
from groundrule.rewards.checklist.criteria import Checklist
from groundrule.rewards.checklist.verdicts import Assessment, assess, read_verdicts
from groundrule.rewards.fit import Fitted
from groundrule.rewards.judges import Judge
from groundrule.rewards.prompt import framed
from groundrule.rewards.prompt_files import prompt_text, prompt_version

TOKENS_A_VERDICT = 50
"""An id, a word, and a quote."""


@dataclass(frozen=True)
class ChecklistReader:
    """Asks about every criterion of every attempt shown, and adds up what can be shown by a quote."""

    judges: Sequence[Judge]
    checklist: Checklist
    seed: int
    cache: ReplyCache | bool | None = None
    show_images: bool | None = None

    async def read(self, attempts: Sequence[Attempt], order: Sequence[int], number: int) -> Call:
        """One call; attempts of which too little can be decided are not in its `said`."""
        seed = derive("checklist", self.seed, number)
        shown = [attempts[index] for index in order]

        def read(reply: ChatReply) -> list[Assessment]:
            findings = read_verdicts(reply, len(shown), self.checklist)
            return [assess(f, self.checklist, own_text(a)) for f, a in zip(findings, shown, strict=True)]

        fitted: list[Fitted] = []  # The last one is that of the judge which answered.
        answer = await ask(
            self.judges,
            lambda judge: self._messages(judge, shown, seed, fitted),
            read,
            purpose="judge/checklist",
            cache=self.cache,
            key_parts={"kind": "checklist", "prompt": prompt_version("checklist.md"), "pass": number},
        )
        said = zip(order, answer.value, fitted[-1].elided, strict=True)
        return Call(
            order=list(order),
            said={i: Said(a.value, a.explanation, left) for i, a, left in said if a.value is not None},
            raw=str(answer.reply.content),
            cost_usd=answer.cost_usd,
        )

    def _messages(
        self, judge: Judge, shown: Sequence[Attempt], seed: int, fitted: list[Fitted]
    ) -> list[Message]:
        show_images = judge.takes_images if self.show_images is None else self.show_images
        instructions = prompt_text("checklist.md").replace("{criteria}", str(self.checklist))
        verdicts = len(shown) * len(self.checklist.criteria)
        fitted.append(fitted_for(judge, shown, instructions, reply_tokens=200 + TOKENS_A_VERDICT * verdicts))
        closing = f"Decide every criterion for the trajectories 1 to {len(shown)}."
        content = framed(fitted[-1].attempts, closing, seed=seed, show_images=show_images)
        return [{"role": "system", "content": instructions}, {"role": "user", "content": content}]


def own_text(attempt: Attempt) -> str:
    """What agent and tools contributed: the only text in which evidence counts."""
    turns = [turn for conversation in (attempt.turns, *attempt.histories) for turn in conversation]
    lines: list[str] = []
    for turn in turns:
        if turn["role"] in ("assistant", "tool"):
            calls = [json.dumps(call, ensure_ascii=False) for call in turn.get("calls", [])]
            lines += [text_of(turn["content"]), *calls, str(turn.get("refusal") or "")]
    return "\n".join(line for line in lines if line)
