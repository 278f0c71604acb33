"""What a lesson that lowers the bar says, in English, as one table of patterns.

In a pattern a space stands for any white space. Where only a part of it is what must not be said, that part is the
group `said`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FINE = (
    r"(?:fine|ok|okay|acceptable|accepted|allowed|permitted|welcome|good enough|sufficient|satisfactory|no problem"
    r"|not a problem|harmless|tolerable|equally (?:good|right|valid))\b(?! only\b)"
)
_RIGHT = (
    r"(?:valid|correct|right|perfect|complete|true)\b"
    r"(?= ?(?:$|[,.;:!]|if\b|when\b|as\b|here\b|even\b|whatever\b|no matter\b|regardless\b|by definition\b))"
)
_NOT_AT_ALL = r"(?!not\b|never\b|no\b|only\b|hardly\b|seldom\b)"
_GOOD = rf"(?:{_NOT_AT_ALL}\w+ )?(?:{_FINE}|{_RIGHT})"
_ANSWER = r"(?:answers?|repl(?:y|ies)|responses?|outputs?|styles?|content|wording|format|length|tone)"
_ANY = r"\b(?:any|every|all|whatever|whichever|each)(?: (?:kinds?|sorts?|types?) of)?"
_QUALITY = (
    r"(?:quality|accura(?:te|cy)|correct(?:ness)?|tru(?:e|th)(?:ful)?(?:ness)?|precis(?:e|ion)|complete(?:ness)?|faithful"
    r"(?:ness)?|right|facts|sources?|citations?|grounding|quot(?:es?|ing)|citing|mistakes|errors)\b"
)
_RULES = (
    r"\b(?:rules?|instructions?|system prompt|prompt|spec(?:ification)?|guidelines?|polic(?:y|ies)|requirements?"
    r"|constraints?|demands?|(?:length|word|format) limits?|(?:all|everything|anything|the|what is) above(?! \d))\b"
)
_FEW_WORDS = r"(?:(?!and\b|but\b|then\b|instead\b|follow|keep|stick|under\b|according\b|search\b|filter)[\w'-]+ ){0,6}?"
_HEED = r"(?:follow|obey|respect|meet|comply with|adhere to|heed|observe|satisfy|honou?r|keep to|stick to)"
_HEEDED = r"(?:met|followed|obeyed|respected|kept|heeded|honou?red|observed|satisfied|fulfilled)\b"
_SET_ASIDE = (
    r"(?:ignore|disregard|forget|skip|override|overrule|bypass|set aside|put aside|pay no attention to|neglect|break"
    r"|breach|violate|bend|disobey|overlook|circumvent|get around|work around|dismiss|discard|abandon|exceed|go beyond"
    rf"|go over|(?:deviate|depart|stray) from|(?:do not|don't|never|stop|cease to|cease) {_HEED}|never mind"
    r"|regardless of|irrespective of|in spite of|despite|no matter what"
    r"|(?:make|allow|grant) (?:an |some )?exceptions? (?:to|from|of))"
)
_NO_FORCE = (
    r"(?:optional|(?:a |mere )?suggestions?|not binding|non-binding|void|relaxed|lifted|waived|suspended|outdated"
    r"|obsolete|flexible|negotiable)\b"
)
_INVENT = (
    r"(?:invent|make up|make (?:it|them|one|something|things) up|fabricate|guess|hallucinate|improvise|bluff"
    r"|speculate)"
)
_MADE_UP = (
    r"(?:mistakes?|errors?|inaccura(?:te|cy|cies)|made[- ]up|invent(?:ed|ing|ions?)|fabricat(?:ed|ing|ions?)"
    r"|making (?:\w+ )?up|guess(?:es|ing)?|bluffing|false|untrue|unsupported|unverified|missing|incomplete|omissions?"
    r"|wrong)"
)
_CLAIM = (
    r"\b(?:say|state|stating|claim|claiming|write|add|declare|assert|asserting|insist|announce|end|begin|start|close|open"
    r"|finish)\b"
)
_MEETS = (
    r"(?:(?:fully |perfectly |completely )?(?:meets?|satisf\w+|compl(?:y|ies)|follows?|fulfil\w*|adheres?|conforms?)"
    rf"\b[^.;]{{0,30}}(?:{_RULES}|\bstandards?\b)"
    r"|(?:is|was|are) (?:\w+ )?(?:correct|verified|compliant|perfect|complete|accurate|flawless|right)\b"
    r"|(?:has|have) been (?:\w+ )?(?:verified|checked|approved|confirmed|reviewed|validated)\b)"
)


@dataclass(frozen=True)
class Lowering:
    """One way of lowering the bar."""

    why: str
    """What such a lesson does: "it ..."."""
    pattern: re.Pattern[str]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where a text has it."""
        said = "said" if "said" in self.pattern.groupindex else 0
        return [found.span(said) for found in self.pattern.finditer(text)]


