"""Refusals and admissions of not knowing.

A refusal says that the speaker cannot or will not do what is asked, or that it failed. None is regret alone
("I'm sorry to hear that"), a turn of phrase ("I can't wait"), a promise to abstain ("I won't upload
anything"), not finding or not knowing, and an inability that a claimed save follows ("I can't set alarms, but
I've noted it").

Not knowing is admitted by saying that one does not know, find or remember it, has no record of it, or was not
told. It is not by having no *more* to say than the answer, nor where a guess follows or goes before ("I'm not
sure, but I think it's Canberra"): that is an answer.
"""

from __future__ import annotations

import re

from memeval.evaluation.claims import claims_save
from memeval.evaluation.sentences import either, spoken, told

_TO_FIND = r"(?:find|recall|locate|see|determine|identify|think of)"
_PHRASE = either(
    r"wait|help but|imagine|believe|agree more|stress|emphasi[sz]e|overstate|complain|resist|deny|argue",
    r"thank|say enough|recommend|be (?:sure|certain|happier|more)",
)
_CANNOT = either(
    rf"(?:can't|cannot|can not|couldn't|could not) (?!(?:\w+ ){{0,2}}?(?:{_TO_FIND}|{_PHRASE})\b)",
    rf"(?:(?:am|are|was|were) )?(?:unable|(?:not|wasn't) (?:able|allowed|permitted)) to (?!{_TO_FIND}\b)",
)
_KEEP = r"(?:save|store|remember|record|note|keep|retain|update|change|add|delete|forget|do|complete|process)"
_KEPT = r"(?:saved|stored|remembered|recorded|noted|kept|updated|changed|added|deleted|completed|processed)"
_MEANS = either(
    r"ability|abilities|capability|capabilities|capacity|permissions?|access|means|way|tools?|functions?",
    r"functionality|features?|memory(?! of| about| saved| stored)",
)
_SUCH = r"(?: (?:an?|the|any|such|direct|long-term|persistent|\w+ing|\w+al))*"
_REFUSES = re.compile(
    either(
        rf"(?<!if )\b(?:i|we)(?:'m|'re| am| are)?(?: \w+)? {_CANNOT}",
        rf"\b(?:i|i'm) (?:(?!you\b)[\w'-]+ ){{0,10}}?and {_CANNOT}",
        rf"\b(?:i|i'm) (?:(?!you\b)[\w'-]+ ){{0,10}}?and (?:do not|don't) have{_SUCH} {_MEANS}\b",
        r"\b(?:i|we) (?:do not|don't) think (?:that )?i can\b",
        rf"(?:^|[,;:.-] )(?:sorry,? )?(?:{_CANNOT}|failed to {_KEEP}\b)",
        rf"\b(?:i|we) (?:have )?failed to {_KEEP}\b",
        r"\b(?:i|we)(?: won't|'ll not| will not) (?:\w+ )?"
        + either(
            r"do|help|assist|comply|remember|save|store|note|record|answer|tell|share|provide|be able",
            r"continue|engage|keep (?:an?|any|that|this|it)",
        )
        + r"\b",
        r"\bi (?:\w+ )?(?:must |have to |will )?(?:refuse|decline)\b",
        r"\b(?:i'd|i would) (?:rather|prefer) not\b",
        rf"\b(?:i|we) (?:\w+ )?(?:(?:do not|don't) (?:\w+ )?have|have no|lack){_SUCH} (?:memory )?{_MEANS}\b",
        r"\b(?:i|we) (?:do not|don't|never) (?:actually |permanently )?(?:store|save|retain|keep)\b(?! my)",
        r"\bas an ai\b.{0,60}?\b(?:do not|don't|am not|lack|have no)\b",
        rf"(?:\bnot|n't) possible(?: for me\b| to {_KEEP}\b|\W*$)|\bimpossible for me\b",
        r"\b(?:beyond|outside) (?:of )?my (?:\w+ )?(?:capabilit|abilit|scope)",
        r"(?:\bnot|n't) something i(?:'m| am)? (?:can|able)",
        rf"\b(?:could not|couldn't|cannot|can't) be {_KEPT}",
        r"\b(?:an?|some) (?:\w+ )?(?:error|problem|issue) (?:\w+ )?(?:while|when|saving|storing|with)\b",
        r"\btool (?:\w+ )?(?:returned|reported|gave) an error",
    )
)
_BUT = re.compile(r"\b(?:but|however|though|nevertheless|still)\b")

