//! The answer to a batch: which messages failed. An empty list means that all are done.

use serde::Serialize;

/// `{"batchItemFailures":[{"itemIdentifier":…}]}`, each message once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    batch_item_failures: Vec<Failed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failed {
    item_identifier: String,
}

impl Report {
    /// Notes that a message failed.
    pub fn fail(&mut self, message_id: String) {
        if !self.batch_item_failures.iter().any(|failed| failed.item_identifier == message_id) {
            self.batch_item_failures.push(Failed { item_identifier: message_id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_exactly_the_form_that_the_platform_reads() {
        let mut report = Report::default();
        assert_eq!(serde_json::to_string(&report).unwrap(), r#"{"batchItemFailures":[]}"#);
        ["m2", "m3", "m2"].into_iter().for_each(|id| report.fail(id.to_owned()));
        let text = r#"{"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m3"}]}"#;
        assert_eq!(serde_json::to_string(&report).unwrap(), text);
    }
}
