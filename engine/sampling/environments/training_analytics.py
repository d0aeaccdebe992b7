"""What Unity's analytics receive of a training, where the user wants that."""

import hashlib
import hmac
from typing import TypeAlias

from pydantic import BaseModel

Field: TypeAlias = bool | int | str
_KEY = b"unity.ml-agents"  # ML-Agents' own, which its C# package uses, too: not a secret


class TrainingAnalytics(BaseModel):
    """Two messages of the protocol, by the names of their fields.

    behaviors: the second one for each behavior of the file, without behavior_name; "" is for all others, if they have
    settings.
    """

    environment: dict[str, Field]
    behaviors: dict[str, dict[str, Field]]


def hashed(text: str) -> str:
    """What is sent in place of names and paths: HMAC-SHA256, in hexadecimal."""
    return hmac.new(_KEY, text.encode(), hashlib.sha256).hexdigest()
