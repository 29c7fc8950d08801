"""A pull or a push in sentences, the same for an agent and for a person."""

from stash_mcp.backends.hybrid import Counts, Held, SyncReport
from stash_mcp.server.counting import count


def sync_in_words(report: SyncReport) -> list[str]:
    """What was done, or would be; what was left as it is; and what to do about that."""
    sentences = [
        f"{_counts('Conversations', report.traces)} {_counts('Annotations', report.annotations)}"
    ]
    if report.dry_run:
        sentences.insert(0, f"Nothing was changed. A {report.direction} would do this:")
    if report.reward_model_id is not None:
        sentences.append(f"The reward model is in the library as {report.reward_model_id}.")
    sentences += _gone(report)
    if report.elsewhere:
        them = count(report.elsewhere, "thing")
        sentences.append(
            f"{them} of the library came from or went to another account or server of Stash, and "
            "did not go to this one; name the conversations to send them (trace_ids, or --trace; "
            "'*' is all)."
        )
    if report.conflicts:
        winner = "Stash's side" if report.direction == "pull" else "this side"
        sentences.append(
            f"{count(len(report.conflicts), 'conflict')}, left as they are on both sides; "
            f"stash-skills {report.direction} --force lets {winner} win."
        )
    if report.refused:
        sentences.append(
            f"{count(len(report.refused), 'thing')} could not be taken over; once that is mended, "
            f"the next {report.direction} takes it."
        )
    return sentences


def _gone(report: SyncReport) -> list[str]:
    """What was deleted at Stash, and what to do about that."""
    kinds = {"conversation": report.gone, "annotation": report.annotations_gone}
    gone = " and ".join(count(number, noun) for noun, number in kinds.items() if number)
    if not gone:
        return []
    done = "stay here" if report.direction == "pull" else "were not sent again"
    return [
        f"Deleted at Stash since they were there: {gone}; they {done}, and stash-skills push "
        "--force sends them again."
    ]


def held_in_words(held: Held) -> str:
    return f"{held.trace_id}: {held.why}"


def _counts(noun: str, counts: Counts) -> str:
    return f"{noun}: {counts.new} new, {counts.changed} changed, {counts.unchanged} unchanged."
