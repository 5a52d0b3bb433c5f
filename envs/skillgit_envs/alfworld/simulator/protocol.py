"""What the program tells the fork server: a letter and the token of a game."""

from __future__ import annotations

import struct

FRAME = struct.Struct("!cI")
START = b"S"
"""Start a game; the socket that it talks over is attached."""
KILL = b"K"
"""Kill a game and all that it started."""
