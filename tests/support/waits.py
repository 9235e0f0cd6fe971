"""How long a test waits for what must come: so long that only a hang is a failure, however busy the machine is.

No test takes longer for it: what is waited for has come long before.
"""

from __future__ import annotations

from typing import Final

MAX_WAIT_SECONDS: Final = 120
