//! Where a listing goes on. A URL that the other side names is never followed: only its cursor is taken over to our own.

use reqwest::Url;
use reqwest::header::{HeaderMap, LINK};

/// The query parameters that place a page, for keyset and for offset paging.
const KEYSET: [&str; 3] = ["page_token", "cursor", "id_after"];
const OFFSET: [&str; 1] = ["page"];

/// The parameters that ask for the next page.
pub(crate) type Cursor = Vec<(String, String)>;

/// What the headers say about the next page; none at the end.
pub(crate) fn next(headers: &HeaderMap) -> Option<Cursor> {
    let link = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok()).find_map(next_link);
    let from_link = |names: &[&str]| link.as_ref().map(|url| parameters(url, names)).filter(|cursor| !cursor.is_empty());
    from_link(&KEYSET).or_else(|| next_page(headers)).or_else(|| from_link(&OFFSET))
}

/// Asks for another page of the same listing.
pub(crate) fn turn(url: &mut Url, cursor: &Cursor) {
    let ours: Vec<_> =
        url.query_pairs().filter(|(name, _)| !is_cursor(name)).map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    url.query_pairs_mut().clear().extend_pairs(ours).extend_pairs(cursor);
}

fn is_cursor(name: &str) -> bool {
    KEYSET.contains(&name) || OFFSET.contains(&name)
}

/// `X-Next-Page`, which is empty on the last page.
fn next_page(headers: &HeaderMap) -> Option<Cursor> {
    let page: u64 = headers.get("x-next-page")?.to_str().ok()?.trim().parse().ok()?;
    Some(vec![("page".to_owned(), page.to_string())])
}

/// The URL of `rel="next"`; a relative one is read against a host that does not exist.
fn next_link(header: &str) -> Option<Url> {
    let entry = header.split(", <").find(|entry| entry.contains("rel=\"next\""))?;
    let (target, _) = entry.trim_start_matches('<').split_once('>')?;
    Url::parse("http://nowhere.invalid").ok()?.join(target).ok()
}

fn parameters(url: &Url, names: &[&str]) -> Cursor {
    let wanted = url.query_pairs().filter(|(name, value)| names.contains(&name.as_ref()) && !value.is_empty());
    wanted.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn cursor(name: &str, value: &str) -> Option<Cursor> {
        Some(vec![(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn every_form_of_paging_is_read() {
        let keyset = "<https://elsewhere.example/api/v4/x?page_token=a%2Fb&per_page=100>; rel=\"next\"";
        let offset = "<https://g.example/x?page=1>; rel=\"first\", <https://g.example/x?page=3&per_page=100>; rel=\"next\"";
        let table = [
            (headers(&[]), None),
            (headers(&[("x-next-page", "")]), None),
            (headers(&[("x-next-page", "2")]), cursor("page", "2")),
            (headers(&[("x-next-page", "two")]), None),
            (headers(&[("link", keyset)]), cursor("page_token", "a/b")),
            (headers(&[("link", keyset), ("x-next-page", "2")]), cursor("page_token", "a/b")),
            (headers(&[("link", offset)]), cursor("page", "3")),
            (headers(&[("link", "<https://g.example/x?page=1>; rel=\"first\"")]), None),
            (headers(&[("link", "</x?cursor=z>; rel=\"next\"")]), cursor("cursor", "z")),
            (headers(&[("link", "<https://g.example/x?private_token=t>; rel=\"next\"")]), None),
        ];
        for (headers, want) in table {
            assert_eq!(next(&headers), want, "{headers:?}");
        }
    }

    #[test]
    fn turning_a_page_changes_nothing_but_the_cursor() {
        let mut url = Url::parse("https://g.example/t?path=a%2Fb&page_token=x&per_page=100").unwrap();
        turn(&mut url, &vec![("page_token".to_owned(), "y z".to_owned())]);
        assert_eq!(url.as_str(), "https://g.example/t?path=a%2Fb&per_page=100&page_token=y+z");
    }
}
