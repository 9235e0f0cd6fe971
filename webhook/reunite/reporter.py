"""Reporter: tells what `reunite` does and why not yet, as log lines, Events on the VirtualMachineInstances, and counts.

What is remembered here only keeps the same line from being written twice. A restart tells each VM's rule once more.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, unique
from typing import Final

from webhook.core.observe.events import Event
from webhook.core.reunite.migration import Migration
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.telemetry.record import LOGGER

_REPEAT_SECONDS: Final = 1_800.0  # an API server keeps an Event for an hour, and `status` shows the last one
_Key = tuple[str, str]


@unique
class EventReason(Enum):
    """Each Event: its reason, its type, and when it is written. The table in docs is made from it."""

    def __init__(self, code: str, kind: str, when: str) -> None:
        self.code = code
        self.kind = kind
        self.when = when

    WAITING = "ReuniteWaiting", "Normal", "the VM is apart or stuck and stays so: the first rule that says no"
    DRY_RUN = "ReuniteDryRun", "Normal", "what `reunite` would do; with `--dry-run=on` it does nothing"
    STARTED = "ReuniteStarted", "Normal", "a migration to the node of the share-managers was created"
    SUCCEEDED = "ReuniteSucceeded", "Normal", "such a migration has ended, and the VM is on its node"
    FAILED = "ReuniteFailed", "Warning", "such a migration has failed, and the VM has stayed"
    RESTARTED = "ReuniteRestarted", "Normal", "the pod of a stuck VM was deleted, so that KubeVirt starts the VM again"


class Reporter:
    """What one process has reported.

    Attributes:
        migrations: how many migrations were created, refused, deleted, and ended in success or failure.
        migrated_memory_bytes: the guest memory of the VMs whose migration succeeded, as far as it is known.
        restarts: how many pods of stuck VMs were deleted, and how many deletions were refused or had no answer.
        waiting: how many VMs wait, by the rule that says no.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        vmi_uid: Callable[[str, str], str],
        clock: Callable[[], float] = time.monotonic,
        *,
        memory_bytes: Callable[[str, str], int] = lambda _namespace, _name: 0,
        dry_run: bool = False,
    ) -> None:
        self.migrations: Counter[str] = Counter(
            dict.fromkeys(("created", "refused", "deleted", "succeeded", "failed"), 0)
        )
        self.migrated_memory_bytes = 0
        self.restarts: Counter[str] = Counter(dict.fromkeys(("done", "refused"), 0))
        self.waiting: Counter[Rule] = Counter()
        self._on_event = on_event
        self._vmi_uid = vmi_uid
        self._memory_bytes = memory_bytes
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
                self._tell(key, EventReason.WAITING, f"{why}{dry}", "not yet")
            elif now >= self._repeat_at[key]:
                self._event(key, EventReason.WAITING, f"{why}{dry}")
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
        self._event(key, EventReason.DRY_RUN, f"would {sentence}; --dry-run=on, so nothing is done")

    def created(self, key: _Key, sentence: str) -> None:
        """Tell that a migration was created."""
        self.migrations["created"] += 1
        self._tell(key, EventReason.STARTED, sentence, "migration created")

    def refused(self, key: _Key, because: str) -> None:
        """Log that the API server or KubeVirt refused a request, or that there was no answer; the same answer once."""
        self.migrations["refused"] += 1
        if self._is_new(key, because):
            LOGGER.warning("refused", extra={"fields": {"namespace": key[0], "vmi": key[1], "because": because}})

    def restarted(self, key: _Key, sentence: str) -> None:
        """Tell that the pod of a stuck VM was deleted."""
        self.restarts["done"] += 1
        self._tell(key, EventReason.RESTARTED, sentence, "stuck VM restarted")

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
            key = after.namespace, after.vmi
            if after.succeeded:
                self.migrated_memory_bytes += self._memory_bytes(*key)
                self._tell(key, EventReason.SUCCEEDED, f"{where} succeeded", "migration ended")
            else:
                self._tell(key, EventReason.FAILED, f"{where} failed", "migration ended")
        self._running = {uid: each for uid, each in ours.items() if not each.is_final}

    def _is_new(self, key: _Key, sentence: str) -> bool:
        """Whether this is not what was logged for the VM last; a round would repeat it every ten seconds."""
        before, self._said[key] = self._said.get(key), sentence
        return before != sentence

    def _tell(self, key: _Key, reason: EventReason, sentence: str, line: str) -> None:
        namespace, name = key
        fields = {"namespace": namespace, "vmi": name, "because": sentence}
        LOGGER.log(logging.WARNING if _warns(reason) else logging.INFO, line, extra={"fields": fields})
        self._event(key, reason, sentence)

    def _event(self, key: _Key, reason: EventReason, sentence: str) -> None:
        namespace, name = key
        uid = self._vmi_uid(namespace, name)
        if uid:
            warning = _warns(reason)
            event = Event(
                namespace=namespace, name=name, uid=uid, reason=reason.code, message=sentence, warning=warning
            )
            self._on_event(event)


def _warns(reason: EventReason) -> bool:
    return reason.kind == "Warning"
