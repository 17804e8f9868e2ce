//! Makes a test of each case on each store.

/// One test for each case of each theme, on the store that `$subject` makes.
macro_rules! on {
    ($subject:ident, $($theme:ident: [$($case:ident),* $(,)?])*) => {
        mod $subject {
            $(
                mod $theme {
                    $(
                        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                        async fn $case() {
                            let Some(subject) = crate::stores::$subject().await else { return };
                            let case = crate::cases::$theme::$case(&subject);
                            concert_store::conformance::bounded(stringify!($case), Box::pin(case)).await;
                        }
                    )*
                }
            )*
        }
    };
}

/// Both stores for one table.
macro_rules! suite {
    ($($table:tt)*) => {
        on!(embedded, $($table)*);
        on!(kubernetes, $($table)*);

        /// The table, as it is written.
        const TABLE: &str = stringify!($($table)*);
    };
}

suite! {
    connecting: [
        that_fails_is_said_and_tried_again,
        that_fails_the_same_way_again_is_not_written_again,
        that_meets_a_conflict_is_tried_again_silently,
        that_needs_a_person_is_tried_much_later,
        that_is_throttled_waits_exactly_as_long_as_it_is_told,
        that_cannot_be_ended_is_only_worth_an_event,
        is_ended_after_a_failure_too,
        that_is_denied_is_tried_with_the_account_as_it_is_then,
    ]
    contents: [
        whole_numbers_keep_their_last_digit,
        unknown_fields_stay_where_they_are,
    ]
    creating: [
        takes_one_pass_and_three_writes,
        is_the_same_for_cluster_scoped_objects,
        leads_to_a_steady_state_without_writes,
        tells_of_progress_and_when_to_look_again,
        does_not_begin_when_the_intent_cannot_be_written,
        does_not_begin_on_an_object_that_changed,
        begins_once_when_the_answer_to_the_intent_is_lost,
        is_not_in_doubt_where_it_was_never_sent,
        that_fails_is_written_down_and_tried_again,
        that_meets_a_conflict_is_tried_again_silently,
        does_not_begin_where_nobody_is_connected,
        does_not_begin_with_too_little_time_left,
        does_not_begin_with_what_the_provider_refuses,
    ]
    deleting: [
        takes_one_pass_where_the_thing_goes_at_once,
        waits_while_the_thing_is_still_there,
        tells_of_progress_and_when_to_look_again,
        that_fails_is_said_and_tried_again,
        that_meets_a_conflict_is_tried_again_silently,
        is_not_held_up_by_who_writes_meanwhile,
        is_decided_anew_when_something_else_is_wanted_meanwhile,
        is_waited_for_by_who_does_not_remember_it,
        tries_again_when_the_finalizer_cannot_be_removed,
        waits_for_the_finalizers_of_others,
        leaves_alone_what_never_was_ours,
        keeps_its_account_until_the_object_has_gone,
    ]
    doubting: [
        finds_by_its_token_what_was_made,
        makes_again_what_was_certainly_not_made,
        waits_for_a_person_where_nobody_can_tell,
        asks_again_when_the_answer_does_not_come,
        removes_what_was_made_when_the_object_goes,
        lets_an_object_go_that_certainly_made_nothing,
        a_provider_that_restarts_before_the_create_gets_it_later,
        a_provider_that_restarts_in_the_midst_of_the_create_is_asked,
    ]
    grace: [
        is_waited_out,
        ends_and_the_thing_is_made_again,
        holds_up_a_deletion,
    ]
    intending: [
        external_name_finalizer_and_intent_are_one_write,
        a_name_that_is_set_stays,
        an_open_create_of_another_program_waits_for_a_person,
        a_person_closes_an_open_create,
        an_open_create_holds_up_the_deletion_too,
        an_open_create_that_is_visible_is_closed,
        an_open_create_stops_nobody_where_names_are_deterministic,
        a_deletion_waits_until_the_create_of_a_dead_process_cannot_be_under_way,
    ]
    misbehaving: [
        when_asked_what_is_there_changes_nothing_and_is_told,
        when_asked_to_create_leaves_it_in_doubt_and_makes_nothing_twice,
        when_asked_to_delete_keeps_the_object_until_it_is_known,
    ]
    observing: [
        that_fails_is_said_and_tried_again,
        that_fails_leaves_what_was_known_before,
        that_meets_a_conflict_is_tried_again_silently,
        only_finds_nothing_and_makes_nothing,
        only_takes_over_what_is_there,
        only_says_when_its_details_cannot_be_published,
        only_shows_what_differs,
        finds_nothing_where_policies_allow_to_update_but_not_to_create,
    ]
    orphaning: [
        by_policies_without_delete,
        by_the_deletion_policy_of_a_cluster_scoped_object,
        is_overruled_by_policies_that_name_delete,
        takes_only_its_own_finalizer_away,
        tries_again_when_the_finalizer_cannot_be_removed,
        is_silent_about_a_conflict,
    ]
    outcomes: [
        are_written_until_it_works,
        that_are_failures_are_written_until_it_works,
        whose_answer_is_lost_are_written_once,
        keep_what_others_wrote_meanwhile,
        that_cannot_be_written_are_found_out_later,
        of_an_object_that_was_torn_away_are_nobodys,
        of_an_object_that_was_made_anew_are_not_told_of_the_new_one,
    ]
    pausing: [
        by_annotation,
        by_an_empty_list_of_policies,
        takes_exactly_the_word_true,
        ends_when_the_annotation_goes,
        ends_when_the_list_of_policies_is_filled,
        that_cannot_be_said_is_tried_again,
        that_meets_a_conflict_is_tried_again_silently,
        holds_up_a_deletion_and_says_so,
        lets_a_deletion_pass_that_says_so,
    ]
    planning: [
        says_what_the_provider_would_refuse,
        says_that_nothing_is_replaced,
        says_what_becomes_of_an_object_that_is_being_deleted,
        does_not_promise_a_create_while_an_earlier_one_is_open,
    ]
    policies: [
        that_are_not_supported_are_refused,
        are_taken_once_they_make_sense,
        cannot_be_used_where_the_feature_is_off,
        that_are_empty_pause_nothing_where_the_feature_is_off,
    ]
    polling: [
        is_every_interval,
        is_spread_by_jitter,
        is_what_a_hook_makes_of_it,
        is_what_the_object_asks_for,
        is_never_less_than_allowed,
        is_as_usual_where_an_object_asks_for_nonsense,
        asks_once_and_writes_nothing_at_rest,
        mends_what_it_finds_at_a_glance,
        says_what_failed_at_a_glance,
        is_a_whole_pass_over_what_was_edited,
        takes_a_failing_goodbye_for_nothing,
        looks_at_everything_now_and_then,
    ]
    publishing: [
        that_fails_when_observed_is_tried_again,
        that_fails_when_created_does_not_lose_the_create,
        that_fails_when_updated_is_said,
        what_an_update_tells_is_added_to_what_is_there,
        that_meets_a_conflict_is_tried_again_silently,
        what_is_told_once_is_written_until_it_works,
        does_not_touch_the_secret_of_somebody_else,
    ]
    reading: [
        a_failing_read_is_the_stores_fault_and_tried_again,
        what_is_not_there_is_done,
        what_was_torn_away_is_not_counted_any_more,
        a_kind_that_is_not_there_is_done,
    ]
    references: [
        that_point_nowhere_wait_until_they_do,
        that_are_resolved_are_not_written_again,
        to_what_has_no_name_yet_wait_for_its_change,
        that_cannot_be_read_are_tried_again,
        that_meet_a_conflict_are_resolved_again_silently,
        do_not_hold_up_a_deletion,
    ]
    registry: [
        a_definition_that_comes_late_starts_the_controller,
        a_definition_that_goes_takes_objects_and_controller_with_it,
        a_definition_that_comes_back_starts_the_controller_again,
        objects_of_a_provider_that_was_removed_say_so,
        a_kind_that_two_providers_claim_stays_with_the_first,
        a_kind_that_two_providers_claim_does_not_depend_on_who_was_heard_first,
        a_provider_that_is_declared_anew_keeps_its_kinds,
        a_provider_that_is_refused_from_the_start_keeps_what_is_remembered_of_it,
        a_kind_waits_for_a_provider_that_comes_first_and_has_not_answered,
        a_definition_without_status_is_a_problem_of_its_own,
        a_provider_that_comes_up_late_is_waited_for,
        a_provider_whose_controllers_stay_is_said_to_be_lost_and_back,
        objects_of_a_provider_whose_controllers_stay_say_that_it_is_lost_and_back,
        a_provider_that_restarts_goes_on_where_it_was,
        what_is_at_rest_counts_before_anybody_looks_at_it,
        what_was_to_be_pushed_while_nobody_listened_is_found,
        what_was_to_be_pushed_before_anybody_could_listen_is_found,
        a_hint_of_the_provider_beats_the_default_and_a_setting_beats_both,
        what_an_object_owns_wakes_it,
        what_an_object_mentions_wakes_it,
    ]
    requests: [
        is_answered_once,
        is_answered_by_a_pass_that_fails,
        is_not_answered_while_paused,
    ]
    saving: [
        a_finalizer_that_cannot_be_added_is_tried_again,
        a_finalizer_that_meets_a_conflict_is_added_later,
        late_initialised_fields_are_written,
        late_initialised_fields_that_cannot_be_written_are_tried_again,
        late_initialised_fields_are_dropped_where_policies_say_so,
    ]
    updating: [
        takes_one_pass_and_one_write,
        is_left_to_people_where_policies_say_so,
        that_fails_is_said_and_tried_again,
        that_will_never_succeed_is_tried_much_later,
        that_meets_a_conflict_is_tried_again_silently,
        that_takes_its_time_is_looked_at_when_it_says,
        does_not_begin_with_what_the_provider_refuses,
    ]
}

/// The names of the cases in the source of a theme.
fn written(source: &str) -> Vec<&str> {
    let cases = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
    cases.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name).collect()
}

/// The names in the table, however it is broken into lines.
fn listed(theme: &str) -> Vec<&'static str> {
    let (_, rest) = TABLE.split_once(&format!("{theme}:")).unwrap();
    let (names, _) = rest.split_once('[').unwrap().1.split_once(']').unwrap();
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[test]
fn every_case_is_in_the_table() {
    macro_rules! themes {
        ($($theme:literal),*) => {
            $( assert_eq!(written(include_str!(concat!("cases/", $theme, ".rs"))), listed($theme), $theme); )*
        };
    }
    themes!(
        "connecting",
        "contents",
        "creating",
        "deleting",
        "doubting",
        "grace",
        "intending",
        "misbehaving",
        "observing",
        "orphaning",
        "outcomes",
        "pausing",
        "planning",
        "policies",
        "polling",
        "publishing",
        "reading",
        "references",
        "registry",
        "requests",
        "saving",
        "updating"
    );
}