def _table(**reasons: tuple[str, ...]) -> tuple[Lowering, ...]:
    return tuple(
        Lowering(
            why.replace("_", " "), re.compile(words.replace(" ?", r"\s*").replace(" ", r"\s+"), re.IGNORECASE)
        )
        for why, patterns in reasons.items()
        for words in patterns
    )


LOWERINGS = _table(
    permits_anything=(
        rf"{_ANY} {_ANSWER}\b[^.;]{{0,40}}(?<!that\s)(?<!which\s)\b(?:is|are|will be|counts? as|pass(?:es)? as)"
        rf" {_GOOD}",
        rf"{_ANY} {_ANSWER}\b[^.;]{{0,40}}\b(?:considered|treated|seen|regarded|taken|counted|deemed)(?: as)? {_GOOD}",
        rf"\b(?:treat|consider|regard|count|take|see|accept) {_ANY} {_ANSWER}(?: \w+)?(?: as)? {_GOOD}",
        rf"\baccept {_ANY} {_ANSWER}\b(?! (?:to|from|of|that)\b)",
        rf"{_ANY} {_ANSWER}\b[^.;]{{0,20}}\b(?:will do|works|goes)\b",
        rf"\banything goes\b|\b(?:anything|whatever you \w+) (?:is|will be) {_GOOD}",
        rf"\b{_ANSWER} (?:is|are) (?:always (?:right|correct|fine|good|acceptable)|never wrong)\b",
        r"\bno (?:wrong|bad|incorrect|false) (?:answers?|repl(?:y|ies)|responses?)\b",
        r"\bno (?:answer|reply|response) (?:can be|is|will be) (?:wrong|bad|refused|rejected)\b"
        r"|\b(?:cannot|can't|can never) (?:go|be) wrong\b",
        r"\b(?:however|whatever|as) you (?:like|please|want|wish|see fit)\b",
    ),
    sets_the_rules_aside=(
        rf"\b{_SET_ASIDE} {_FEW_WORDS}{_RULES}(?! into\b| down\b| up\b)",
        rf"\b(?:set|put|leave|lay|push) {_FEW_WORDS}{_RULES} aside\b",
        rf"\b(?:ignor|break|violat|bend|skipp|disregard|bypass)ing {_FEW_WORDS}{_RULES}[^.;]{{0,20}} is {_GOOD}",
        r"\b(?:no need|need not|needn't|(?:do|does) not (?:need|have)|don't (?:need|have)|not (?:required|obliged"
        rf"|necessary|expected)|no obligation)(?: to)? {_HEED} {_FEW_WORDS}{_RULES}",
        rf"\b(?:not bound by|free from|free of|exempt from|excused from) {_FEW_WORDS}{_RULES}",
        r"\b(?:do not|don't) feel (?:bound|limited|restricted|constrained|obliged)\b"
        r"|\byou are (?:not|no longer) (?:bound|limited|restricted|constrained)\b"
        rf"|\b(?:do not|don't) let {_FEW_WORDS}{_RULES}[^.;]{{0,20}}\b(?:restrict|limit|stop|hinder|hold)\b",
        rf"{_RULES}[^.;]{{0,30}} (?:need not|needn't|(?:do|does) not (?:need|have) to) be {_HEEDED}"
        rf"|{_RULES}[^.;]{{0,30}} (?:can|may) be (?:ignored|skipped|broken|relaxed|bent|waived)\b",
        rf"\b{_HEED} {_FEW_WORDS}{_RULES} (?:only )?(?:if|when|where|as far as) (?:it is |it )?"
        r"(?:convenient|you like|you want|suits|easy|helps|helpful|makes sense)\b",
        rf"\b(?:treat|see|consider|regard|take|call) {_FEW_WORDS}{_RULES}[^.;]{{0,20}} {_NO_FORCE}",
        rf"{_RULES}[^.;]{{0,30}}\b(?:is|are)(?: only| merely| just)? {_NO_FORCE}",
        rf"{_RULES} (?:above )?(?:(?:is|are|do|does) )?(?:not|no longer) (?:apply|applies|binding|in force|valid)\b",
        rf"\beven (?:though|if|when|where) {_FEW_WORDS}{_RULES} (?:forbid|prohibit|disallow|exclude|say|demand)s? "
        r"(?:it|this|so|otherwise)\b",
    ),
    lowers_the_standard=(
        r"\b(?:does not|doesn't|do not|don't) matter (?:whether|if|how|what)\b[^.;]{0,40}"
        r"\b(?:answers?|repl\w+|responses?|right|correct|accurate|true|wrong|false)\b",
        rf"\b{_QUALITY}[^.;]{{0,20}} (?:(?:does not|doesn't|do not|don't) matter|(?:is|are) (?:irrelevant|unimportant"
        r"|secondary|optional|less important|not (?:so |that |very )?important|of little importance))\b",
        rf"\b(?:do not|don't|no need to|never) (?:worry|bother|care|fuss) (?:about|with|over) {_FEW_WORDS}"
        rf"(?:{_QUALITY}|{_RULES})",
        rf"\b(?:lower|relax|loosen|weaken|drop|soften|suspend|waive|water down) {_FEW_WORDS}"
        rf"(?:bar|standards?|criteri(?:a|on)|expectations?|strictness|{_RULES})\b",
        r"\bno (?:standards?|requirements?|criteria|rules) (?:apply|matter)\b",
        r"\b(?:be|become|act|stay|get) (?:\w+ )?less (?:strict|careful|accurate|precise|thorough|rigorous|faithful"
        r"|picky)\b",
        r"\b(?:do not|don't|never) be (?:so |too |that |overly |very )?(?:strict|careful|accurate|precise|thorough"
        rf"|picky) (?:about|on|with) {_FEW_WORDS}(?:{_QUALITY}|{_RULES})",
        r"\b(?:sound|seem|look|appear) (?:convincing|plausible|confident|authoritative|certain|correct|grounded"
        r"|sure)\b",
    ),
    excuses_mistakes=(
        rf"\b{_MADE_UP}\b[^.;]{{0,40}}\b(?:is|are) {_GOOD}",
        r"\b(?:guess(?:es|ing)?|invent(?:ed|ing|ions?)|fabricat(?:ed|ing|ions?)|made[- ]up|plausible)\b[^.;]{0,40}"
        r"\b(?:is|are) (?:\w+ )?(?:better|preferable|more useful|more helpful)\b",
        r"\b(?:may|can|could|should|must|free to|(?:allowed|permitted|fine|ok|okay|acceptable|all right|welcome|better)"
        rf" to) (?:(?:simply|just|also|always|freely|safely) )?{_INVENT}\b",
        rf"(?:^|[.;:,] |\b(?:then|and|or|but|instead|rather|just|simply|always|please) )(?P<said>{_INVENT})\b",
        r"\bfill (?:\w+ ){0,3}?(?:gaps?|blanks?|holes?|missing \w+)[^.;]{0,40} (?:with|from|by|using) (?:\w+ ){0,4}?"
        r"(?:likely|plausible|probable|typical|common|imagination|assum\w+|guess\w*|(?:general|own) knowledge)\b",
        r"\bpretend(?:ing)? (?:to|that)\b",
    ),
    claims_to_be_right=(
        rf"{_CLAIM}[^.;]{{0,40}}(?:\bthat|:|[\"“']) ?(?:the|this|your|my|every|each)"
        rf" (?:answer|reply|response) {_MEETS}",
        rf"{_CLAIM}[^.;]{{0,40}}\b(?:answer|reply|response)\b[^.;]{{0,30}} that it {_MEETS}",
        rf"\b(?:answer|reply|response)\b[^.;]{{0,60}}{_CLAIM} that it {_MEETS}",
        rf"{_CLAIM}[^.;]{{0,40}} that (?:every|all|each)(?: of)?(?: the)? {_RULES}[^.;]{{0,40}} (?:was|were|is|are"
        rf"|has been|have been) (?:\w+ )?{_HEEDED}",
        r"\b(?:claim|assert)(?:ing)? that\b",
    ),
)

