"""Text from the party being graded is made harmless and stays readable."""

import pytest

from groundrule.rewards.neutral import hidden_characters, neutral, neutral_line

TOKENS = {
    "ChatML": "<|im_start|>system",
    "Llama 2": "<<SYS>>",
    "Llama 2 turns": "[INST] x [/INST]",
    "Llama 2 ends": "</s><s>",
    "Llama 3": "<|start_header_id|>user<|end_header_id|>",
    "Llama 4": "<|header_start|>",
    "Mistral tools": "[AVAILABLE_TOOLS][/AVAILABLE_TOOLS][TOOL_CALLS][TOOL_RESULTS]",
    "Mistral system": "[SYSTEM_PROMPT]x[/SYSTEM_PROMPT]",
    "Mistral images": "[IMG][IMG_END]",
    "Gemma": "<start_of_turn>user<end_of_turn>",
    "Gemma ends": "<bos><eos>",
    "Gemma tools": "<start_function_call>x<end_function_call>",
    "Gemma, one bar": "<|turn>user<turn|>",
    "Phi": "<|user|><|end|>",
    "DeepSeek": "<｜begin▁of▁sentence｜><｜User｜>",
    "DeepSeek tools": "<｜tool▁calls▁begin｜>",
    "Command-R": "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    "Command-R ends": "<BOS_TOKEN><EOS_TOKEN>",
    "Qwen and Hermes tools": "<tool_call>{}</tool_call><tool_response>",
    "Qwen coder": "<function=x><parameter=y></function>",
    "Harmony": "<|start|>assistant<|channel|>final<|message|>",
    "GLM": "[gMASK]<sop><|observation|>",
    "EXAONE": "[|system|]",
    "MiniMax": "]~b]system",
    "Seed": "<seed:think>",
    "thinking": "<think></think>",
    "ART": '</trajectory><trajectory id="2">',
}


@pytest.mark.parametrize("text", TOKENS.values(), ids=TOKENS)
def test_no_control_token_of_a_chat_template_survives(text):
    harmless = neutral(text)
    assert "<" not in harmless.replace("‹<", "‹")
    assert "[" not in harmless and "]~" not in harmless
    assert len(harmless) == len(text)


SPLIT = [
    "\u200b",
    "\u200c",
    "\u200d",
    "\u2060",
    "\u00ad",
    "\ufeff",
    "\u202e",
    "\u2066",
    "\u200f",
    "\u2063",
    "\ufe0f",
]


@pytest.mark.parametrize("invisible", SPLIT, ids=[f"U+{ord(c):04X}" for c in SPLIT])
def test_a_token_split_by_an_invisible_character_does_not_come_back(invisible):
    assert neutral(f"<|im{invisible}_start|>") == "‹|im_start|>"
    assert neutral(f"<{invisible}<{invisible}<END") == "‹‹‹END"


def test_a_token_split_by_a_control_character_is_no_token():
    assert neutral("<|im\x00_start|>") == "‹|im\\u0000_start|>"


WHOLE = {
    "Persian": "می\u200cخواهم",
    "Hindi": "क\u094d\u200dष",
    "Malayalam": "ന\u0d4d\u200d",
    "Sinhala": "ක\u0dca\u200dර",
    "family": "👨\u200d👩\u200d👧",
    "rainbow flag": "🏳\ufe0f\u200d🌈",
    "astronaut": "👩🏽\u200d🚀",
    "keycap": "1\ufe0f\u20e3",
    "heart": "❤\ufe0f",
    "flag of England": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "ideograph with variants": "葛\U000e0100",
    "Mongolian": "\u1820\u180b",
}


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_scripts_and_emoji_keep_the_joiners_that_they_need(text):
    assert neutral(text) == text
    assert hidden_characters(text) == 0


def test_joiners_in_a_row_are_no_writing_and_go():
    assert neutral("می\u200c\u200d\u200cخ") == "میخ"


def test_joiners_between_latin_letters_go():
    assert neutral("ig\u200cnore a\u200dll") == "ignore all"


def test_what_is_removed_is_counted():
    assert hidden_characters("a\u202eb\u00adc\u200b\u200b👨\u200d👩\ufeff") == 5
    assert hidden_characters("plain") == 0


def test_writing_direction_cannot_be_turned():
    assert neutral("\u202e0.1 erocs\u202c \u2067x\u2069 \u200fy") == "0.1 erocs x y"


def test_hidden_tag_characters_are_shown():
    assert neutral("yes\U000e0047\U000e0069") == "yes\\U000e0047\\U000e0069"


def test_every_kind_of_line_end_is_a_newline():
    assert neutral("a\r\nb\u2028c\u2029d\r\u200b\ne") == "a\nb\nc\nd\ne"


def test_wide_brackets_in_a_row_are_swapped_too():
    assert neutral("＜＜＜END＞＞＞ <＜<") == "‹‹‹END＞＞＞ ‹‹‹"


def test_operators_that_look_like_tokens_stay():
    code = "a <| b |> c <|> d << e >> f if x < y else [1] <s, t> <toolbox> [args] [prefix] 《注》 ＜注＞"
    assert neutral(code) == code


def test_text_made_harmless_twice_stays_as_it_is():
    for text in (*TOKENS.values(), "a\x00\u200b<<<<", "\ud835"):
        assert neutral(neutral(text)) == neutral(text)


def test_a_boundary_line_stays_one_line_and_cannot_be_closed_early():
    assert neutral_line("x>>>\n<<<y\u2028z") == "x››› ‹‹‹y z"
