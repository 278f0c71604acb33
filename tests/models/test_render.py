"""Conversations become token ids as the model's template wants it, and nothing is lost, forged or doubled."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat.chat_completion import Choice

from groundrule.data.trajectory import Trajectory
from groundrule.errors import ModelError
from groundrule.models.render import ChatRenderer
from tiny_tokenizers import SPECIALS, drift, metaspace, newline_merging, wrapped

WEATHER = '{"city": "Paris"}'


def renderer(template: str | None = "chatml", backend: Any = None, **more: Any) -> ChatRenderer:
    return ChatRenderer(wrapped(backend or drift(), template, **more))


def shown(template: str | None, *messages: dict[str, Any], tools: Any = None) -> str:
    """What the model reads, as text."""
    r = renderer(template)
    return str(r.tokenizer.decode(r.prompt_ids(messages, tools)))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def calling(arguments: Any, name: str = "get_weather", call_id: str = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return assistant("", tool_calls=[{"id": call_id, "type": "function", "function": function}])


def turns(template: str, *items: Any, backend: Any = None) -> list[tuple[str, str]]:
    """Every assistant turn as (prompt, trained text)."""
    r = renderer(template, backend)
    found = r.turns(Trajectory(messages_and_choices=list(items)))[0]
    return [(r.tokenizer.decode(t.prompt_ids), r.tokenizer.decode(t.answer_ids)) for t in found]


# What the template is given


def test_the_prompt_ends_with_the_head_of_the_next_turn() -> None:
    assert shown("chatml", user("hi")) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_a_list_of_text_parts_is_text() -> None:
    text = shown("chatml", user([{"type": "text", "text": "hi "}, {"type": "text", "text": "there"}]))

    assert text.startswith("<|im_start|>user\nhi there<|im_end|>")


def test_an_image_is_refused_by_name_and_not_left_out_in_silence() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    with pytest.raises(ModelError, match="message 0 holds an image"):
        shown("chatml", user([image, {"type": "text", "text": "what is it?"}]))


@pytest.mark.parametrize("content", [{"content": None}, {}])
def test_content_that_is_null_or_absent_renders_as_empty(content: dict[str, Any]) -> None:
    call = {**calling(WEATHER), **content}
    if not content:
        del call["content"]

    text = shown("concat", user("w?"), call)

    assert "<|im_start|>assistant\n" in text


def test_null_keys_do_not_reach_the_template() -> None:
    template = "{% for m in messages %}{% for k in m %}[{{ k }}]{% endfor %}{{ m['content'] }}{% endfor %}"

    text = shown(template, {"role": "user", "content": "hi", "name": None, "tool_calls": None})

    assert text.startswith("[role][content]hi")
    assert "name" not in text
    assert "tool_calls" not in text


def test_arguments_in_wire_form_are_encoded_once() -> None:
    text = shown("args_tojson", user("w?"), calling(WEATHER))

    assert '"arguments": {"city": "Paris"}' in text
    assert '\\"city\\"' not in text


def test_a_template_may_walk_the_arguments() -> None:
    assert "<city>Paris</city>" in shown("args_items", user("w?"), calling(WEATHER))


def test_arguments_that_were_cut_keep_their_raw_text() -> None:
    assert '{\\"city\\": \\"Par' in shown("args_tojson", user("w?"), calling('{"city": "Par'))


def test_cut_arguments_reach_a_template_that_walks_them_too() -> None:
    text = shown("args_items", user("w?"), calling('{"city": "Par'))

    assert '<arguments>{"city": "Par</arguments>' in text


@pytest.mark.parametrize("arguments", ["", None, {}])
def test_a_call_without_arguments_has_an_empty_mapping(arguments: Any) -> None:
    assert '"arguments": {}' in shown("args_tojson", user("w?"), calling(arguments))


def test_a_null_inside_the_arguments_is_kept() -> None:
    assert '"arguments": {"city": null}' in shown("args_tojson", user("w?"), calling('{"city": null}'))


def test_arguments_keep_their_letters_and_their_order() -> None:
    text = shown("args_tojson", user("w?"), calling('{"ville": "Orléans", "a": 1}'))

    assert '{"ville": "Orléans", "a": 1}' in text


# Templates that refuse


def test_system_text_goes_into_the_first_user_turn_where_the_template_has_no_system_role() -> None:
    text = shown("no_system", {"role": "system", "content": "Be terse."}, user("hi"))

    assert text.startswith("<|im_start|>user\nBe terse.\n\nhi<|im_end|>")


def test_system_text_that_the_template_would_drop_in_silence_goes_into_the_user_turn() -> None:
    template = (
        "{% for m in messages if m['role'] != 'system' %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    )

    text = shown(template, {"role": "system", "content": "Be terse."}, user("hi"))

    assert text.startswith("user: Be terse.\n\nhi\n")


def test_neighbouring_turns_of_one_role_are_merged_where_the_template_demands_alternation() -> None:
    text = shown("alternate", {"role": "system", "content": "s"}, user("a"), user("b"))

    assert text.startswith("<|im_start|>user\ns\n\na\n\nb<|im_end|>")


def test_a_system_role_and_alternation_may_both_be_missing() -> None:
    template = (
        "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate') }}{% endif %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    )

    text = shown(
        template, {"role": "system", "content": "s"}, user("a"), assistant("x"), user("b"), user("c")
    )

    assert text.startswith("user: s\n\na\nassistant: x\nuser: b\n\nc\n")


def test_turns_are_left_alone_where_the_template_takes_them() -> None:
    text = shown("chatml", user("a"), user("b"))

    assert text.startswith("<|im_start|>user\na<|im_end|>\n<|im_start|>user\nb<|im_end|>\n")


def test_tool_results_become_user_turns_where_the_template_has_only_two_roles() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "18 C"}

    text = shown("alternate", user("w?"), calling(WEATHER), result)

    assert "<tool_response>\n18 C\n</tool_response>" in text


def test_a_call_that_the_template_would_drop_in_silence_becomes_text() -> None:
    text = shown("chatml", user("w?"), calling('{"ville": "Orléans"}'))

    assert '<tool_call>\n{"name": "get_weather", "arguments": {"ville": "Orléans"}}\n</tool_call>' in text


def test_call_ids_are_shortened_alike_in_call_and_result_where_the_template_counts_their_letters() -> None:
    template = (
        "{% for m in messages %}{% for t in m['tool_calls'] or [] %}{% if t['id']|length != 9 %}"
        "{{ raise_exception('call id must have 9 characters') }}{% endif %}call {{ t['id'] }} "
        "{{ t['function']['name'] }};{% endfor %}"
        "{% if m['role'] == 'tool' %}result {{ m['tool_call_id'] }};{% endif %}{{ m['content'] }}{% endfor %}"
    )
    result = {"role": "tool", "tool_call_id": "call_4f9a1c2d3e", "content": "18 C"}

    text = shown(template, user("w?"), calling(WEATHER, call_id="call_4f9a1c2d3e"), result)

    assert text.startswith("w?call 58c87f839 get_weather;result 58c87f839;18 C")


def test_a_call_of_which_the_template_shows_nothing_but_its_id_becomes_text() -> None:
    assert '"name": "get_weather"' in shown("id9", user("w?"), calling(WEATHER, call_id="call_4f9a1c2d3e"))


def test_arguments_are_text_again_where_the_template_joins_them_to_text() -> None:
    template = (
        "{% for m in messages %}{{ m['content'] }}{% for t in m['tool_calls'] or [] %}"
        "{{ t['function']['name'] + '(' + t['function']['arguments'] + ')' }}{% endfor %}{% endfor %}"
    )

    assert shown(template, user("w?"), calling(WEATHER)) == 'w?get_weather({"city": "Paris"})'


def test_text_beside_a_call_is_kept_where_the_template_would_show_the_call_only() -> None:
    template = (
        "{% for m in messages %}{% for t in m['tool_calls'] or [] %}{{ t['function']['name'] }}"
        "{% else %}{{ m['content'] }}{% endfor %}{% endfor %}"
    )

    text = shown(template, user("w?"), {**calling(WEATHER), "content": "Let me look."})

    assert text.startswith('w?Let me look.\n<tool_call>\n{"name": "get_weather"')


def test_a_system_text_that_the_template_shows_only_before_a_last_user_turn_is_kept_in_a_tool_round() -> None:
    template = (
        "{% if messages[0]['role'] == 'system' %}{% set s = messages[0]['content'] %}{% endif %}"
        "{% for m in messages if m['role'] != 'system' %}"
        "{{ s if m['role'] == 'user' and loop.last }}[{{ m['role'] }}]{{ m['content'] }}"
        "{% for t in m['tool_calls'] or [] %}{{ t['function']['name'] }}{% endfor %}{% endfor %}"
    )
    system, result = {"role": "system", "content": "Be terse."}, {"role": "tool", "content": "18 C"}

    assert "Be terse." in shown(template, system, user("w?"), calling(WEATHER), result)


def test_tools_that_the_template_does_not_show_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    r, tools = renderer("chatml"), [{"type": "function", "function": {"name": "f"}}]

    for _ in range(2):
        r.prompt_ids([user("q")], tools)

    assert [record.getMessage() for record in caplog.records] == [
        "the chat template of this tokenizer shows no tools, so the model does not hear of those given here"
    ]


def test_tools_that_the_template_shows_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    template = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{{ messages[0]['content'] }}"

    text = shown(template, user("q"), tools=[{"type": "function", "function": {"name": "look_up"}}])

    assert "look_up" in text
    assert caplog.records == []


def test_messages_that_no_form_makes_visible_are_an_error() -> None:
    with pytest.raises(ModelError, match="it leaves messages out"):
        shown("{{ messages | length }}", {"role": "system", "content": "s"}, {"role": "tool", "content": "x"})


def test_a_developer_message_is_a_system_message_where_the_template_has_no_such_role() -> None:
    assert shown("chatml", {"role": "developer", "content": "d"}, user("u")).startswith(
        "<|im_start|>system\nd<|im_end|>"
    )


def test_a_developer_message_keeps_its_role_where_the_template_has_it() -> None:
    template = "{% for m in messages %}{% if m['role'] == 'developer' %}DEV {% endif %}{{ m['content'] }}{% endfor %}"

    assert shown(template, {"role": "developer", "content": "d"}, user("u")).startswith("DEV du")


def test_a_refusal_is_an_error_with_the_template_s_own_words() -> None:
    with pytest.raises(ModelError, match=r"refuses this conversation \(user\): only on Sundays"):
        shown("{{ raise_exception('only on Sundays') }}", user("hi"))


def test_a_fault_inside_the_template_is_an_error_too() -> None:
    with pytest.raises(ModelError, match="refuses this conversation"):
        shown("{{ messages[0]['content'] + 1 }}", user("hi"))


def test_a_missing_template_is_named_and_nothing_is_put_in_its_place() -> None:
    with pytest.raises(ModelError, match="has no chat template"):
        shown(None, user("hi"))


# Token ids


def test_there_is_exactly_one_begin_token() -> None:
    assert renderer("bos").prompt_ids([user("hi")]).count(0) == 1


def test_a_begin_token_is_not_doubled_by_a_tokenizer_that_adds_one_itself() -> None:
    from tokenizers.processors import TemplateProcessing

    backend = drift()
    backend.post_processor = TemplateProcessing(single="<|bos|> $A", special_tokens=[("<|bos|>", 0)])

    assert renderer("bos", backend).prompt_ids([user("hi")]).count(0) == 1


@pytest.mark.parametrize("marker", SPECIALS)
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_a_control_token_that_somebody_typed_stays_text(role: str, marker: str) -> None:
    r = renderer("chatml")
    message = {"role": role, "content": f"a{marker}b"}

    ids, clean = r.prompt_ids([message, user("q")]), r.prompt_ids([{**message, "content": "ab"}, user("q")])

    assert [i for i in ids if i < 4] == [i for i in clean if i < 4]
    assert f"a{marker}b" in r.tokenizer.decode(ids)


def test_a_control_token_hidden_in_another_stays_text() -> None:
    ids = renderer("chatml").prompt_ids([user("<|im_<|im_end|>end|>")])

    assert ids.count(2) == 1


def test_a_control_token_in_tool_arguments_and_tool_descriptions_stays_text() -> None:
    template = "{{ tools[0]['function']['description'] }}" + (
        "{% for m in messages %}{{ m['content'] }}{% for t in m['tool_calls'] or [] %}"
        "{{ t['function'] | tojson }}{% endfor %}{% endfor %}"
    )
    tools = [{"type": "function", "function": {"name": "f", "description": "<|im_start|>"}}]

    ids = renderer(template).prompt_ids([user("q"), calling('{"<|im_end|>": "<|im_end|>"}')], tools)

    assert [i for i in ids if i < 4] == []


def test_a_marker_that_the_tokenizer_does_not_call_special_stays_text_as_well() -> None:
    from tokenizers import AddedToken

    backend = drift()
    backend.add_tokens([AddedToken("<|call|>", special=False)])

    assert backend.token_to_id("<|call|>") not in renderer("chatml", backend).prompt_ids([user("<|call|>")])


def test_ordinary_text_has_the_ids_of_the_tokenizer_itself() -> None:
    r = renderer("chatml")
    conversation = [user("hello world\n\n hello "), assistant("Hi there"), user("…é\t\n")]
    text = r.tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)

    assert r.prompt_ids(conversation) == r.tokenizer.encode(text, add_special_tokens=False)


def test_an_answer_s_first_word_has_no_piece_for_a_start_of_text() -> None:
    tokenizer = wrapped(metaspace(), "chatml", bos_token="<a>", eos_token="<a>", pad_token="<a>")

    assert ChatRenderer(tokenizer).text_ids("The answer") == [2, 3]


def test_an_answer_is_not_joined_to_the_prompt_s_last_newline() -> None:
    [(prompt, answer)] = turns("chatml", user("q"), assistant("\nHello"), backend=newline_merging())

    assert (prompt[-10:], answer) == ("assistant\n", "\nHello<|im_end|>")


# Assistant turns that were not sampled here


def test_the_trained_text_is_the_answer_and_its_end_marker() -> None:
    [(prompt, answer)] = turns("chatml", user("hi"), assistant("Hello world"))

    assert prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert answer == "Hello world<|im_end|>"


def test_generation_markers_in_the_template_change_nothing() -> None:
    assert turns("chatml_gen", user("hi"), assistant("Hello world"))[0][1] == "Hello world<|im_end|>"


def test_spaces_that_the_template_trims_are_trained_on() -> None:
    assert turns("trim", user("q"), assistant(" a \n"))[0][1] == " a \n<|im_end|>"


def test_thinking_that_the_template_drops_later_is_trained_where_it_was_written() -> None:
    first, second = "<think>\nr1\n</think>\n\na1", "<think>\nr2\n</think>\n\na2"

    found = turns("think_strip", user("q1"), assistant(first), user("q2"), assistant(second))

    assert [answer for _, answer in found] == [f"{first}<|im_end|>", f"{second}<|im_end|>"]
    assert "r1" not in found[1][0]


def test_a_template_that_writes_an_empty_thinking_block_adds_nothing_to_the_answer() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['role'] == 'assistant' and loop.last %}"
        "<think>\n\n</think>\n\n{% endif %}{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )

    assert turns(template, user("q"), assistant("a"))[0][1] == "a<|im_end|>"


def test_calls_are_trained_and_tool_results_are_not() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "18 C, sunny"}

    found = turns("args_tojson", user("w?"), calling(WEATHER), result, assistant("18 C"))

    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call><|im_end|>'
    assert [answer for _, answer in found] == [call, "18 C<|im_end|>"]


def test_a_call_that_the_template_writes_before_the_text_is_trained() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for t in m['tool_calls'] or [] %}"
        "[{{ t['function']['name'] }}]{% endfor %}{{ m['content'] }}<|im_end|>\n{% endfor %}"
    )

    [(prompt, answer)] = turns(template, user("w?"), {**calling(WEATHER), "content": "wait"})

    assert prompt == "<|im_start|>user\nw?<|im_end|>\n<|im_start|>assistant\n"
    assert answer == "[get_weather]wait<|im_end|>"


def test_an_empty_thinking_block_before_a_call_is_not_trained() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['role'] == 'assistant' and loop.last %}"
        "<think>\n\n</think>\n\n{% endif %}{{ m['content'] }}{% for t in m['tool_calls'] or [] %}"
        "<tool_call>{{ t['function']['name'] }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )

    [(_, answer)] = turns(template, user("w?"), calling(WEATHER))

    assert answer == "<tool_call>get_weather</tool_call><|im_end|>"


def test_reasoning_kept_beside_the_text_is_trained() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['reasoning_content'] %}"
        "<think>{{ m['reasoning_content'] }}</think>{% endif %}{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )

    [(_, answer)] = turns(template, user("q"), assistant("a", reasoning_content="r"))

    assert answer == "<think>r</think>a<|im_end|>"


def test_the_head_of_a_second_assistant_turn_belongs_to_its_prompt() -> None:
    found = turns("chatml", user("q"), assistant("part one"), assistant("part two"))

    assert [answer for _, answer in found] == ["part one<|im_end|>", "part two<|im_end|>"]
    assert found[1][0].endswith("part one<|im_end|>\n<|im_start|>assistant\n")


def test_an_end_marker_typed_inside_an_answer_does_not_end_it() -> None:
    r = renderer("chatml")

    [[turn]] = r.turns(Trajectory(messages_and_choices=[user("q"), assistant("say <|im_end|> twice")]))

    assert turn.answer_ids.count(2) == 1
    assert r.tokenizer.decode(turn.answer_ids) == "say <|im_end|> twice<|im_end|>"


def test_the_end_token_stands_in_where_the_template_closes_no_turn() -> None:
    assert turns("{% for m in messages %}{{ m['content'] }}\n{% endfor %}", user("q"), assistant("a")) == [
        ("q\n", "a\n<|im_end|>")
    ]


def test_stored_ids_are_kept_whatever_the_text_would_tokenize_to() -> None:
    choice = Choice.model_validate(
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "hello"},
            "token_ids": [75, 76, 2],
            "prompt_token_ids": [1, 2, 3],
        }
    )

    [[turn]] = renderer().turns(Trajectory(messages_and_choices=[user("q"), choice]))

    assert (turn.prompt_ids, turn.answer_ids) == ((1, 2, 3), (75, 76, 2))


def test_a_conversation_without_an_assistant_has_no_turns() -> None:
    assert renderer().turns(Trajectory(messages_and_choices=[user("q")])) == [[]]
