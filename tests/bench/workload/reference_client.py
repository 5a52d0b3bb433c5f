"""A process of its own: phase after phase in a pool of threads, by the SDK's synchronous client, as the reference does.

``python reference_client.py PHASES URL THREADS``
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openai import OpenAI


def main(path: str, url: str, threads: str) -> None:
    """Ask the phases at ``path``."""
    with (
        OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
        ThreadPoolExecutor(int(threads)) as pool,
    ):
        for phase in json.loads(Path(path).read_bytes()):
            asked = [pool.submit(client.chat.completions.create, **body) for body in phase]
            for reply in asked:
                reply.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
