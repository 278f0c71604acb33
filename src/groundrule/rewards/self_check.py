"""Does an answer check itself? A count of telling phrases, to watch over a training.

The share of such answers is what DeepSeek-R1-Zero (2501.12948) is known for raising. It is a measure and no reward:
paid for, the phrases would be learned without the checking.
"""

from __future__ import annotations

import re

_CHECKS = re.compile(
    r"(?:^|[.!?\n]\s*|\bhmm,? )wait\b|\b(?:hold on|on second thought|let(?:'s| us| me) (?:\w+ )?"
    r"(?:check|verify|double[- ]check|re-?check|re-?calculate|re-?consider|re-?examine|start over|try again|see if)"
    r"|(?:to|i(?:'ll| will)|we can|i should) (?:check|verify|double[- ]check|confirm)"
    r"|double[- ]check(?:ing)?|checking (?:my|the|this|that|our)|verifying|sanity check"
    r"|(?:i|that|this) (?:was|is|made|must be) (?:a mistake|wrong|an error|incorrect)|actually, (?:no|that|i|the))",
    re.IGNORECASE,
)


def checks_itself(answer: str) -> bool:
    """Whether some phrase of the answer, thinking included, looks back at what was said."""
    return bool(_CHECKS.search(answer.replace("’", "'")))
