"""`builtin/comments`: reflection and identity that need no model.

The body is composed of the reviewers' own comments: those of the minibatch that the body does not
say yet are added, each in the group that its wording points to. Which of them, and in which order,
is drawn by the run's seed, so that proposals differ and the reward model can choose.

It is a baseline. It cannot rephrase, generalise, weigh one comment against another, or write
anything that no reviewer wrote; comments that contradict each other may both end up in the body.
The grouping knows English words; other languages land in one group.
"""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stash_mcp.models import Example
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.reflection import ReflectionRecord
from stash_mcp.skills.document import MAX_BODY_CHARACTERS, MAX_BODY_LINES, problems_with_name
from stash_mcp.skills.proposal import Refusal, checked
from stash_mcp.skills.scan import active_problems, neutralise

MAX_POINT_CHARACTERS = 400
SIMILAR = 0.6
"""Two comments that share this part of their words (Jaccard index) say the same."""

_GROUPS = ("What to avoid", "What to keep doing", "Points that reviewers made")
_AVOID = re.compile(
    r"^(?:never|do not|don't|avoid|stop|no )\b"
    r"|\b(?:never|must not|should not|shouldn't|without (?:checking|asking|looking|reading))\b",
    re.IGNORECASE,
)
_KEEP = re.compile(
    r"^(?:good|great|nice|well done|exactly|perfect|excellent|right|keep|strong)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON_ENGLISH = """
    about after again all also and any anything are ask asked back been before being but came can
    can't cannot could did didn't does don't down each even ever every few first for from get gets
    give given gives going gone good got had has have hello help her here him his how i'd i'll i'm
    i've into isn't it's its just keep know last like long look made make many maybe more most much
    must need needs never new next nor not nothing now off once one only other our out over own
    please put really right said same say says see seems she should since some someone something
    soon still such sure tell than thank thanks that that's the their them then there these they
    thing things this those through time today told too took two under until upon use used using
    very want wanted was wasn't way week weeks day days went were what what's when where which
    while who whole why will with won't would yes yesterday yet you your yours
    agent answer answers customer customers dollars euro euros instead money nobody number pounds
    reply replies send sent without
"""
_STOP_WORDS = frozenset(_COMMON_ENGLISH.split())


class CommentReflector:
    """Composes bodies from comments; see the module for what it cannot do."""

    def __init__(self, seed: int) -> None:
        self.calls = 0
        self._seed = seed

    async def propose(self, body: str, records: Sequence[ReflectionRecord]) -> str | Refusal:
        self.calls += 1
        # A generator of its own for each proposal: the outcome depends on the run's seed and the
        # proposal's number alone, not on what was drawn before.
        draw = random.Random(f"{self._seed}/{self.calls}")
        present = _parse(body)
        comments = [comment for record in records for comment in record.comments]
        fresh = _new_points(present, comments)
        if not fresh:
            varied = checked(_write(_shuffled(present, draw)), body)
            if isinstance(varied, Refusal):
                return Refusal("No reviewer said anything new of this minibatch.", True)
            return varied
        draw.shuffle(fresh)
        kept = fresh[: draw.randint((len(fresh) + 1) // 2, len(fresh))]
        return checked(_write(_extended(present, kept)), body)


class CommentIdentifier:
    """A plain name and description from the words that most of the conversations share."""

    async def identify(self, examples: Sequence[Example]) -> Identity:
        terms = salient_terms(
            [
                " ".join(message.content for message in example.messages if message.role == "user")
                for example in examples
            ],
            [" ".join(example.feedback) for example in examples],
        )
        usable = [term for term in terms if not problems_with_name(term)]
        name = "-".join([*usable[:2], "replies"])
        if not usable or problems_with_name(name):
            return Identity(
                "reviewed-conversations",
                "What reviewers of earlier conversations asked for. Use it in conversations of "
                "the same kind.",
            )
        listed = " and ".join(filter(None, [", ".join(usable[:-1]), usable[-1]]))
        return Identity(
            name,
            f"What reviewers asked for in replies about {listed}. Use it when a conversation is "
            "about these.",
        )


def salient_terms(
    conversations: Sequence[str], comments: Sequence[str] = (), limit: int = 4
) -> list[str]:
    """The words that best say what the conversations are about, the best first.

    A word of the conversations counts by how many of them have it, times how many of the comments
    have it too: what both customers and reviewers speak of. Only words of a-z of four letters or
    more, without the common ones of English; ties by the alphabet.
    """
    spoken, reviewed = _document_counts(conversations), _document_counts(comments)
    weights = {term: count * (1 + reviewed[term]) for term, count in spoken.items()}
    return sorted(weights, key=lambda term: (-weights[term], term))[:limit]


def _document_counts(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({term for term in map(_plain, _words(text)) if len(term) >= 4})
    return counts


def _plain(word: str) -> str:
    """Without accents; empty where letters other than a-z stay."""
    decomposed = unicodedata.normalize("NFKD", word)
    bare = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return bare if bare.isascii() else ""


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS}


# --- the body: an introduction, then groups of points ---


@dataclass(frozen=True)
class _Body:
    introduction: str
    groups: dict[str, tuple[str, ...]]

    @property
    def points(self) -> list[str]:
        return [point for points in self.groups.values() for point in points]


def _parse(body: str) -> _Body:
    """Whatever stands before the first of our headings is kept as it is."""
    lines = body.strip().split("\n")
    headings = {f"## {group}": group for group in _GROUPS}
    first = next((index for index, line in enumerate(lines) if line in headings), len(lines))
    groups: dict[str, tuple[str, ...]] = dict.fromkeys(_GROUPS, ())
    group = ""
    for line in lines[first:]:
        group = headings.get(line, group)
        if line.startswith("- "):
            groups[group] = (*groups[group], line.removeprefix("- "))
    return _Body("\n".join(lines[:first]).strip(), groups)


def _write(body: _Body) -> str:
    sections = [body.introduction]
    for group, points in body.groups.items():
        if points:
            sections.append("\n".join([f"## {group}", "", *(f"- {point}" for point in points)]))
    return "\n\n".join(section for section in sections if section)


def _new_points(present: _Body, comments: Iterable[str]) -> list[str]:
    """The comments as points, without those that the body or an earlier one says already, and
    without those that no skill may say: one of them would stop the whole body."""
    said = [_words(point) for point in present.points]
    fresh = []
    for comment in comments:
        point = _as_point(comment)
        words = _words(point)
        if not point or active_problems(point):
            continue
        if not any(_similar(words, other) for other in said):
            said.append(words)
            fresh.append(point)
    return fresh


def _as_point(comment: str) -> str:
    """One inert line."""
    line = " ".join(neutralise(comment).split())
    if len(line) <= MAX_POINT_CHARACTERS:
        return line
    return line[:MAX_POINT_CHARACTERS].rsplit(" ", 1)[0] + " ..."


def _similar(one: set[str], other: set[str]) -> bool:
    union = one | other
    return bool(union) and len(one & other) / len(union) >= SIMILAR


def _extended(present: _Body, points: Sequence[str]) -> _Body:
    """With each point at the end of its group, as far as the limits of a body allow."""
    body = present
    for point in points:
        group = _group_of(point)
        longer = _Body(body.introduction, {**body.groups, group: (*body.groups[group], point)})
        text = _write(longer)
        if len(text) <= MAX_BODY_CHARACTERS and text.count("\n") < MAX_BODY_LINES:
            body = longer
    return body


def _group_of(point: str) -> str:
    if _KEEP.search(point):
        return "What to keep doing"
    return "What to avoid" if _AVOID.search(point) else "Points that reviewers made"


def _shuffled(body: _Body, draw: random.Random) -> _Body:
    """The same points in another order: all that is left to vary when nothing new was said."""
    return _Body(
        body.introduction,
        {group: tuple(draw.sample(points, len(points))) for group, points in body.groups.items()},
    )
