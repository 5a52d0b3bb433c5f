"""Which reader of YAML is used: libyaml's where PyYAML was built with it, which takes a tenth of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    Loader = yaml.SafeLoader
else:
    Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
