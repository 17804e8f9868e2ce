//! What holds for our own stores: what Kubernetes does not have, or does otherwise.

pub mod apply;
pub mod bookmarks;
pub mod cards;
pub mod concurrency;
pub mod delete;
pub mod expiry;
pub mod fences;
pub mod history;
pub mod keys;
pub mod kinds;
pub mod refusals;
pub mod retention;
pub mod revisions;
pub mod work;

/// One test for each case of the `own` suite. Takes the name of the function that makes a subject, after the
/// word `async` if it is one that has to wait and may find that there is none.
#[macro_export]
macro_rules! own_suite {
    ($($subject:ident)+) => {
        mod own {
            $crate::conformance_theme!(
                $($subject)+,
                own,
                revisions,
                [
                    rise_by_one_with_every_write,
                    stay_when_nothing_changes,
                    stay_in_a_dry_run,
                    of_a_dry_run_are_those_of_what_is_stored,
                    of_a_deletion_are_told_to_everybody,
                    cannot_be_given_to_a_new_object,
                    of_the_future_cannot_be_watched_from,
                    are_spelt_in_one_way,
                    of_the_future_cannot_be_listed_from,
                    are_shared_by_all_kinds,
                    of_a_kind_differ_after_its_changes_only,
                    of_a_list_are_the_newest,
                    can_be_listed_at,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                delete,
                [
                    asked_for_again_without_a_policy_keeps_it,
                    asked_for_again_lets_go_of_what_only_the_collector_held,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                history,
                [
                    says_who_wrote_what_and_when,
                    outlives_the_object,
                    is_read_in_parts,
                    has_nothing_that_was_not_written,
                    keeps_who_and_when_through_compaction,
                    remembers_attempts,
                    of_attempts_takes_no_revision,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                work,
                [
                    starts_empty,
                    is_made_by_a_claim,
                    is_claimed_with_rising_numbers,
                    is_claimed_only_by_who_saw_the_newest_claim,
                    is_saved_by_the_newest_claim_only,
                    is_forgotten_by_the_newest_claim_only,
                    is_scanned_by_controller,
                    takes_no_revision,
                    is_claimed_by_one_of_many,
                    takes_any_name,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                fences,
                [
                    of_the_newest_claim_let_writes_through,
                    of_older_claims_refuse_every_write,
                    that_were_given_back_refuse_every_write,
                    are_checked_when_the_write_is_done,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                expiry,
                [
                    ends_a_watch_from_a_compacted_position,
                    spares_the_newest_position,
                    ends_a_list_across_compaction,
                    takes_nothing_that_is_current,
                    goes_as_far_as_there_is_anything,
                    is_unknown_to_a_watch_that_keeps_up,
                    spares_a_slow_watcher_while_the_log_lasts,
                    cuts_off_a_watcher_that_is_too_slow,
                    spares_lists_in_one_piece,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                retention,
                [
                    expires_positions_after_the_window,
                    expires_positions_after_too_many_writes,
                    forgets_history_after_its_time,
                    forgets_attempts_after_their_time,
                    never_lets_a_revision_be_used_again,
                    leaves_names_free_to_be_used_again,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                keys,
                [
                    change_without_changing_anything_else,
                    change_as_often_as_one_likes,
                    change_while_others_write_and_watch,
                    leave_the_log_readable,
                    cannot_change_where_there_are_none,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                kinds,
                [
                    are_served_at_once,
                    get_the_names_that_were_left_out,
                    that_are_ending_take_no_new_objects,
                    end_with_their_definition,
                    outlive_definitions_that_were_not_accepted,
                    that_two_ask_for_at_the_same_moment_go_to_one,
                    that_are_built_in_cannot_be_redefined,
                    are_refused_in_versions_that_are_not_served,
                    have_a_schema_for_each_version,
                    keep_objects_of_versions_that_are_no_longer_served,
                    move_to_a_new_version_when_objects_are_written_back,
                    can_change_while_objects_are_made,
                    of_namespaces_end_with_their_finalizer,
                    stay_served_whatever_is_written_into_their_status,
                    that_become_stricter_let_go_of_what_is_there,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                bookmarks,
                [tell_how_far_a_quiet_watch_is, are_not_repeated, rise_with_the_events,]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                refusals,
                [
                    change_nothing_at_all,
                    name_what_is_too_large,
                    count_spec_and_status_together,
                    name_fields_that_cannot_be_selected_by,
                    name_patches_that_do_not_fit,
                    name_metadata_of_the_wrong_type,
                    name_secrets_that_are_not_base64,
                    bound_the_size_of_patches,
                    bound_the_depth_of_objects,
                    keep_tokens_to_their_namespace,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                concurrency,
                [gives_revisions_in_one_order, gives_each_writer_rising_revisions, is_linearizable,]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                apply,
                [
                    makes_what_is_not_there,
                    takes_away_what_is_no_longer_applied,
                    is_contested_by_other_owners,
                    that_changes_nothing_is_invisible,
                    is_told_of_by_every_later_write,
                    owners_are_not_for_every_client_to_say,
                    meets_what_was_there_before,
                    of_status_is_about_status_only,
                    is_admitted_as_every_write,
                    of_many_are_all_done,
                    and_patches_know_the_version_they_are_in,
                    and_strategic_patches_are_for_built_in_kinds,
                ]
            );
            $crate::conformance_theme!(
                $($subject)+,
                own,
                cards,
                [
                    are_there_for_every_kind,
                    tell_what_the_definition_says,
                    change_with_their_definitions,
                    keep_the_names_that_were_accepted,
                    are_refused_where_they_make_no_sense,
                ]
            );
        }
    };
}
