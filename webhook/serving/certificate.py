"""The certificate that is served, kept up to date with its files, without closing a connection.

The files are looked at each second. What is new, and can be served, is taken for every handshake from then on;
connections and handshakes that are under way keep what they have. What can't be served is said, and changes nothing.

Looked at, not listened for: inotify misses the renames of a volume that is mounted by subPath or over a network, and
still needs a second look for what goes bad or good with time. A look costs 20 us of a second, a new pair 1 ms once.

At the start there may be no pair. Two cases are waited for, since somebody is there who mends them: neither file is
there yet, in a directory that is (a Secret that nobody has made); and anything wrong in a volume that a kubelet keeps.
Files that are wrong anywhere else were given by hand: that is said at once, and nothing is started.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from errno import ENOENT
from typing import Any, Final, Self

from webhook.serving.handshakes import Handshakes
from webhook.serving.pem import BadCertificate, Problem, check_dates, timestamp
from webhook.serving.routes import Check
from webhook.serving.tls import Files, Loaded, load
from webhook.telemetry.record import LOGGER

_LOOK_SECONDS: Final = 1.0
_REPEAT: Final = timedelta(minutes=1)  # of what nobody can call us with: often enough to be seen, seldom enough to read
_KUBELETS_LINK: Final = "..data"  # pkg/volume/util/atomic_writer.go: in each volume of files, also in an empty one


class CurrentContext(ssl.SSLContext):
    """A context that makes every connection by another one, which can be swapped at any time.

    A listener keeps the one that it was given. Both loops make a connection's TLS by
    `wrap_bio`, a public method, at its start: so a connection is made by one fresh context and no other, its protocol
    versions and the callers it takes included. (A `sni_callback` could only exchange the certificate.)
    """

    current: ssl.SSLContext

    def __new__(cls, first: ssl.SSLContext) -> Self:
        """Begin with this one."""
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made.current = first
        return made

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """A connection's TLS, by the context that is current now."""
        return self.current.wrap_bio(*arguments, **named)


class ServingCertificate:
    """What is served and what is wrong with the files, as of the last look.

    `reloads` (pairs taken after the first), `failures` (distinct ones, by kind) and `not_after` are for metrics.

    Raises, as it is made:
        BadCertificate: files that were given by hand can't be served.
    """

    def __init__(
        self,
        files: Files,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        self.reloads = 0
        self.failures: Counter[Problem] = Counter()
        self.problem: BadCertificate | None = None
        self.handshakes = Handshakes(now)
        self._files = files
        self._now = now
        self._look_seconds = look_seconds
        self._loaded: Loaded | None = None
        self._context: CurrentContext | None = None
        self.there = asyncio.Event()
        self._said = datetime.min.replace(tzinfo=UTC)
        try:
            self._renew(now())
        except BadCertificate as problem:
            if not _is_kept(files):
                raise
            self._blame(problem, now())

    @property
    def not_after(self) -> datetime | None:
        """Until when the certificate that is served is valid; None where there is none."""
        return self._loaded.certificate.not_valid_after_utc if self._loaded else None

    @property
    def context(self) -> ssl.SSLContext:
        """The context to listen with, for as long as anybody listens, once a certificate is `there`."""
        assert self._context, "there is no certificate yet"  # noqa: S101 - a mistake of the caller's
        return self._context

    async def keep(self) -> None:
        """Look again and again, for ever."""
        while True:
            await asyncio.sleep(self._look_seconds)
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the task's supervisor: what is served is served on
                LOGGER.exception("certificate check failed")

    def look(self) -> None:
        """Take what is new and good; say, once, what is not. What can go right at the next look is no exception."""
        now = self._now()
        try:
            taken = self._renew(now)
        except BadCertificate as problem:
            self._blame(problem, now)
            return
        if taken and self.reloads:
            _log(logging.INFO, "certificate taken", valid_until=self.not_after)
        elif not taken and self.problem is not None:
            _log(logging.INFO, "certificate files are as they were", valid_until=self.not_after)
        self.problem = None

    def check(self) -> Check:
        """For /readyz: nobody is sent here before there is a certificate. A bad one later takes nobody away.

        All replicas have the same files; one that is not ready is not called, and helps no VM.
        """
        if self.not_after is None:
            return Check("certificate", ok=False, detail=f"waiting for one that can be served: {self.problem}")
        served = f"valid until {timestamp(self.not_after)}"
        if self.problem is None:
            return Check("certificate", ok=True, detail=served)
        return Check("certificate", ok=False, detail=f"{self.problem}; serving one {served}", gates=False)

    def _renew(self, now: datetime) -> bool:
        """Whether there was anything new to take."""
        if self._loaded is not None and self._files.read() == self._loaded.contents:
            check_dates(self._loaded.certificate, self._files.cert_file, now)
            return False
        self._loaded = loaded = load(self._files, now)
        self.handshakes.watch(loaded.context)
        if self._context is None:
            self._context = CurrentContext(loaded.context)
            self.there.set()
        else:
            self._context.current = loaded.context
            self.reloads += 1
        return True

    def _blame(self, problem: BadCertificate, now: datetime) -> None:
        """Count and log what is new; what keeps everybody away is logged again from time to time."""
        new = str(problem) != str(self.problem)
        self.problem = problem
        if new:
            self.failures[problem.problem] += 1
        waiting, expired = self.not_after is None, self.not_after is not None and now >= self.not_after
        if not new and not ((waiting or expired) and now >= self._said + _REPEAT):
            return
        self._said = now
        if waiting:
            _log(logging.WARNING, "waiting for a certificate", because=str(problem))
        elif expired:
            _log(logging.ERROR, "serving an expired certificate", because=str(problem), valid_until=self.not_after)
        else:
            _log(logging.ERROR, "certificate not taken", because=str(problem), valid_until=self.not_after)


def _is_kept(files: Files) -> bool:
    """Is there somebody who will mend what is wrong? See the module's docstring."""
    if any((file.parent / _KUBELETS_LINK).is_symlink() for file in files.all):
        return True
    pair = (files.cert_file, files.key_file)
    nothing_yet = all(content in (ENOENT, b"") for content in files.read()[: len(pair)])
    return nothing_yet and all(file.parent.is_dir() for file in pair)


def _log(level: int, message: str, **fields: object) -> None:
    LOGGER.log(level, message, extra={"fields": fields})