_LORE = either(
    r"information|info|records?|memor(?:y|ies)|notes?|mention|data|details?|knowledge|trace|entr(?:y|ies)",
    r"results?|recollection|match(?:es)?|answer",
)
_SOME = r"(?:(?!more\b|further\b|additional\b|other\b|else\b|newer\b|new\b)[\w'-]+ )"
_NOT_MORE = r"(?!(?: \w+){0,2}? (?:more|else|further|additional|other)\b)"
_DO_NOT = r"(?<!if )\b(?:i|we)(?: \w+)? (?:do not|don't|did not|didn't|no longer)"
_FAIL_TO = either(
    r"can't|cannot|can not|couldn't|could not|(?:am |was )?unable to|(?:was |am )?(?:not|wasn't) able to",
    r"failed to|didn't|did not",
)
_FIND = r"(?:find|recall|remember|locate|retrieve|determine|see any|think of any)\b"
_HAVING = r"\b(?:have|has|is|are|was|were|there's|find|found|returned|contains?|shows?|with|see) "
_RULING = r"(?! (?:may|can|could|should|must|shall|will|(?:is|are) (?:to|allowed|lost)))"
_TELL = r"(?:told|tell|mention(?:ed)?|shared?|said|say|specif(?:y|ied)|provided?|given?|disclosed?)"
_UNKNOWN = re.compile(
    either(
        rf"{_DO_NOT} (?:\w+ )?(?:know|recall|remember)\b{_NOT_MORE}(?! (?:an? \w+er|ever)\b)",
        rf"{_DO_NOT} (?:\w+ ){{0,2}}?have (?:it|that|this)\b"
        r"(?=\W*$|[.,;!]| (?:saved|stored|noted|recorded|in|on|any ?more))",
        rf"{_DO_NOT} (?:\w+ ){{0,2}}?have {_SOME}{{0,5}}?{_LORE}\b",
        rf"{_DO_NOT} (?:\w+ ){{0,2}}?have your [\w-]+",
        rf"{_DO_NOT} (?:\w+ ){{0,2}}?have anything (?:saved|stored|noted|recorded|about|on|in my)\b",
        rf"{_DO_NOT} (?:\w+ ){{0,2}}?have an? [\w' -]{{1,30}} for (?:you|your|that|it|this)\b",
        rf"{_DO_NOT} (?:\w+ )?(?:see|find) (?:any|that|it|your)\b{_NOT_MORE}",
        rf"\bi (?:haven't|have not) (?:saved|stored|noted|recorded) any(?:thing)?\b{_NOT_MORE}",
        r"\bthere (?:is|are|was|were|does|do)(?: not|n't) (?:(?:seem|appear) to be )?any "
        rf"{_SOME}{{0,3}}?{_LORE}\b",
        r"\b(?:i|we) (?:can't|cannot) (?:say|answer|tell)\b"
        r"(?=\W*$|.{0,30}\b(?:what|which|when|where|who|whether|without|for (?:sure|certain))\b)",
        r"\bno (?:idea|clue)\b",
        rf"(?:{_HAVING}|^\W*(?:sorry,? )?)no {_SOME}{{0,3}}?{_LORE}\b{_RULING}",
        rf"\bnothing {_SOME}{{0,3}}?(?:about|on|regarding|in my|saved|stored|recorded|noted)\b",
        r"\bfound nothing\b",
        rf"(?<!if )\b(?:i|we)(?: \w+)? {_FAIL_TO} (?:\w+ )?{_FIND}{_NOT_MORE}",
        rf"^\W*(?:sorry,? )?{_FAIL_TO} {_FIND}{_NOT_MORE}",
        r"\b(?:i'm|i am|we're)(?: \w+)? (?:not (?:\w+ )?(?:sure|certain|aware|familiar)|unsure|uncertain)\b"
        r"(?! (?:i would|i'd|i agree|i can|that's))",
        r"^\W*not (?:sure|certain)\b",
        r"\b(?:is|are|was|remains?) (?:\w+ )?unknown\b|\bunknown to me\b|^\W*unknown\b|: unknown\b",
        r"\byou (?:\w+ )?(?:haven't|have not|never|didn't|did not|hadn't) (?:\w+ )?"
        rf"{_TELL}\b(?! (?:anyone|your|him|her|them|everyone|us)\b){_NOT_MORE}",
        r"\bi (?:haven't|have not|wasn't|was not|have never|never) (?:been |was )?(?:told|given|informed)\b",
        r"(?:\bnot|n't) (?:been )?(?:\w+ )?"
        + either(
            r"in my (?:\w+ )?(?:memory|memories|notes|records)",
            r"(?:stored|saved|recorded|noted|listed) in my",
            r"specified|mentioned|provided|known to me",
        )
        + r"\b",
        r"\b(?:information|data|details?|answer)\b[^.,;]{0,30} (?:is|are)(?: not|n't) (?:\w+ )?"
        r"(?:available|known)\b",
        r"\b(?:notes?|memory|memories|records?|search) (?:do|does|did)(?: not|n't) (?:\w+ )?"
        rf"(?:mention|contain|include|say|show|list|return|specify|have)\b{_NOT_MORE}",
        r"\bmemory is (?:\w+ )?empty\b|\bno way of knowing\b",
    )
)
_GUESS = re.compile(
    either(
        r"\bi (?:would |do )?(?:think|believe|guess|assume|suspect)(?: that)? "
        r"(?:it|your|the|you (?:like|prefer|are|have|said|live)|he|she|they)(?!\w)"
        r"(?! (?:haven't|have not|have never|didn't|never|should|could))",
        r"\bmy (?:best )?guess\b",
        r"\byour [\w' -]{1,30}? (?:is (?:probably|likely)|(?:might|may|could) be)\b"
        r"(?! (?:in|on|under|stored|listed|written|found|noted|somewhere|available))",
        r"\b(?:it|that)(?:'s| is| must be)? (?:probably|most likely|likely|perhaps)\b"
        r"(?! (?:in|on|under|not|best)\b)",
    )
)
_SIGNS = (
    *("not", "n't", "no ", "un", "never", "fail", "refuse", "decline", "rather", "prefer", "beyond"),
    *("outside", "error", "problem", "issue", "lack", "impossible", "empty"),
)
"""One of them stands in every refusal and admission, so that other sentences need no close look."""


def refuses(reply: str) -> bool:
    """Whether a reply says that it cannot or will not do what is asked, or failed to."""
    for sentence in map(told, spoken(reply)):
        if not _suspect(sentence) or (found := _REFUSES.search(sentence)) is None:
            continue
        turn = _BUT.search(sentence, found.end())
        if turn is None or not claims_save(sentence[turn.end() :]):
            return True
    return False


def admits_unknown(reply: str) -> bool:
    """Whether a reply says that it does not know, and gives no guess in its place."""
    said = [told(sentence) for sentence in spoken(reply)]
    return any(
        _suspect(sentence)
        and _UNKNOWN.search(sentence)
        and not _GUESS.search(sentence)
        and not _GUESS.match(following)
        for sentence, following in zip(said, [*said[1:], ""], strict=False)
    )


def _suspect(sentence: str) -> bool:
    return any(sign in sentence for sign in _SIGNS)
