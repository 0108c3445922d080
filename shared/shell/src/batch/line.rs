//! What of a batch may run side by side, and what one after the other.

/// A job, and the messages that ask for it.
pub(super) struct Asked<J> {
    pub(super) job: J,
    pub(super) message_ids: Vec<String>,
}

/// Jobs that run one after the other: those of a message group, or a single one of no group.
pub(super) struct Line<J> {
    group: Option<String>,
    /// A message of the group cannot be read: what comes after it waits for it.
    closed: bool,
    pub(super) jobs: Vec<Asked<J>>,
}

/// The lines of a batch.
pub(super) struct Lines<J> {
    lines: Vec<Line<J>>,
    held_back: Vec<String>,
}

impl<J> Default for Lines<J> {
    fn default() -> Self {
        Self { lines: Vec::new(), held_back: Vec::new() }
    }
}

impl<J: PartialEq> Lines<J> {
    /// Puts the job of a message in line.
    pub(super) fn add(&mut self, group: Option<String>, job: J, message_id: String) {
        match group {
            Some(group) => self.line_up(group, job, message_id),
            None => self.side_by_side(job, message_id),
        }
    }

    /// Nothing more of this group runs in this batch.
    pub(super) fn close(&mut self, group: Option<String>) {
        if let Some(group) = group {
            self.of_group(group).closed = true;
        }
    }

    /// The messages that stand behind one that cannot be read.
    pub(super) fn take_held_back(&mut self) -> Vec<String> {
        std::mem::take(&mut self.held_back)
    }

    /// Only neighbours of a group may share a run: between others, something else was asked for.
    fn line_up(&mut self, group: String, job: J, message_id: String) {
        let line = self.of_group(group);
        if line.closed {
            self.held_back.push(message_id);
            return;
        }
        match line.jobs.last_mut().filter(|last| last.job == job) {
            Some(last) => last.message_ids.push(message_id),
            None => line.jobs.push(Asked { job, message_ids: vec![message_id] }),
        }
    }

    fn side_by_side(&mut self, job: J, message_id: String) {
        let alone = self.lines.iter_mut().filter(|line| line.group.is_none()).flat_map(|line| &mut line.jobs);
        match alone.into_iter().find(|asked| asked.job == job) {
            Some(asked) => asked.message_ids.push(message_id),
            None => self.lines.push(Line { group: None, closed: false, jobs: vec![Asked { job, message_ids: vec![message_id] }] }),
        }
    }

    fn of_group(&mut self, group: String) -> &mut Line<J> {
        let known = self.lines.iter().position(|line| line.group.as_ref() == Some(&group));
        let index = known.unwrap_or_else(|| {
            self.lines.push(Line { group: Some(group), closed: false, jobs: Vec::new() });
            self.lines.len() - 1
        });
        &mut self.lines[index]
    }
}

impl<J> IntoIterator for Lines<J> {
    type Item = Line<J>;
    type IntoIter = std::vec::IntoIter<Line<J>>;

    fn into_iter(self) -> Self::IntoIter {
        self.lines.into_iter()
    }
}
