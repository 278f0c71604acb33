"""Chat messages -> token ids, through the model's own chat template.

The template is the authority for what the model reads. What it cannot take is first put into a form
that it can (see `conversation.py`); what it refuses even then is a `ModelError`. Control tokens that
somebody typed stay text (see `exact_text.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from groundrule.data.messages import Message, Tools, is_choice, message_of
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ModelError
from groundrule.models.conversation import (
    Change,
    calls_as_text,
    forms,
    plain_messages,
    results_as_user_turns,
    system_in_user_turn,
)
from groundrule.models.exact_text import ExactText


@dataclass(frozen=True)
class RenderedTurn:
    """A prompt as the policy reads it, and the assistant turn that followed, end marker included."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]


class ChatRenderer:
    """Renders conversations for one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def prompt_ids(self, messages: Sequence[Message], tools: Tools | None = None) -> list[int]:
        """Ids of the conversation with the head of the next assistant turn.

        The template decides about the begin token, so there is never a second one. Raises
        `ModelError` when there is no template, or when it refuses the conversation.
        """
        return self._text.ids(self._prompt(self._plain(messages), tools))

    def text_ids(self, text: str) -> list[int]:
        """Ids of an answer's text, cut as it would be behind a prompt; typed control tokens stay text."""
        return self._text.ids_after_prompt(self._text.typed(text))

    def turns(self, trajectory: Trajectory) -> list[list[RenderedTurn]]:
        """Every assistant turn, by conversation, each after the prompt that the endpoint would have shown.

        Stored ids are taken where a `Choice` carries them. Other turns are written as the template
        writes them, but with their text untouched: a template that trims, or that drops thinking
        from earlier turns, does not change what is trained on.
        """
        histories = [(trajectory.messages_and_choices, trajectory.tools)]
        histories += [(h.messages_and_choices, h.tools) for h in trajectory.additional_histories]
        return [self._conversation_turns(items, tools) for items, tools in histories]

    def _conversation_turns(self, items: Sequence[Any], tools: Tools | None) -> list[RenderedTurn]:
        messages = self._plain([message_of(item) for item in items])
        found = []
        for index, (item, message) in enumerate(zip(items, messages, strict=True)):
            if message["role"] != "assistant":
                continue
            prompt, answer = getattr(item, "prompt_token_ids", None), getattr(item, "token_ids", None)
            if is_choice(item) and prompt is not None and answer:
                found.append(RenderedTurn(tuple(prompt), tuple(answer)))
            else:
                found.append(self._written_turn(messages[:index], message, tools))
        return found

    def _written_turn(self, before: list[Message], message: Message, tools: Tools | None) -> RenderedTurn:
        """The turn's own text between the head that the prompt ends with and the end marker."""
        mark, content = self._text.mark, message["content"]
        has_more = bool(message.keys() - {"role", "content", "name"})
        prompt = self._prompt(before, tools)
        marked = {**message, "content": mark if content or not has_more else ""}
        whole = self._render([*before, marked], tools)
        # What stands before the text belongs to the turn only where the message itself holds it
        # (a call, reasoning); otherwise it is the template's ornament, which was never sampled.
        start = len(prompt) if has_more else whole.find(mark)
        if (has_more and not whole.startswith(prompt)) or (marked["content"] and mark not in whole):
            raise ModelError(f"{self._name} does not write message {len(before)} behind its own prompt")
        body = self._until_end(whole[start:])
        return RenderedTurn(
            tuple(self._text.ids(prompt)), tuple(self._text.ids_after_prompt(body.replace(mark, content)))
        )

    def _until_end(self, text: str) -> str:
        """The text up to its end marker; the marker is added where the template writes none."""
        place = text.find(self._end_marker)
        return (text if place < 0 else text[:place]) + self._end_marker

    def _plain(self, messages: Sequence[Message]) -> list[Message]:
        plain: list[Message] = self._text.typed(
            plain_messages(messages, has_developer="developer" in self._template)
        )
        return plain

    def _prompt(self, messages: list[Message], tools: Tools | None) -> str:
        text = self._render(messages, tools, opens=True)
        if self._opens_turns:
            return text
        # No generation prompt: the head of the next turn is what the template writes before its text.
        try:
            longer = self._render([*messages, {"role": "assistant", "content": self._text.mark}], tools)
        except ModelError:
            return text
        head = longer.partition(self._text.mark)[0]
        return head if head.strip() != text.strip() else text

    def _render(self, messages: list[Message], tools: Tools | None, *, opens: bool = False) -> str:
        """The conversation in the first form that the template accepts, as text."""
        refusal: Exception | None = None
        for form in forms(messages, self._required(messages)):
            try:
                return self._apply(form, tools, opens=opens)
            # A template is a foreign program and raises whatever it likes.
            except Exception as error:
                refusal = refusal or error
        raise ModelError(
            f"{self._name} refuses this conversation ({', '.join(m['role'] for m in messages)}): {refusal}"
        ) from refusal

    def _apply(self, messages: list[Message], tools: Tools | None, *, opens: bool = False) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages, tools=self._text.typed(tools), add_generation_prompt=opens, tokenize=False
        )
        return text

    def _required(self, messages: list[Message]) -> list[Change]:
        """Changes without which the template would leave something out in silence."""
        roles = {m["role"] for m in messages}
        required: list[Change] = []
        if any("tool_calls" in m for m in messages) and self._drops_calls:
            required.append(calls_as_text)
        if "tool" in roles and self._drops_results:
            required.append(results_as_user_turns)
        if "system" in roles and self._drops_system:
            required.append(system_in_user_turn)
        return required

    def _drops(self, probe: list[Message], *signs: str) -> bool:
        """True when a conversation is rendered without any of the signs that it holds."""
        try:
            text = self._apply(probe, None)
            return not any(sign in text for sign in signs)
        except Exception:
            return False  # Refused aloud: `_render` finds another form.

    @cached_property
    def _drops_system(self) -> bool:
        return self._drops([{"role": "system", "content": self._text.mark}, _USER], self._text.mark)

    @cached_property
    def _drops_calls(self) -> bool:
        return self._drops([_USER, _call(self._text.mark)], self._text.mark, _ID)

    @cached_property
    def _drops_results(self) -> bool:
        result = {"role": "tool", "tool_call_id": _ID, "name": "f", "content": self._text.mark}
        return self._drops([_USER, _call("f"), result], self._text.mark)

    @cached_property
    def _opens_turns(self) -> bool:
        try:
            return self._render([_USER], None, opens=True) != self._render([_USER], None)
        except ModelError:
            return True

    @cached_property
    def _end_marker(self) -> str:
        """What the template closes an assistant turn with, else the tokenizer's end token."""
        whole = self._render([_USER, {"role": "assistant", "content": self._text.mark}], None)
        marker = self._text.first_control(whole.partition(self._text.mark)[2]) or self.tokenizer.eos_token
        if not marker:
            raise ModelError(f"{self._name} closes no turn and the tokenizer has no end token")
        return str(marker)

    @cached_property
    def _text(self) -> ExactText:
        return ExactText(self.tokenizer)

    @property
    def _name(self) -> str:
        return f"the chat template of {getattr(self.tokenizer, 'name_or_path', '') or 'this tokenizer'}"

    @cached_property
    def _template(self) -> str:
        template = getattr(self.tokenizer, "chat_template", None)
        if not template:
            raise ModelError(
                f"{getattr(self.tokenizer, 'name_or_path', '') or 'this tokenizer'} has no chat template "
                "(tokenizer.chat_template), so conversations cannot be rendered: use an instruction-tuned "
                "model, or set the tokenizer's chat_template"
            )
        return str(template)


_ID = "q9w8e7r6t"
_USER: Message = {"role": "user", "content": "hello"}


def _call(name: str) -> Message:
    function = {"name": name, "arguments": {}}
    call = {"id": _ID, "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}
