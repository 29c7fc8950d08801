"""Which news this process has told its agent."""

import threading
from dataclasses import dataclass, field

from stash_mcp.models import Notice


@dataclass
class ToldHere:
    """A run that was put off is news again when it is settled. lock: held while news are taken."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    news: set[tuple[str, str]] = field(default_factory=set)

    def is_new(self, notice: Notice) -> bool:
        return (notice.run_id, notice.state) not in self.news

    def add(self, notice: Notice) -> None:
        self.news.add((notice.run_id, notice.state))
