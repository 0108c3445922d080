//! Quick actions: lines that start with `/` in notes and descriptions are commands and vanish.
//!
//! Those inside fenced blocks, quotes and HTML comments stay byte for byte. Unknown words are text.

use crate::state::State;

/// A command and what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) args: String,
}

/// Text without its commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) text: String,
    pub(crate) commands: Vec<Command>,
}

const KNOWN: [&str; 27] = [
    "label",
    "labels",
    "unlabel",
    "relabel",
    "close",
    "reopen",
    "draft",
    "ready",
    "title",
    "approve",
    "unapprove",
    "merge",
    "assign",
    "unassign",
    "assign_reviewer",
    "unassign_reviewer",
    "request_review",
    "target_branch",
    "rebase",
    "milestone",
    "estimate",
    "spend",
    "todo",
    "done",
    "subscribe",
    "unsubscribe",
    "lock",
];

/// Splits commands from text.
pub(crate) fn parse(body: &str) -> Parsed {
    let mut kept = Vec::new();
    let mut commands = Vec::new();
    let (mut fenced, mut commented) = (false, false);
    for line in body.split('\n') {
        let protected = fenced || commented;
        let toggles = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= toggles && !commented;
        commented = ends_in_comment(line, commented);
        match command(line).filter(|_| !protected && !toggles) {
            Some(command) => commands.push(command),
            None => kept.push(line),
        }
    }
    let text = kept.join("\n");
    let text = if commands.is_empty() { text } else { text.trim().to_owned() };
    Parsed { text, commands }
}

fn ends_in_comment(line: &str, inside: bool) -> bool {
    match (line.rfind("<!--"), line.rfind("-->")) {
        (Some(open), Some(close)) => open > close,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => inside,
    }
}

fn command(line: &str) -> Option<Command> {
    let rest = line.strip_prefix('/')?.trim_end();
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.to_lowercase();
    KNOWN.contains(&name.as_str()).then(|| Command { name, args: args.trim().to_owned() })
}

/// Label names in `~a ~"b c"`.
pub(crate) fn labels(args: &str) -> Vec<String> {
    let parts = args.split('~').map(|part| part.trim().trim_matches('"').to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

impl State {
    /// Runs one command; the answer is the line of the summary.
    pub(crate) fn run_command(&mut self, project: u64, iid: u64, user: u64, command: &Command) -> Option<String> {
        let args = command.args.as_str();
        match command.name.as_str() {
            "label" | "labels" => {
                let names = labels(args);
                for name in &names {
                    self.add_label(project, iid, user, name);
                }
                Some(format!("Added {} label.", names.join(", ")))
            }
            "unlabel" => {
                let names = if args.is_empty() { self.mr(project, iid)?.labels.clone() } else { labels(args) };
                for name in &names {
                    self.remove_label(project, iid, user, name);
                }
                Some(format!("Removed {} label.", names.join(", ")))
            }
            "relabel" => self.replace_labels(project, iid, user, &labels(args)).map(|()| "Replaced all labels.".to_owned()),
            "close" => self.close_mr(project, iid, user).map(|()| "Closed this merge request.".to_owned()),
            "reopen" => self.reopen_mr(project, iid, user).map(|()| "Reopened this merge request.".to_owned()),
            "approve" => self.add_approval(project, iid, user).map(|()| "Approved the current merge request.".to_owned()),
            "unapprove" => self.remove_approval(project, iid, user).map(|()| "Unapproved the current merge request.".to_owned()),
            "draft" | "ready" | "title" => self.retitle(project, iid, command),
            "target_branch" => {
                let mr = self.mr_mut(project, iid)?;
                mr.target_branch = args.to_owned();
                mr.mark_unchecked();
                Some(format!("Set target branch to {args}."))
            }
            _ => Some(format!("Ran /{}.", command.name)),
        }
    }

    fn retitle(&mut self, project: u64, iid: u64, command: &Command) -> Option<String> {
        let mr = self.mr_mut(project, iid)?;
        let plain = mr.title.trim_start_matches("Draft:").trim_start_matches("[Draft]").trim_start_matches("(Draft)").trim().to_owned();
        let (title, said) = match command.name.as_str() {
            "draft" => (format!("Draft: {plain}"), "Marked this merge request as a draft."),
            "ready" => (plain, "Marked this merge request as ready."),
            _ => (command.args.clone(), "Changed the title."),
        };
        mr.title = title;
        Some(said.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_vanish_but_not_from_code_quotes_and_comments() {
        let table = [
            ("hello\n/close", "hello", vec!["close"]),
            ("/label ~bug\n/ready", "", vec!["label", "ready"]),
            ("```\n/close\n```", "```\n/close\n```", vec![]),
            ("> /close", "> /close", vec![]),
            ("<!--\n/close\n-->", "<!--\n/close\n-->", vec![]),
            ("/etc/passwd", "/etc/passwd", vec![]),
            (" /close", " /close", vec![]),
        ];
        for (body, text, names) in table {
            let parsed = parse(body);
            assert_eq!(parsed.text, text, "{body}");
            assert_eq!(parsed.commands.iter().map(|command| command.name.as_str()).collect::<Vec<_>>(), names, "{body}");
        }
    }
}
