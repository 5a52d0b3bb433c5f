"""What viewers of a live run cost the server: its processor time while many streams are open."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import httpx2


def viewers_core_share(
    process: int, base: str, cookies: dict[str, str], run: str, *, viewers: int, seconds: float
) -> float:
    """Return the share of a core that server ``process`` takes while ``viewers`` watch ``run`` for ``seconds``."""
    over = threading.Event()
    sizes = [0] * viewers  # bytes that each of them got

    def watch(number: int) -> None:
        with (
            httpx2.Client(base_url=base, cookies=cookies, timeout=30) as client,
            client.stream("GET", f"/run/{run}/live/stream") as answer,
        ):
            assert answer.status_code == httpx2.codes.OK
            for part in answer.iter_raw():
                sizes[number] += len(part)
                if over.is_set():
                    break

    threads = [threading.Thread(target=watch, args=(number,), daemon=True) for number in range(viewers)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)  # what coming costs is not what staying costs
    at_first = list(sizes)
    before, began = _cpu_s(process), time.monotonic()
    time.sleep(seconds)
    share = (_cpu_s(process) - before) / (time.monotonic() - began)
    over.set()
    assert all(map(int.__gt__, sizes, at_first)), "a viewer saw nothing"
    return share


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
