"""The libraries' own talk, switched off: progress bars, and warnings such as that a new head is
newly made. What matters of it is checked and said by us."""

from huggingface_hub.utils import logging as hub_logging
from huggingface_hub.utils.tqdm import disable_progress_bars
from transformers.utils import logging as transformers_logging


def silence_libraries() -> None:
    """Errors alone are logged from here on, in this whole process."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    hub_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    disable_progress_bars()
