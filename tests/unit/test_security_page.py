"""docs/security.md promises only what a test shows: each sentence about who may do what has one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
PAGE: Final = TESTS.parent / "docs/security.md"

INSTALL: Final = "manifests/test_install.py"
CERTS_POLICY: Final = "apiserver/test_certs_policy.py"
CONFINED: Final = "apiserver/test_confined_accounts.py"
INSTALL_POD: Final = "manifests/test_install_pod.py"
VARIANTS: Final = "manifests/test_install_variants.py"
PROPERTIES: Final = "unit/core/test_properties.py"
SUPPLY: Final = "unit/test_supply_chain.py"
LIMITS: Final = "unit/core/test_pod_limits.py"

CLAIMS: Final[dict[str, Sequence[str]]] = {
    # The accounts.
    "the webhook's": (
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        "manifests/test_reunite.py::test_the_account_may_do_what_a_run_does_and_nothing_else",
    ),
    "the certificate controller's": (f"{INSTALL}::test_the_controller_may_keep_its_three_objects_and_nothing_else",),
    "that of `reunite`": ("manifests/test_reunite.py::test_the_account_may_do_what_a_run_does_and_nothing_else",),
    "The webhook can read no Secret": (
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        f"{CONFINED}::test_an_event_is_our_own_and_about_a_vm",
        f"{INSTALL}::test_the_controller_may_keep_its_three_objects_and_nothing_else",
        f"{CERTS_POLICY}::test_the_controller_may_change_no_field_of_a_webhook",
        f"{CERTS_POLICY}::test_the_controller_may_write_only_certificates_into_a_secret",
        f"{CERTS_POLICY}::test_the_controller_may_take_no_field_from_a_field_manager",
        f"{CONFINED}::test_the_certificate_controller_writes_certificates",
        f"{INSTALL_POD}::test_the_pod_has_one_container_whose_user_can_read_and_nobody_write",
        f"{INSTALL_POD}::test_the_namespace_enforces_the_restricted_standard",
    ),
    "**A stolen token reads more": (
        "unit/test_bundle_kept.py::test_cloud_init_and_keys_of_a_vm_are_left_out",
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
    ),
    "The pods may connect": (
        f"{INSTALL_POD}::test_a_network_policy_leaves_the_way_to_the_api_server",
        "manifests/test_chart_values.py::test_the_suites_of_the_chart_pass",
        f"{INSTALL_POD}::test_the_install_stands_in_nobodys_way",
    ),
    # The key of the authority.
    "One authority issues": (
        "component/certs/test_controller.py::test_a_renewal_is_one_write_and_leaves_the_bundle_as_it_is",
        f"{INSTALL}::test_the_controller_may_keep_its_three_objects_and_nothing_else",
        f"{VARIANTS}::test_no_pod_mounts_the_key_of_the_authority",
        f"{VARIANTS}::test_no_pod_mounts_the_key_of_the_authority",
    ),
    "The certificate controller makes a new authority": (
        "apiserver/test_certs.py::test_an_authority_that_somebody_deletes_is_replaced_beside_the_old_one",
        "unit/certs/test_repair.py::test_an_authority_that_leaked_leaves_though_controllers_do_not_live_for_an_hour",
        "apiserver/test_rotation.py::test_no_call_is_lost_while_all_is_rotated_and_the_controller_is_killed",
        "unit/certs/test_repair.py::test_an_authority_that_somebody_adds_leaves_at_once",
    ),
    # The threats.
    "The webhook fails, is slow, or gives nonsense": (
        "apiserver/test_fail_open.py::test_the_pod_is_created_as_it_is",
        "unit/core/test_admit.py::test_operations_that_do_not_apply_are_not_sent",
    ),
    "Somebody takes over the webhook's pod": (
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
    ),
    "Somebody takes over the certificate controller's pod": (
        f"{INSTALL}::test_the_controller_may_keep_its_three_objects_and_nothing_else",
        f"{CERTS_POLICY}::test_the_controller_may_change_no_metadata",
    ),
    "Somebody takes over `reunite`": (
        "manifests/test_reunite.py::test_a_new_install_only_says_what_it_would_do",
        f"{CONFINED}::test_the_account_may_create_only_what_the_program_creates",
    ),
    "Another pod calls the webhook": (
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        "component/kube/scheduler_cache/test_vms_that_exist.py::test_a_pod_of_no_vm_costs_one_read_and_leaves_nothing",
        "component/app/test_unread_owners.py::test_the_page_and_the_log_have_each_other_call",
        "component/serving/test_floods.py::test_a_flood_of_connections_keeps_nobody_from_an_answer",
        "apiserver/test_client_verification.py::test_a_caller_of_another_name_is_refused",
    ),
    "A text or a list without end": (
        f"{LIMITS}::test_nothing_of_a_long_text_is_stored_or_repeated",
        "unit/core/api/test_admission_review.py::test_another_body_is_rejected_with_the_field_and_the_reason",
        "component/telemetry/test_log_calls.py::test_bad_reviews_are_logged_once_a_minute",
    ),
    "A large object, or one that changes": (
        "unit/kube/records/test_bounded.py::test_a_cache_holds_what_its_records_keep_and_nothing_of_what_was_before",
        "unit/kube/records/test_large_pods.py::test_while_a_bound_pods_terms_are_not_known_no_node_is_required",
        "unit/kube/informer/test_refusals.py::test_refusal",
    ),
    "Another pod reads the page or `/metrics`": (
        "component/page/test_page_state.py::test_the_page_answers_only_on_the_loopback_address",
        "component/page/test_page_state.py::test_a_foreign_name_is_refused",
        "component/app/test_health.py::test_health_names_what_failed",
    ),
    "A user writes a wrong or hostile annotation": (
        "apiserver/test_fail_open.py::test_a_bad_value_is_a_warning",
        f"{PROPERTIES}::test_the_new_affinity_admits_exactly_the_required_nodes_of_those_the_old_one_did",
        "unit/core/patch/test_unpatch.py::test_only_a_record_of_this_pod_removes_a_term",
        "component/test_cases.py::test_a_row_is_decided_as_it_says",
    ),
    "A user creates pods that nobody schedules": (
        "component/test_strangers.py::test_an_unbound_pod_of_a_stranger_changes_no_answer",
        "unit/kube/scheduler_cache/test_assumed_pods.py::test_one_unbound_pod_of_a_vmi_counts",
        "component/test_strangers.py::test_a_bound_pod_makes_no_answer_stronger",
    ),
    "A wrong or hostile object": (
        f"{PROPERTIES}::test_a_required_node_has_firm_evidence_and_can_start_the_pod",
        "unit/core/evidence/test_share_managers.py::test_a_hostile_node_name_is_shown_short_and_in_ascii",
        "component/test_golden.py::test_a_transcript_is_what_users_read",
    ),
    "Secrets leak into logs or documents": (
        "component/telemetry/test_log_calls.py::test_a_call_is_logged_with_its_uid_and_without_a_secret",
        "unit/test_bundle_kept.py::test_what_a_type_takes_whole_is_narrowed",
        "unit/test_bundle_kept.py::test_the_environment_and_the_words_of_a_pod_are_left_out",
    ),
    "A changed dependency": (
        "manifests/test_image.py::test_packages_are_installed_by_hash_from_the_lock_and_never_built",
        f"{SUPPLY}::test_a_workflow_names_each_action_by_its_commit",
        f"{SUPPLY}::test_make_audit_asks_about_each_locked_package",
        "image/test_image.py::test_two_builds_of_one_commit_are_equal",
    ),
}
"""The words with which a part of the page begins, and a test for each of its sentences, in their order."""

REMAINS: Final[dict[str, Sequence[str]]] = {
    "The webhook fails, is slow, or gives nonsense": ("apiserver/test_fail_open.py::test_the_pod_is_created_as_it_is",),
    "Somebody takes over the webhook's pod": (
        f"{INSTALL}::test_the_service_account_may_read_what_the_program_reads_and_nothing_else",
        "apiserver/test_fail_open.py::test_a_webhook_server_that_answers_changes_the_pod",
    ),
    "Somebody takes over the certificate controller's pod": (
        f"{INSTALL}::test_the_controller_may_keep_its_three_objects_and_nothing_else",
    ),
    "Somebody takes over `reunite`": (f"{CONFINED}::test_the_account_may_create_only_what_the_program_creates",),
    "Another pod calls the webhook": (
        "component/kube/scheduler_cache/test_vms_that_exist.py::test_a_pod_of_no_vm_costs_one_read_and_leaves_nothing",
        "component/kube/scheduler_cache/test_vms_that_exist.py::test_a_pod_of_a_vm_is_assumed_told_and_shown",
        "component/kube/scheduler_cache/test_vms_that_exist.py::test_a_pod_of_a_vm_is_assumed_told_and_shown",
    ),
    "A text or a list without end": ("unit/kube/records/test_large_pods.py::test_a_long_field_is_left_out_and_named",),
    "Another pod reads the page or `/metrics`": (
        "unit/telemetry/test_vm_metrics.py::test_a_vm_in_trouble_has_a_sample_with_its_name",
    ),
    "A user creates pods that nobody schedules": (
        "component/kube/scheduler_cache/test_vms_that_exist.py::test_an_unbound_pod_counts_while_its_vm_exists",
    ),
    "A user writes a wrong or hostile annotation": (
        "component/test_cases.py::test_a_row_is_decided_as_it_says",
        "unit/core/patch/test_unpatch.py::test_only_a_record_of_this_pod_removes_a_term",
        "unit/core/patch/test_unpatch.py::test_what_the_record_counts_is_taken_out",
    ),
    "A wrong or hostile object": (
        "component/test_cases.py::test_a_row_is_decided_as_it_says",
        "component/test_golden.py::test_a_transcript_is_what_users_read",
    ),
    "A large object, or one that changes": (
        "unit/kube/records/test_bounded.py::test_a_cache_holds_what_its_records_keep_and_nothing_of_what_was_before",
        "unit/kube/test_nesting.py::test_a_large_object_is_cut_in_half_a_second",
        "unit/kube/records/test_large_pods.py::test_a_bound_pod_with_a_long_field_takes_its_requests_and_its_node_is_not_required",
    ),
    "Secrets leak into logs or documents": ("unit/test_bundle_kept.py::test_cloud_init_and_keys_of_a_vm_are_left_out",),
    "A changed dependency": ("image/test_image.py::test_two_builds_of_one_commit_are_equal",),
}
"""The same for what remains, the last column."""


def sentences(text: str) -> list[str]:
    """The sentences of a part, without the addresses of its links."""
    plain = re.sub(r"\]\([^)]*\)", "]", " ".join(text.split()))
    return [sentence for sentence in re.split(r"(?<=\.) (?=[A-Z\[`])", plain) if sentence]


def parts() -> Iterator[tuple[str, str]]:
    """Each part of the page that promises something: its first words and its text, of a row the middle column."""
    for block in PAGE.read_text(encoding="utf-8").split("\n\n"):
        for row in re.findall(r"^\| (.+?) \| (.+?) \|", block, re.MULTILINE):
            if not set(row[0]) <= {"-", "|"}:
                yield row
        if not block.startswith(("|", "#", "```")):
            yield block, block


@cache
def functions_of(module: str) -> set[str]:
    """The names of the functions of a module of tests."""
    tree = ast.parse((TESTS / module).read_text(encoding="utf-8"))
    return {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("start", CLAIMS)
def test_each_sentence_has_a_test(start: str) -> None:
    """A sentence that is new, or that has gone, needs another look at the tests."""
    (text,) = [text for first, text in parts() if first.startswith(start)]
    assert len(sentences(text)) == len(CLAIMS[start]), sentences(text)
    for named in CLAIMS[start]:
        module, _, test = named.partition("::")
        assert test in functions_of(module), named


@pytest.mark.parametrize("start", REMAINS)
def test_what_remains_has_a_test(start: str) -> None:
    """Each threat tells it, and each sentence has one."""
    rows = re.findall(r"^\| (.+?) \| .+? \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    (text,) = [last for first, last in rows if first.startswith(start)]
    assert len(sentences(text)) == len(REMAINS[start]), sentences(text)
    for named in REMAINS[start]:
        module, _, test = named.partition("::")
        assert test in functions_of(module), named


def test_each_threat_is_looked_at() -> None:
    """A new one needs its tests in both columns."""
    threats = re.findall(r"^\| (.+?) \| .+? \| .+? \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(threats) == len(REMAINS) + 1  # the heading
    assert REMAINS.keys() <= CLAIMS.keys()


def test_each_row_is_looked_at() -> None:
    """A new account or threat needs its tests."""
    rows = [first for first, text in parts() if first != text and not first.startswith(("Account", "Threat"))]
    assert rows
    assert [row for row in rows if not row.startswith(tuple(CLAIMS))] == []
