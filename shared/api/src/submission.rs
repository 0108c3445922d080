//! Reads a submission from JSON, noting every error in one go.
//!
//! Two kinds are kept apart: the *shape* (unknown, missing and ill-typed fields; 400) and *rules* about what a well-formed
//! field says (a verb that does not exist, bytes that are not base64; 422). The policy has more of the second kind, so a
//! reading goes on with stand-ins for what broke a rule, and the policy's violations join the list.

use crate::code::Code;
use crate::fields::{Errors, Object, typed};
use crate::problem::{FieldError, Problem};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use collie_core::files::{Expect, FileAction, Verb};
use collie_core::mr::wanted::{OnConflict, Wanted};
use collie_core::policy::{Reject, parse_verb};
use collie_engine::submit::Submission;
use serde_json::Value;

/// The fields of a submission.
pub const FIELDS: [&str; 14] = [
    "item_type",
    "project",
    "source_branch",
    "target_branch",
    "title",
    "description",
    "labels",
    "commit_message",
    "auto_merge",
    "squash",
    "remove_source_branch",
    "draft",
    "on_conflict",
    "file_actions",
];

/// The fields of a file action.
pub const ACTION_FIELDS: [&str; 8] =
    ["action", "file_path", "previous_path", "content", "encoding", "content_ref", "execute_filemode", "expect"];

const ON_CONFLICT: [(&str, OnConflict); 2] = [("block", OnConflict::Block), ("overwrite", OnConflict::Overwrite)];
const ENCODINGS: [(&str, Encoding); 2] = [("text", Encoding::Text), ("base64", Encoding::Base64)];

/// How a file's bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Text,
    Base64,
}

/// A submission of the right shape.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The submission, with stand-ins for what broke a rule.
    pub(crate) submission: Submission,
    /// The rules broken so far.
    pub(crate) broken: Errors,
    /// The contents that are named instead of sent.
    pub(crate) references: Vec<Reference>,
}

/// A file action whose content was uploaded before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Which of the actions.
    pub(crate) action: usize,
    /// The field.
    pub(crate) pointer: String,
    /// The content's digest, 64 lower-case hex digits.
    pub(crate) sha256: String,
}

/// Reads a submission without its surroundings: contents by reference stay empty.
///
/// # Errors
/// Every unknown, missing and ill-typed field together; else every rule that was seen to be broken on the way.
pub fn parse(value: &Value) -> Result<Submission, Problem> {
    let Reading { submission, broken, .. } = read(value)?;
    broken.problem(Code::Policy)?;
    Ok(submission)
}

/// Reads a submission as far as its shape allows.
pub(crate) fn read(value: &Value) -> Result<Reading, Problem> {
    let mut reader = Reader::default();
    let submission = reader.submission(value);
    reader.shape.problem(Code::InvalidRequest)?;
    let submission = submission.ok_or_else(|| Problem::new(Code::InvalidRequest, "the body is not an object"))?;
    Ok(Reading { submission, broken: reader.rules, references: reader.references })
}

#[derive(Debug, Default)]
struct Reader {
    shape: Errors,
    rules: Errors,
    references: Vec<Reference>,
}

impl Reader {
    /// The submission; fields that are wrong are empty, and noted.
    fn submission(&mut self, value: &Value) -> Option<Submission> {
        let object = Object::read(value, String::new(), &FIELDS, &mut self.shape)?;
        let mut needed = |name| object.required::<&str>(name, &mut self.shape).unwrap_or_default().to_owned();
        let [item_type, project, source_branch, target_branch, title] =
            ["item_type", "project", "source_branch", "target_branch", "title"].map(&mut needed);
        let mut text = |name| object.optional::<&str>(name, &mut self.shape).map(str::to_owned);
        let (description, commit_message) = (text("description").unwrap_or_default(), text("commit_message"));
        Some(Submission {
            item_type,
            project,
            source_branch,
            target_branch,
            title,
            description,
            commit_message,
            labels: self.labels(&object),
            wanted: self.wanted(&object),
            file_actions: self.file_actions(&object),
        })
    }

    fn labels(&mut self, object: &Object<'_>) -> Vec<String> {
        let labels: &[Value] = object.optional("labels", &mut self.shape).unwrap_or_default();
        let path = object.pointer("labels");
        let label = |(n, value)| typed::<&str>(value, &format!("{path}/{n}"), &mut self.shape).map(str::to_owned);
        labels.iter().enumerate().filter_map(label).collect()
    }

