"""Python's reader of ZIP archives, with the packings of today also before Python 3.14."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

__all__ = ["ZstdError", "zipfile"]
