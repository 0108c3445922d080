//! One suite for both stores: what it asserts of the store in memory it asserts of DynamoDB, so that the first stays honest.
//!
//! Expected rows come from `Change::judge` and `Change::apply`; every case compares whole rows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation ends the test")]

mod callers;
mod creation;
mod dice;
mod differential;
mod events;
mod failures;
mod fixture;
mod holder;
mod lease;
mod letters;
mod reads;
mod stores;
mod successor;
mod table;
mod tracked;
mod tracking;
mod tracking_failures;
mod tracking_random;
mod tracking_ranges;
mod tracking_table;

/// Declares a test of each case on each store.
macro_rules! contract {
    ($memory:ident $dynamodb:ident $($area:ident { $($case:ident)+ })+) => {$(
        mod $area {
            mod on_memory {$(
                #[tokio::test]
                async fn $case() {
                    crate::$area::$case(crate::stores::$memory()).await;
                }
            )+}
            mod on_dynamodb {$(
                #[tokio::test]
                async fn $case() {
                    crate::$area::$case(crate::stores::$dynamodb().await).await;
                }
            )+}
        }
    )+};
}

mod contract {
    contract! {
        memory dynamodb
        creation {
            a_creation_makes_the_item_its_content_and_the_head
            the_same_creation_again_is_a_success_and_changes_nothing
            a_creation_is_known_again_after_a_claim
            of_two_creators_one_loses
            the_next_life_replaces_the_head_it_saw
            a_creation_that_saw_an_older_head_loses
            another_creation_under_a_taken_id_loses
        }
        lease {
            a_claim_takes_the_lease_and_leaves_due_at_alone
            a_claim_needs_a_reason_to_look
            of_two_claimers_one_is_refused
            a_lease_is_free_only_after_the_margin
            the_same_claim_again_is_one_lease
            nothing_applies_to_an_absent_item
            a_heartbeat_extends_the_lease_and_nothing_else
            a_heartbeat_of_a_lost_lease_is_refused
            a_heartbeat_after_the_exit_is_refused
        }
        holder {
            a_commit_writes_the_holders_fields_and_no_others
            a_commit_removes_what_the_next_row_lacks
            progress_resets_claims_and_an_intent_does_not
            a_commit_needs_each_of_its_beliefs
            a_commit_needs_an_active_item
            a_commit_with_an_exit_ends_the_run
            the_same_commit_again_is_a_success
            a_delayed_commit_after_the_exit_is_refused
            an_exit_needs_each_of_its_beliefs
            an_exit_sets_or_removes_due_at
            the_same_exit_again_is_a_success
            a_release_keeps_the_item_actionable
            a_release_needs_each_of_its_beliefs
            an_event_between_read_and_exit_keeps_the_item_awake
            an_update_between_read_and_commit_refuses_the_commit
            a_cancel_between_read_and_commit_refuses_the_commit
            a_holder_that_lost_its_lease_cannot_write
        }
        callers {
            an_update_brings_new_content
            the_same_update_again_is_a_success
            an_update_needs_what_it_saw
            of_two_updates_one_is_refused
            an_update_revives_only_a_failed_item
            a_retry_brings_back_failed_cancelled_and_blocked_items
            a_retry_needs_an_ended_or_blocked_item
            a_retry_of_an_earlier_life_is_refused
            the_same_retry_again_moves_the_head_once
            a_cancel_of_an_active_item_is_a_request
            a_cancel_of_a_failed_item_ends_it
            a_cancel_needs_what_it_saw
            a_row_cannot_grow_beyond_its_limit
        }
        events {
            an_event_is_stored_and_wakes_the_item
            a_repeated_delivery_changes_nothing
            a_full_inbox_refuses_and_overflows
            a_full_memory_of_deliveries_refuses
            an_overflow_of_a_known_delivery_changes_nothing
            events_of_ended_items_are_refused
            concurrent_events_are_all_stored
            an_inbox_drained_by_a_commit_keeps_what_came_since_out
        }
        successor {
            completion_and_the_next_life_are_one_write
            the_same_completion_again_makes_one_next_life
            a_moved_head_refuses_the_whole_completion
            a_taken_id_refuses_the_whole_completion
        }
        letters {
            a_letter_is_kept_once
            a_letter_is_decided_about_on_what_was_read
            letters_page_by_id_and_filter_by_state
        }
        reads {
            due_items_come_oldest_first_up_to_time_and_limit
            only_enqueue_exit_and_release_move_due_at
            shards_are_apart
            lists_page_newest_first_over_projects
            lists_filter_by_every_field
            a_list_shows_the_item_as_it_is_now
            timelines_page_oldest_first
            a_timeline_keeps_the_first_of_one_run
            a_host_keeps_the_longer_wait
            a_bucket_is_replaced_only_where_it_is_as_it_was_read
            a_merge_request_belongs_to_the_latest_generation
            names_with_separators_stay_apart
            what_is_absent_reads_as_none
        }
    }

    contract! {
        tracking_memory tracking_dynamodb
        tracking {
            every_kind_of_row_comes_back_the_same
            a_row_is_put_on_what_is_believed_of_it
            a_row_that_is_kept_stays_as_it_is_in_whole
            a_removal_is_a_success_whether_or_not_the_row_is_there
            a_report_counts_and_leaves_the_version_alone
            nothing_is_reported_after_the_end_of_the_analysis
            an_analysis_ends_once
            a_build_ends_once_and_may_be_reported_of_afterwards
            a_build_that_is_not_there_does_not_change
            one_refused_edit_refuses_all
            a_full_chunk_of_reports_is_one_write
            a_write_has_a_hundred_edits_at_most_and_no_row_twice
            reporters_at_once_all_land
            of_two_writers_on_one_version_one_is_refused
        }
        tracking_ranges {
            a_range_is_in_order_behind_its_place_and_within_its_prefix
            keys_sort_by_their_bytes_whatever_they_hold
            the_longest_keys_fit
            numbers_sort_as_numbers
            sets_of_one_queue_are_apart
            queues_are_apart_whatever_their_names
            a_set_of_one_row_has_it_at_its_empty_place
        }
    }
}
