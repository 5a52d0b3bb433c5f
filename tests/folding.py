"""A file system that takes names that differ in case for one, as those of Windows and macOS do."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE = 16 << 20


@contextmanager
def folding_folder(folder: Path) -> Iterator[Path]:
    """Give a folder on NTFS that ignores case, or skip the test with the reason."""
    missing = [name for name in ("mkntfs", "lowntfs-3g", "umount") if shutil.which(name) is None]
    if missing or os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip(f"no file system that ignores case: it takes root, /dev/fuse and ntfs-3g ({', '.join(missing)})")
    image, place = folder / "ntfs.image", folder / "mounted"
    image.touch()
    os.truncate(image, _SIZE)
    place.mkdir()
    for command in (["mkntfs", "-q", "-F", "-f", image], ["lowntfs-3g", "-o", "ignore_case,permissions", image, place]):
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"{command[0]} does not work here: {done.stderr.decode(errors='replace').strip()[-200:]}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)
