//! What a configuration that can be used says, and its operator may not mean. Nothing is refused for it.

use crate::{Configuration, ProjectConfig};

impl Configuration {
    /// Every warning, with its place and what to do about it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.projects.iter().enumerate().filter_map(|(index, project)| code_owners(index, project)).collect()
    }
}

/// GitLab takes the first file of code owners that there is, so that an open place can stand in for a protected one (PTH-01).
fn code_owners(index: usize, project: &ProjectConfig) -> Option<String> {
    let open = project.policy.paths().half_open_code_owners();
    let named = open.join(" and ");
    (!open.is_empty()).then(|| {
        format!(
            "projects[{index}].policy.allow: {}: opens {named} to callers while other places of CODEOWNERS stay protected, and GitLab takes the \
             first that there is; name it under `protect`, which goes before `allow`, or open all three",
            project.path
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pth_01_a_half_open_codeowners_is_a_warning_with_place_and_hint() {
        let text = "projects:\n  - {path: group/a}\n  - {path: group/b, policy: {allow: ['.gitlab/**']}}\n  \
                    - {path: group/c, policy: {allow: ['.gitlab/**'], protect: ['.gitlab/CODEOWNERS']}}\n  \
                    - {path: group/d, policy: {allow: ['CODEOWNERS'], protect: ['.gitlab/CODEOWNERS']}}";
        let warning = |index: usize, path: &str, open: &str| {
            format!(
                "projects[{index}].policy.allow: {path}: opens {open} to callers while other places of CODEOWNERS stay protected, and GitLab \
                 takes the first that there is; name it under `protect`, which goes before `allow`, or open all three"
            )
        };
        let expected = [warning(1, "group/b", ".gitlab/CODEOWNERS"), warning(3, "group/d", "CODEOWNERS and docs/CODEOWNERS")];
        assert_eq!(Configuration::parse(text).unwrap().warnings(), expected);
    }
}
