"""Chat messages -> token ids, through the model's own chat template.

The template is the authority for what the model reads. What it cannot take is first put into a form
that it can (see `conversation.py`); what it refuses even then is a `ModelError`. Control tokens that
somebody typed stay text (see `exact_text.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from groundrule.data.messages import Message, Tools, is_choice, message_of
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ModelError
from groundrule.models.conversation import FORMS, changed, marked, plain_messages, shape_of
from groundrule.models.exact_text import ExactText

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RenderedTurn:
    """A prompt as the policy reads it, and the assistant turn that followed, end marker included."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]


class ChatRenderer:
    """Renders conversations for one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._shown: dict[tuple[Any, ...], bool] = {}

    def prompt_ids(self, messages: Sequence[Message], tools: Tools | None = None) -> list[int]:
        """Ids of the conversation with the head of the next assistant turn.

        The template decides about the begin token, so there is never a second one. Raises
        `ModelError` when there is no template, or when it refuses the conversation.
        """
        if tools and not self._knows_tools:
            logger.warning("%s shows no tools, so the model does not hear of those given here", self._name)
            self._knows_tools = True  # Said once.
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
        shown = {**message, "content": mark if content or not has_more else ""}
        whole = self._render([*before, shown], tools)
        start = self._start_of_turn(whole, prompt, before, tools) if has_more else whole.find(mark)
        if start < 0 or (shown["content"] and mark not in whole):
            raise ModelError(f"{self._name} does not write message {len(before)} behind its own prompt")
        body = self._until_end(whole[start:])
        return RenderedTurn(
            tuple(self._text.ids(prompt)), tuple(self._text.ids_after_prompt(body.replace(mark, content)))
        )

    def _start_of_turn(self, whole: str, prompt: str, before: list[Message], tools: Tools | None) -> int:
        """Where a turn with calls or reasoning begins in the rendered conversation; -1 if that cannot be told.

        What the template writes before any text (an empty thinking block, say) was never sampled.
        """
        heads = [self._render([*before, self._marked_turn], tools).partition(self._text.mark)[0], prompt]
        return next((len(head) for head in heads if whole.startswith(head)), -1)

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
            head = self._render([*messages, self._marked_turn], tools).partition(self._text.mark)[0]
        except ModelError:
            return text
        # Not where the template shows less of the conversation then, or adds only a space.
        return head if head.startswith(text) and head.strip() != text.strip() else text

    def _render(self, messages: list[Message], tools: Tools | None, *, opens: bool = False) -> str:
        """The conversation in the first form that the template accepts, as text."""
        refusal: Exception | None = None
        tried: list[list[Message]] = []
        for changes in FORMS:
            form = changed(messages, changes)
            if form in tried:
                continue
            tried.append(form)
            try:
                text = self._apply(form, tools, opens=opens)
                if self._shows_all(form, tools):
                    return text
            # A template is a foreign program and raises whatever it likes.
            except Exception as error:
                refusal = refusal or error
        reason = refusal or "it leaves messages out"
        raise ModelError(
            f"{self._name} refuses this conversation ({', '.join(m['role'] for m in messages)}): {reason}"
        ) from refusal

    def _apply(self, messages: list[Message], tools: Tools | None, *, opens: bool = False) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages, tools=self._text.typed(tools), add_generation_prompt=opens, tokenize=False
        )
        return text

    def _shows_all(self, form: list[Message], tools: Tools | None) -> bool:
        """False when the template leaves a text, a tool result or a call out in silence.

        Found out once for each shape of conversation.
        """
        shape = (shape_of(form), bool(tools))
        if shape not in self._shown:
            probe, marks = marked(form, self._text.mark)
            text = self._apply(probe, tools) if marks else ""
            self._shown[shape] = all(mark in text for mark in marks)
        return self._shown[shape]

    @property
    def _marked_turn(self) -> Message:
        return {"role": "assistant", "content": self._text.mark}

    @cached_property
    def _opens_turns(self) -> bool:
        try:
            return self._render([_USER], None, opens=True) != self._render([_USER], None)
        except ModelError:
            return True

    @cached_property
    def _knows_tools(self) -> bool:
        function = {
            "name": self._text.mark,
            "description": "",
            "parameters": {"type": "object", "properties": {}},
        }
        try:
            return self._text.mark in self._apply([_USER], [{"type": "function", "function": function}])
        except Exception:
            return True  # Refused aloud, or it wants other tools than this one.

    @cached_property
    def _end_marker(self) -> str:
        """What the template closes an assistant turn with, else the tokenizer's end token."""
        whole = self._render([_USER, self._marked_turn], None)
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


_USER: Message = {"role": "user", "content": "hello"}
