"""What a skill's body asks an agent to do that a person would not want: rules on plain words.

Words can say a thing in more ways than rules can list: these find the usual ones, in English and in
the usual shells. What they cannot tell from the text, and on which side they then err, each says in
its own file.
"""

from stash_mcp.skills.credentials import credentials
from stash_mcp.skills.findings import Rule
from stash_mcp.skills.harm import destroys, reads_secrets, runs_remote_code
from stash_mcp.skills.hiding import hides
from stash_mcp.skills.sending import sends_data
from stash_mcp.skills.unseen import out_of_sight, too_long

WISHES: tuple[Rule, ...] = (
    Rule(
        "sends-data",
        "This sends files, secrets or the conversation to somewhere else, or puts them into an "
        "address that is fetched.",
        sends_data,
    ),
    Rule(
        "remote-code",
        "This runs code that comes from elsewhere or is encoded, which nobody has read.",
        runs_remote_code,
    ),
    Rule(
        "destroys",
        "This deletes a whole folder, disk or system.",
        destroys,
    ),
    Rule(
        "reads-secrets",
        "This reads a file that holds keys, passwords or a person's history, or shows it.",
        reads_secrets,
    ),
    Rule(
        "secret",
        "This looks like a key or a password; a skill is read by many. Name where it is kept.",
        credentials,
    ),
    Rule(
        "hides-from-person",
        "This asks the agent to hide what it does from the person it works for.",
        hides,
    ),
    Rule(
        "out-of-sight",
        "A line this long, a block of encoded text, or text behind so much blank space or styled "
        "away is not read by a person, but the agent reads it.",
        out_of_sight,
    ),
    Rule(
        "too-long",
        "The text is longer than a skill may be, so that nobody reads all of it.",
        too_long,
    ),
)
