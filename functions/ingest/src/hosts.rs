//! Which configured connection a hook comes from, where its publisher does not say: the one that its project's URL is below.

use collie_config::Configuration;
use serde::Deserialize;
use url::Url;

/// The configured connections.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Vec<Known>);

/// A connection.
#[derive(Debug)]
struct Known {
    slug: String,
    host: String,
    url: Url,
}

#[derive(Deserialize)]
struct Hook {
    project: Project,
}

#[derive(Deserialize)]
struct Project {
    web_url: String,
}

impl Hosts {
    /// The connections of a configuration.
    pub(crate) fn of(configuration: &Configuration) -> Self {
        let known = configuration
            .connections
            .iter()
            .filter_map(|(slug, connection)| Some(Known { slug: slug.clone(), host: connection.host()?, url: connection.url.clone()? }));
        Self(known.collect())
    }

    /// The host of the connection that a hook's project belongs to.
    pub(crate) fn of_hook(&self, body: &str) -> Option<&str> {
        let url = Url::parse(&serde_json::from_str::<Hook>(body).ok()?.project.web_url).ok()?;
        self.0.iter().find(|known| known.has(&url)).map(|known| known.host.as_str())
    }

    /// What hooks of a host are told apart by from those of others: its connection's name, as at the door.
    pub(crate) fn webhook_id<'a>(&'a self, host: &'a str) -> &'a str {
        self.0.iter().find(|known| known.host == host).map_or(host, |known| known.slug.as_str())
    }
}

impl Known {
    fn has(&self, url: &Url) -> bool {
        let root = self.url.path().trim_end_matches('/');
        let below = url.path().strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        collie_config::host_of(url).as_ref() == Some(&self.host) && below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hosts() -> Hosts {
        let text = "connections: {main: {url: 'https://gitlab.example.com'}, \
                    other: {url: 'https://code.example.org:8443/gitlab/', token: 'secret:x'}}";
        Hosts::of(&Configuration::parse(text).unwrap())
    }

    #[test]
    fn a_project_belongs_to_the_connection_its_url_is_below() {
        let cases = [
            ("https://gitlab.example.com/group/app", Some("gitlab.example.com")),
            ("http://gitlab.example.com:80/group/app", Some("gitlab.example.com")),
            ("https://code.example.org:8443/gitlab/group/app", Some("code.example.org:8443")),
            ("https://code.example.org:8443/gitlabs/group/app", None),
            ("https://code.example.org/gitlab/group/app", None),
            ("https://gitlab.example.com.evil.test/group/app", None),
        ];
        for (url, host) in cases {
            assert_eq!(hosts().of_hook(&json!({"project": {"web_url": url}}).to_string()), host, "{url}");
        }
        for body in ["", "not json", "{}", r#"{"project":{"web_url":7}}"#] {
            assert_eq!(hosts().of_hook(body), None, "{body}");
        }
    }

    #[test]
    fn hooks_of_a_connection_go_by_its_name() {
        assert_eq!((hosts().webhook_id("gitlab.example.com"), hosts().webhook_id("elsewhere")), ("main", "elsewhere"));
    }
}
