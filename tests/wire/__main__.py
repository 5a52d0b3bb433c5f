"""``python -m wire``: reads settings as one line of JSON, writes its port as a line, serves until its input ends."""

from __future__ import annotations

import asyncio
import json
import sys

from wire.handle import run
from wire.server import settings_of


async def main() -> None:
    settings = settings_of(json.loads(sys.stdin.readline()))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), stop.set)

    def ready(port: int) -> None:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()

    await run(settings, ready, stop)


if __name__ == "__main__":
    asyncio.run(main())
