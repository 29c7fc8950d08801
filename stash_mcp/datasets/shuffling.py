"""The front of a long seeded shuffle, exactly as `random.Random(seed).shuffle` orders it.

`shuffle` walks from the end to the front and swaps each place with a drawn one before it. So the
draws are made as it makes them, a word of the generator each or more where one is too large, but
whole blocks of words at a time; then the wanted places alone are followed back through the swaps.
"""

import random
import sys
from array import array
from collections.abc import Iterator, MutableMapping
from itertools import chain, islice
from operator import length_hint

LONGEST = 2**32 - 1
"""Beyond it a draw takes two words."""
_BLOCK_DRAWS = 16_000_000
_CHUNK_WORDS = 1 << 16


def shuffled_front(
    count: int, most: int, seed: int, block_draws: int = _BLOCK_DRAWS
) -> tuple[int, ...]:
    """The first `most` numbers, or all, of the shuffled range(count), which is at most LONGEST.

    Takes about 0.2 s a million, and 4 bytes of memory for each, up to `block_draws`: what is
    longer is drawn once more, block by block.
    """
    # Where each wanted place stands before the swaps that have been followed back.
    places = {place: place for place in range(min(most, count))}
    words = _Words(random.Random(seed))
    ends = range(count - 1, 0, -block_draws)
    marks, drawn = [], array("I")
    for top in ends:
        marks.append(words.mark())
        drawn = _draw(words.stream, top, max(top - block_draws, 0))
    for top, mark in zip(reversed(ends), reversed(marks), strict=True):
        bottom = max(top - block_draws, 0)
        if mark is not marks[-1]:
            drawn = _draw(_Words(random.Random(seed), mark).stream, top, bottom)
        drawn.reverse()
        _follow_back(drawn, bottom + 1, places)
    order = dict(sorted((wanted, place) for place, wanted in places.items()))
    return tuple(order.values())


def _draw(words: Iterator[int], top: int, bottom: int) -> "array[int]":
    """For each place from `top` down to the one above `bottom`, what it is swapped with."""
    drawn = array("I")
    add = drawn.append
    place = top
    while place > bottom:
        bits = (place + 1).bit_length()
        unused = 32 - bits
        last = max((1 << (bits - 1)) - 1, bottom + 1)
        for word in words:
            other = word >> unused
            if other > place:
                continue
            add(other)
            place -= 1
            if place < last:
                break
    return drawn


def _follow_back(drawn: "array[int]", first: int, places: MutableMapping[int, int]) -> None:
    """Undo the swaps of the places from `first` on, in rising order."""
    front = max(len(places) - first, 0)
    for place, other in enumerate(drawn[:front], first):
        # Both are among the wanted ones, which fill the front.
        places[place], places[other] = places[other], places[place]
    for place, other in enumerate(islice(drawn, front, None), first + front):
        # No wanted one has come as far as this place yet.
        if other in places:
            places[place] = places.pop(other)


class _Words:
    """`stream`: the generator's words of 32 bits. mark: where another one stood, to go on there."""

    def __init__(self, source: random.Random, mark: "tuple[object, int] | None" = None) -> None:
        self._source = source
        self._state: object = source.getstate()
        self._left: Iterator[int] = iter(())
        self._taken_from = 0
        self.stream = chain.from_iterable(self._chunks())
        if mark is not None:
            state, taken = mark
            source.setstate(state)  # type: ignore[arg-type]
            next(islice(self.stream, taken, taken), None)

    def mark(self) -> tuple[object, int]:
        return self._state, self._taken_from - length_hint(self._left)

    def _chunks(self) -> Iterator[Iterator[int]]:
        while True:
            self._state = self._source.getstate()
            bits = self._source.getrandbits(32 * _CHUNK_WORDS)
            words = array("I", bits.to_bytes(4 * _CHUNK_WORDS, "little"))
            if sys.byteorder == "big":
                words.byteswap()
            self._left, self._taken_from = iter(words.tolist()), _CHUNK_WORDS
            yield self._left
