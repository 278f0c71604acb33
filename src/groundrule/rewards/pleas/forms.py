"""What only the prompt and the reply of a judge have, and turns of chat templates, in whatever language."""

from __future__ import annotations

from groundrule.rewards.pleas.plea import plea

FORMS = (
    plea("verdict", "uses the key of a verdict", r"trajectory_id[\"'\\]*\s?[:=]"),
    plea(
        "verdict",
        "has the form of a verdict",
        r"[\"'\\]+scores[\"'\\]+ ?: ?\[ ?\{(?=.{0,300}explanation)(?=.{0,300}[\"']score)",
    ),
    plea(
        "boundary",
        "imitates a boundary",
        r"[<‹«⟪⟨\[【《]{3} ?(?:[0-9a-z]{4,32} )?(?:end (?:of )?)?"
        r"(?:trajectory|spec\b|shared beginning|further conversation|grading notes|elided)",
    ),
    plea(
        "boundary",
        "imitates a boundary",
        r"(?<=[^\w\s]{2}) ?(?:[0-9a-z]{4,32} )?(?:(?:end|start|begin) (?:of )?(?:trajectory|spec)"
        r"|trajectory \#?\d+) ?:?[^\w\s]{2,}"
        r"|(?<=[^\w\s]{2}) ?end of (?:trajectory|spec)\b",
    ),
    plea("boundary", "imitates a boundary", r"</?trajector(?:y|ies)\b[^<>\n]{0,40}>"),
    plea(
        "boundary",
        "imitates a tool's result",
        r"<(?:tool_response|tool_result|function_results?)>.{0,2000}?</",
    ),
    plea(
        "boundary",
        "opens a turn in a chat template",
        r"<\|(?:im_start|start|turn)\|?> ?(?:system|user|assistant|model|developer|tool)\b"
        r"|<start_of_turn> ?(?:user|model|system)\b|<\|start_header_id\|>"
        r"|<[|｜](?:system|user|assistant|(?:system|user|chatbot)_token)[|｜]>"
        r"|<<SYS>>|\[/INST\].{0,400}\[INST\]|\[SYSTEM_PROMPT\]",
    ),
)