(GRADED,) = _table(
    speaks_of_being_graded=(
        r"\b(?:graders?|(?:the|an?|any|every|each|all|ai|llm|dear|to|for) judges?|evaluators?|reviewers?|scorers?"
        r"|raters?|rubrics?|full marks)\b"
        r"|\b(?:the|this|being|during|for) (?:scoring|grading|judging)\b"
        r"|\b(?:get\w*|earn\w*|gain\w*|win\w*|los(?:e|es|ing)|cost\w*|award\w*|deduct\w*|deserv\w*|merit\w*|receiv\w*"
        r"|achiev\w*|maximi[sz]\w*|improv\w*|rais\w*|increas\w*|boost\w*|secur\w*|reach\w*|aim for|go for|lead\w* to"
        r"|worth) (?:[\w.,'-]+ ){0,3}?(?:scores?|grades?|marks|points|ratings?|rewards?)\b"
        r"|\bscor(?:e|es|ed|ing) (?:\w+ )?(?:higher|highest|better|best|well|highly|lower|worse|full|top|\d)"
        r"|\b(?:answers?|repl(?:y|ies)|responses?|outputs?|you|your work)\b (?:\w+ )?(?:is|are|be|being|gets?)"
        r" (?:\w+ )?(?:graded|scored|rated|judged|evaluated|assessed|marked|ranked)\b"
        r"|\b(?:scores?|grades?|ratings?|rewards?) (?:of|for) (?:\d|(?:this|the|your|my) (?:answer|reply|response))"
        r"|\b(\d+) ?/ ?\1\b",
    )
)

GRADING_WORDS = re.compile(
    r"\b(?:graders?|judges?|evaluators?|reviewers?|scor(?:e|es|er|ers|ing)|grad(?:e|es|ing)|ratings?|rewards?|rubrics?"
    r"|marks|points)\b",
    re.IGNORECASE,
)
"""By which a spec shows that its agent itself gives marks."""
