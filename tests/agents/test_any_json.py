"""Whatever JSON a person has: what is put in is there, and taking it out gives the text back."""

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from stash_mcp.agents import jsonc

names = st.text(max_size=6).filter(lambda name: name != "ours")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
indents = st.sampled_from([None, 1, 2, 4, "\t"])
line_ends = st.sampled_from(["\n", "\r\n"])


@settings(max_examples=80, deadline=None)
@given(
    before=st.dictionaries(names, values, max_size=3),
    servers=st.dictionaries(names, values, max_size=3),
    after=st.dictionaries(names, values, max_size=2),
    indent=indents,
    line_end=line_ends,
    commented=st.booleans(),
)
def test_putting_and_taking_is_as_if_nothing_had_been(
    before, servers, after, indent, line_end, commented
) -> None:
    document = {**before, "list of servers": servers, **after}
    text = json.dumps(document, indent=indent, ensure_ascii=False).replace("\n", line_end)
    if commented and indent is not None:
        text = re.sub(r"(?<=[{\[,])(?=\r?\n)", " // a { comment, of : mine", text)
    path = ("list of servers", "ours")
    entry = {"command": "x", "args": ["a", 'b"c']}
    put = jsonc.put(text, path, entry, comments=True)
    meaning = jsonc.parse(put, comments=True).value
    assert meaning == {**document, "list of servers": {**servers, "ours": entry}}
    assert jsonc.put(put, path, entry, comments=True) == put
    assert jsonc.take(put, path, comments=True) == text
    if not commented:
        assert json.loads(put) == meaning
