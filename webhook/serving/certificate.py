"""The serving certificate, reloaded when its files change, without closing a connection.

The webhook compares the files each second. It uses a new pair for every handshake from then on, if the pair can be
served. Connections and handshakes that are under way keep the pair that they began with. A pair that can't be served is
logged, once a minute, and changes nothing.

Why it reads the files instead of using inotify: inotify misses the renames of a volume that is mounted by subPath or
over a network. It also does not report a certificate that expires. A check takes 20 us, a new pair 1 ms.

At the start there may be no pair. The webhook waits in two cases, because something will repair the files:

- Neither file exists, but their directory does: nobody has created the Secret yet.
- The files are in a volume that a kubelet writes, whatever is wrong with them.

In all other cases a user wrote the files. Then the process reports the problem and does not start.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from errno import ENOENT
from typing import Final

from cryptography import x509
from prometheus_client.metrics_core import Metric

from webhook.component_base.health import Check, counter, gauge
from webhook.component_base.log_line import OnceAMinute
from webhook.component_base.pem import BadCertificate, Problem, check_dates, rfc3339
from webhook.serving.tls import Contents, Handshakes, TLSFiles, load
from webhook.telemetry.record import LOGGER

_CHECK_SECONDS: Final = 1.0
_KUBELETS_LINK: Final = "..data"  # pkg/volume/util/atomic_writer.go: in each volume of files, even in an empty one


class ServingCertificate:
    """The pair that is served, and the problem of its files at the last check.

    Attributes:
        available: set when there is a certificate to serve.
        problem: what is wrong with the files now, None if nothing.
        reloads: pairs that were loaded after the first one.
        failures: how often a new problem was found, by kind.

    The constructor raises BadCertificate if the files can't be served and nothing will repair them.
    """

    def __init__(
        self,
        files: TLSFiles,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self.reloads = 0
        self.failures: Counter[Problem] = Counter()
        self.problem: BadCertificate | None = None
        self.handshakes = Handshakes(now)
        self._files = files
        self._now = now
        self._check_seconds = check_seconds
        self._contents: Contents = ()  # of the files that are served
        self._certificate: x509.Certificate | None = None
        self._context: ssl.SSLContext | None = None
        self.available = asyncio.Event()
        self._lines = OnceAMinute(now)
        try:
            self._load_if_new(now())
        except BadCertificate as problem:
            if not _will_be_repaired(files):
                raise
            self._note_problem(problem, now())

    @property
    def not_before(self) -> datetime | None:
        """From when on the certificate that is served is valid; None if there is no certificate."""
        return self._certificate.not_valid_before_utc if self._certificate else None

    @property
    def not_after(self) -> datetime | None:
        """When the certificate that is served expires; None if there is no certificate."""
        return self._certificate.not_valid_after_utc if self._certificate else None

    @property
    def context(self) -> ssl.SSLContext:
        """The context for a new connection: certificate, versions and callers of the same files.

        Call this after `available` is set.
        """
        assert self._context, "there is no certificate yet"  # noqa: S101 - a mistake of the calling code
        return self._context

    async def watch_files(self) -> None:
        """Check the files each second until this task is canceled."""
        while True:
            await asyncio.sleep(self._check_seconds)
            try:
                self.check_files()
            except Exception:  # noqa: BLE001 - the task's supervisor: the webhook continues with the pair that it has
                LOGGER.exception("certificate check failed")

    def check_files(self) -> None:
        """Load new files if they can be served. Otherwise log the problem once; a later check can succeed."""
        now = self._now()
        try:
            loaded = self._load_if_new(now)
        except BadCertificate as problem:
            self._note_problem(problem, now)
            return
        if loaded and self.reloads:
            _log(logging.INFO, "certificate loaded", valid_until=self.not_after)
        elif not loaded and self.problem is not None:
            _log(logging.INFO, "certificate files match the served certificate again", valid_until=self.not_after)
        self.problem = None

    def check(self) -> Check:
        """Return the check for /readyz. It gates until the first certificate, and only shows problems after that.

        All replicas have the same files. If a problem made them all unready, the API server could call none of them.
        """
        if self.not_after is None:
            return Check(
                "certificate", ok=False, detail=f"waiting for a certificate that can be served: {self.problem}"
            )
        served = f"valid until {rfc3339(self.not_after)}"
        if self.problem is None:
            return Check("certificate", ok=True, detail=served)
        return Check("certificate", ok=False, detail=f"{self.problem}; serving a certificate {served}", gates=False)

    def _load_if_new(self, now: datetime) -> bool:
        """Load the files if they have changed. Return whether they have."""
        contents = self._files.read()
        if self._certificate is not None and contents == self._contents:
            check_dates(self._certificate, self._files.cert_file, now)
            return False
        self._context, self._certificate = load(self._files, contents, now)
        self._contents = contents
        self.reloads += self.available.is_set()
        self.available.set()
        return True

    def _note_problem(self, problem: BadCertificate, now: datetime) -> None:
        """Count a new problem. Log it at once, and each minute as long as it lasts."""
        if str(problem) != str(self.problem):
            self.failures[problem.problem] += 1
        self.problem = problem
        if not self._lines.is_due(str(problem)):
            return
        if self.not_after is None:
            _log(logging.WARNING, "waiting for a certificate", because=str(problem))
        else:
            message = "serving an expired certificate" if now >= self.not_after else "certificate not loaded"
            _log(logging.ERROR, message, because=str(problem), valid_until=self.not_after)


def _will_be_repaired(files: TLSFiles) -> bool:
    """Whether a kubelet, or the creation of the Secret, will repair the files: see the module's docstring."""
    if any((file.parent / _KUBELETS_LINK).is_symlink() for file in files.all):
        return True
    pair = (files.cert_file, files.key_file)
    nothing_yet = all(content in (ENOENT, b"") for content in files.read()[: len(pair)])
    return nothing_yet and all(file.parent.is_dir() for file in pair)


def _log(level: int, message: str, **fields: object) -> None:
    LOGGER.log(level, message, extra={"fields": fields})


def certificate_families(certificate: ServingCertificate) -> Iterator[Metric]:
    """Return the metrics of the certificate that is served, of its files, and of failed handshakes."""
    begin, until = certificate.not_before, certificate.not_after
    yield gauge(
        "certificate_not_before_timestamp_seconds",
        "Time from which the served certificate is valid; absent while there is no certificate.",
        (),
        {(): begin.timestamp()} if begin else {},
    )
    yield gauge(
        "certificate_expiry_timestamp_seconds",
        "Time at which the served certificate expires; absent while there is no certificate.",
        (),
        {(): until.timestamp()} if until else {},
    )
    yield counter(
        "certificate_reloads", "Certificates that were loaded after the first one.", (), {(): certificate.reloads}
    )
    yield counter(
        "certificate_failures",
        "Certificates that were not loaded, by the problem of their files.",
        ("problem",),
        {(each.value,): certificate.failures[each] for each in Problem},
    )
    yield gauge(
        "certificate_problem",
        "1 while the certificate's files can't be served; the webhook then serves the previous pair, if any.",
        (),
        {(): certificate.problem is not None},
    )
    yield counter(
        "tls_handshake_failures",
        "Failed TLS handshakes, by OpenSSL's reason.",
        ("reason",),
        {(each,): n for each, n in certificate.handshakes.failures.items()},
    )