    fn wanted(&mut self, object: &Object<'_>) -> Wanted {
        let default = Wanted::default();
        let mut flag = |name, default| object.optional(name, &mut self.shape).unwrap_or(default);
        Wanted {
            auto_merge: flag("auto_merge", default.auto_merge),
            squash: flag("squash", default.squash),
            remove_source_branch: flag("remove_source_branch", default.remove_source_branch),
            draft: flag("draft", default.draft),
            on_conflict: object.word("on_conflict", &ON_CONFLICT, &mut self.shape).unwrap_or_default(),
            overwrite: false,
        }
    }

    fn file_actions(&mut self, object: &Object<'_>) -> Vec<FileAction> {
        let actions: &[Value] = object.required("file_actions", &mut self.shape).unwrap_or_default();
        let path = object.pointer("file_actions");
        actions.iter().enumerate().filter_map(|(n, value)| self.file_action(n, value, format!("{path}/{n}"))).collect()
    }

    fn file_action(&mut self, n: usize, value: &Value, path: String) -> Option<FileAction> {
        let object = Object::read(value, path, &ACTION_FIELDS, &mut self.shape)?;
        let sent = self.content(&object);
        let action = FileAction {
            verb: Verb::Delete,
            file_path: object.required::<&str>("file_path", &mut self.shape).unwrap_or_default().to_owned(),
            previous_path: object.optional::<&str>("previous_path", &mut self.shape).map(str::to_owned),
            content: self.reference(n, &object).or(sent),
            execute_filemode: object.optional("execute_filemode", &mut self.shape),
            expect: self.expect(&object),
        };
        let word: &str = object.required("action", &mut self.shape)?;
        match parse_verb(word) {
            Ok(verb) => Some(FileAction { verb, ..action }),
            Err(reject) => Some(self.without_verb(&object, action, reject)),
        }
    }

    /// What is left of an action whose verb does not exist: its path, of which the policy still has something to say.
    fn without_verb(&mut self, object: &Object<'_>, action: FileAction, reject: Reject) -> FileAction {
        self.rules.push(FieldError::new(object.pointer("action"), reject.code(), reject.problem(), reject.hint()));
        FileAction { previous_path: None, content: None, execute_filemode: None, ..action }
    }

    /// Notes content that was uploaded before; nothing stands in for it until it is read.
    fn reference(&mut self, action: usize, object: &Object<'_>) -> Option<Vec<u8>> {
        let text: &str = object.optional("content_ref", &mut self.shape)?;
        let pointer = object.pointer("content_ref");
        if object.has("content") {
            let (message, hint) = ("content and content_ref are both there", "send one of them");
            self.rules.push(FieldError::new(pointer, "ambiguous_content", message, hint));
        } else if let Some(sha256) = text.strip_prefix("sha256:").filter(|digits| is_sha256(digits)) {
            self.references.push(Reference { action, pointer, sha256: sha256.to_owned() });
        } else {
            let hint = "send the content_ref that POST /v1/blobs answered";
            self.rules.push(FieldError::new(pointer, "invalid_content_ref", "is not sha256:<64 lower-case hex digits>", hint));
        }
        Some(Vec::new())
    }

    fn content(&mut self, object: &Object<'_>) -> Option<Vec<u8>> {
        let encoding = object.word("encoding", &ENCODINGS, &mut self.shape).unwrap_or(Encoding::Text);
        let content: &str = object.optional("content", &mut self.shape)?;
        if encoding == Encoding::Text {
            return Some(content.as_bytes().to_vec());
        }
        let bytes = BASE64_STANDARD.decode(content);
        if bytes.is_err() {
            let hint = "send standard base64 with padding and without line breaks";
            self.rules.push(FieldError::new(object.pointer("content"), "invalid_base64", "is not base64", hint));
        }
        Some(bytes.unwrap_or_default())
    }

    /// `absent` or `sha256:<hex>`; the policy looks at the digits.
    fn expect(&mut self, object: &Object<'_>) -> Option<Expect> {
        let text: &str = object.optional("expect", &mut self.shape)?;
        match text.strip_prefix("sha256:") {
            Some(hex) => Some(Expect::Sha256(hex.to_owned())),
            None if text == "absent" => Some(Expect::Absent),
            None => {
                let message = "is neither absent nor sha256:<64 hex digits>";
                self.rules.push(FieldError::new(object.pointer("expect"), "invalid_expect", message, "send sha256:<hex> or absent"));
                None
            }
        }
    }
}

