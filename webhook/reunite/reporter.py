"""Reporter: tells what `reunite` does and why not yet, as log lines, Events on the VirtualMachineInstances, and counts.

What is remembered here only keeps the same line from being written twice. A restart tells each VM's rule once more.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from webhook.core.observe.events import Event
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.telemetry.record import LOGGER

WAITING: Final = "ReuniteWaiting"
DRY_RUN: Final = "ReuniteDryRun"
STARTED: Final = "ReuniteStarted"
SUCCEEDED: Final = "ReuniteSucceeded"
FAILED: Final = "ReuniteFailed"
RESTARTED: Final = "ReuniteRestarted"
_REPEAT_SECONDS: Final = 1_800.0  # an API server keeps an Event for an hour, and `status` shows the last one
_Key = tuple[str, str]


class Reporter:
    """What one process has reported.

    Attributes:
        migrations: how many migrations were created, refused, deleted, and ended in success or failure.
        restarts: how many pods of stuck VMs were deleted, and how many deletions were refused or had no answer.
        waiting: how many VMs wait, by the rule that says no.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        vmi_uid: Callable[[str, str], str],
        clock: Callable[[], float] = time.monotonic,
        *,
        dry_run: bool = False,
    ) -> None:
        self.migrations: Counter[str] = Counter(
            dict.fromkeys(("created", "refused", "deleted", "succeeded", "failed"), 0)
        )
        self.restarts: Counter[str] = Counter(dict.fromkeys(("done", "refused"), 0))
        self.waiting: Counter[Rule] = Counter()
        self._on_event = on_event
        self._vmi_uid = vmi_uid
        self._clock = clock
        self._dry_run = dry_run
        self._repeat_at: dict[_Key, float] = {}
        self._rules: dict[_Key, Rule] = {}
        self._said: dict[_Key, str] = {}
        self._would: dict[_Key, tuple[str, float]] = {}  # what a dry run said, and when it says that again
        self._running: dict[str, Migration] = {}
        self._problems: tuple[str, ...] = ()

    def not_known(self, problems: tuple[str, ...]) -> None:
        """Log once that caches are not up to date, so that nothing is done."""
        if problems != self._problems:
            self._problems = problems
            LOGGER.warning("waiting for caches", extra={"fields": {"because": list(problems)}})

    def known(self) -> None:
        """Note that every cache is up to date."""
        if self._problems:
            self._problems = ()
            LOGGER.info("caches are up to date")

    def rules(self, waiting: Mapping[_Key, NotYet]) -> None:
        """Tell each VM whose first rule is another one than before. Repeat the Event of a rule that still says no."""
        self.waiting = Counter(each.rule for each in waiting.values())
        now = self._clock()
        dry = "; --dry-run=on" if self._dry_run else ""
        for key, why in waiting.items():
            if self._rules.get(key) is not why.rule:
                self._tell(key, WAITING, f"{why}{dry}", "not yet")
            elif now >= self._repeat_at[key]:
                self._event(key, WAITING, f"{why}{dry}")
            else:
                continue
            self._repeat_at[key] = now + _REPEAT_SECONDS
        self._repeat_at = {key: at for key, at in self._repeat_at.items() if key in waiting}
        self._rules = {key: why.rule for key, why in waiting.items()}
        self._said = {key: sentence for key, sentence in self._said.items() if key not in waiting}
        self._would = {key: said for key, said in self._would.items() if key not in waiting}

    def would(self, key: _Key, sentence: str) -> None:
        """Tell what a dry run does not do, once until a rule says no. Repeat the Event, as that of a rule."""
        said, repeat_at = self._would.get(key, ("", 0.0))
        if said == sentence and self._clock() < repeat_at:
            return
        self._would[key] = sentence, self._clock() + _REPEAT_SECONDS
        if said != sentence:
            LOGGER.info("dry run", extra={"fields": {"namespace": key[0], "vmi": key[1], "would": sentence}})
        self._event(key, DRY_RUN, f"would {sentence}; --dry-run=on, so nothing is done")

    def created(self, key: _Key, sentence: str) -> None:
        """Tell that a migration was created."""
        self.migrations["created"] += 1
        self._tell(key, STARTED, sentence, "migration created")

    def refused(self, key: _Key, because: str) -> None:
        """Log that the API server or KubeVirt refused a request, or that there was no answer; the same answer once."""
        self.migrations["refused"] += 1
        if self._is_new(key, because):
            LOGGER.warning("refused", extra={"fields": {"namespace": key[0], "vmi": key[1], "because": because}})

    def restarted(self, key: _Key, sentence: str) -> None:
        """Tell that the pod of a stuck VM was deleted."""
        self.restarts["done"] += 1
        self._tell(key, RESTARTED, sentence, "stuck VM restarted")

    def not_restarted(self, key: _Key, because: str) -> None:
        """Log that the API server did not delete the pod of a stuck VM, or gave no answer; the same answer once."""
        self.restarts["refused"] += 1
        if self._is_new(key, because):
            LOGGER.warning("not restarted", extra={"fields": {"namespace": key[0], "vmi": key[1], "because": because}})

    def deleted(self, migration: Migration) -> None:
        """Log that a migration that did not begin was deleted."""
        self.migrations["deleted"] += 1
        fields = {"namespace": migration.namespace, "vmi": migration.vmi, "migration": migration.name}
        LOGGER.info("migration deleted: virt-controller has not begun it", extra={"fields": fields})

    def ended(self, migrations: Iterable[Migration]) -> None:
        """Tell which migrations of ours ended since the last call."""
        ours = {each.uid: each for each in migrations if each.ours}
        for uid in self._running:
            after = ours.get(uid)
            if after is None or not after.is_final:
                continue
            self.migrations["succeeded" if after.succeeded else "failed"] += 1
            where = f"migration {after.name} to node {after.target_node or 'unknown'}"
            reason, sentence = (SUCCEEDED, f"{where} succeeded") if after.succeeded else (FAILED, f"{where} failed")
            self._tell((after.namespace, after.vmi), reason, sentence, "migration ended", warning=after.failed)
        self._running = {uid: each for uid, each in ours.items() if not each.is_final}

    def _is_new(self, key: _Key, sentence: str) -> bool:
        """Whether this is not what was logged for the VM last; a round would repeat it every ten seconds."""
        before, self._said[key] = self._said.get(key), sentence
        return before != sentence

    def _tell(self, key: _Key, reason: str, sentence: str, line: str, *, warning: bool = False) -> None:
        namespace, name = key
        fields = {"namespace": namespace, "vmi": name, "because": sentence}
        LOGGER.log(30 if warning else 20, line, extra={"fields": fields})
        self._event(key, reason, sentence, warning=warning)

    def _event(self, key: _Key, reason: str, sentence: str, *, warning: bool = False) -> None:
        namespace, name = key
        uid = self._vmi_uid(namespace, name)
        if uid:
            self._on_event(
                Event(namespace=namespace, name=name, uid=uid, reason=reason, message=sentence, warning=warning)
            )