/// Whether a text is a SHA-256 as this API writes it.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn contents_by_reference_are_noted_with_their_place() {
        let (mut value, digest) = (smallest(), "0a".repeat(32));
        value["file_actions"] = json!([
            {"action": "create", "file_path": "a", "content": "x"},
            {"action": "create", "file_path": "b", "content_ref": format!("sha256:{digest}")},
        ]);
        let reading = read(&value).unwrap();
        let want = Reference { action: 1, pointer: "/file_actions/1/content_ref".into(), sha256: digest };
        assert_eq!((reading.references, reading.broken.is_empty()), (vec![want], true));
    }

    fn smallest() -> Value {
        json!({"item_type": "mr", "project": "group/app", "source_branch": "bot/x", "target_branch": "main", "title": "T",
            "file_actions": [{"action": "create", "file_path": "a", "content": "é"}]})
    }

    #[test]
    fn the_smallest_submission_gets_the_defaults() {
        let s = parse(&smallest()).unwrap();
        assert_eq!((s.item_type.as_str(), s.project.as_str(), s.title.as_str()), ("mr", "group/app", "T"));
        assert_eq!((s.source_branch.as_str(), s.target_branch.as_str()), ("bot/x", "main"));
        assert_eq!((s.description.as_str(), s.labels.len(), s.commit_message), ("", 0, None));
        assert_eq!(s.wanted, Wanted { remove_source_branch: true, on_conflict: OnConflict::Block, ..Wanted::default() });
        assert_eq!(s.file_actions[0].content.as_deref(), Some("é".as_bytes()));
        assert_eq!((s.file_actions[0].verb, s.file_actions[0].expect.clone()), (Verb::Create, None));
    }

    #[test]
    fn bytes_and_expectations_are_decoded() {
        let mut value = smallest();
        value["file_actions"] = json!([
            {"action": "update", "file_path": "a", "content": "AP8=", "encoding": "base64", "expect": "sha256:00"},
            {"action": "move", "file_path": "b", "previous_path": "c", "expect": "absent"},
        ]);
        let actions = parse(&value).unwrap().file_actions;
        assert_eq!(
            (actions[0].content.as_deref(), actions[0].expect.clone()),
            (Some([0, 255].as_slice()), Some(Expect::Sha256("00".into())))
        );
        assert_eq!((actions[1].content.as_deref(), actions[1].expect.clone()), (None, Some(Expect::Absent)));
    }

    fn places(problem: &Problem) -> Vec<(&str, &str)> {
        problem.errors.iter().map(|e| (e.path.as_str(), e.code)).collect()
    }

    #[test]
    fn every_error_of_shape_is_listed_together() {
        let value = json!({"item_type": 1, "project": "group/app", "target_branch": null, "title": "T", "lables": [], "labels": ["a", 2],
            "draft": "no", "on_conflict": "merge",
            "file_actions": [{"file_path": "a", "mode": 1}, "x", {"action": "create", "file_path": "b", "encoding": "utf-16"}]});
        let problem = parse(&value).unwrap_err();
        assert_eq!(problem.code, Code::InvalidRequest);
        let want = [
            ("/lables", "unknown_field"),
            ("/item_type", "wrong_type"),
            ("/source_branch", "missing_field"),
            ("/target_branch", "wrong_type"),
            ("/labels/1", "wrong_type"),
            ("/draft", "wrong_type"),
            ("/on_conflict", "invalid_value"),
            ("/file_actions/0/mode", "unknown_field"),
            ("/file_actions/0/action", "missing_field"),
            ("/file_actions/1", "wrong_type"),
            ("/file_actions/2/encoding", "invalid_value"),
        ];
        assert_eq!(places(&problem), want);
    }

    #[test]
    fn rules_seen_while_reading_are_listed_together() {
        let mut value = smallest();
        value["file_actions"] = json!([
            {"action": "Create", "file_path": "a", "content": "x"},
            {"action": "create", "file_path": "b", "content": "%", "encoding": "base64"},
            {"action": "create", "file_path": "c", "content_ref": "sha256:00"},
            {"action": "create", "file_path": "e", "content_ref": format!("sha256:{}", "0".repeat(64)), "content": ""},
            {"action": "delete", "file_path": "d", "expect": "present"},
        ]);
        let problem = parse(&value).unwrap_err();
        assert_eq!(problem.code, Code::Policy);
        let want = [
            ("/file_actions/0/action", "invalid_action"),
            ("/file_actions/1/content", "invalid_base64"),
            ("/file_actions/2/content_ref", "invalid_content_ref"),
            ("/file_actions/3/content_ref", "ambiguous_content"),
            ("/file_actions/4/expect", "invalid_expect"),
        ];
        assert_eq!(places(&problem), want);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert_eq!(places(&parse(&json!([])).unwrap_err()), [("", "wrong_type")]);
    }
}
