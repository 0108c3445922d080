//! Where a text holds a keyword of any rule, in whatever case.
//!
//! Every byte of every submission passes here, and hardly any begins a keyword. So the low five bits of three bytes, in which
//! letters of both cases are alike, index a table that says which keywords may begin there; only those are compared. That is
//! about twice as fast as the automaton of a general search for two hundred short words that may overlap.

/// How many values the low five bits of three bytes have.
const TRIPLES: usize = 1 << 15;

/// The keywords of all rules.
pub(super) struct Keywords {
    /// By triple: 0 for none, else the bucket after it.
    table: Box<[u16; TRIPLES]>,
    buckets: Vec<Vec<u16>>,
    words: Vec<Box<[u8]>>,
}

impl Keywords {
    /// Keywords of two bytes or more, in lower case; shorter ones are not found.
    pub(super) fn new(words: &[&str]) -> Self {
        let words: Vec<Box<[u8]>> = words.iter().map(|word| word.as_bytes().into()).collect();
        let mut by_triple = vec![vec![]; TRIPLES];
        for (index, word) in (0u16..).zip(&words) {
            for triple in triples_of(word) {
                by_triple[triple].push(index);
            }
        }
        let (mut table, mut buckets) = (Box::new([0; TRIPLES]), vec![]);
        for (triple, bucket) in by_triple.into_iter().enumerate().filter(|(_, bucket)| !bucket.is_empty()) {
            buckets.push(bucket);
            table[triple] = u16::try_from(buckets.len()).unwrap_or_default();
        }
        Self { table, buckets, words }
    }

    /// Calls `found` with each keyword and where it begins, in the order of the text.
    pub(super) fn each(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let mut triple = 0;
        for (end, byte) in text.iter().enumerate() {
            triple = (triple << 5 | usize::from(*byte & 31)) % TRIPLES;
            let bucket = self.table[triple];
            if bucket > 0 {
                self.compare(bucket, text, end, &mut found);
            }
        }
        let bucket = self.table[(triple << 5) % TRIPLES];
        self.compare(bucket, text, text.len(), &mut found);
    }

    /// Out of line, so that the loop above stays in registers.
    #[inline(never)]
    fn compare(&self, bucket: u16, text: &[u8], end: usize, found: &mut dyn FnMut(usize, usize)) {
        let (Some(at), Some(bucket)) = (end.checked_sub(2), self.buckets.get(usize::from(bucket).wrapping_sub(1))) else { return };
        for index in bucket.iter().map(|index| usize::from(*index)) {
            let word = &self.words[index];
            if text.get(at..at + word.len()).is_some_and(|there| there.eq_ignore_ascii_case(word)) {
                found(index, at);
            }
        }
    }
}

/// The triples with which a text may begin that begins with a word.
fn triples_of(word: &[u8]) -> Vec<usize> {
    let low = |at: usize| usize::from(word[at] & 31);
    match word.len() {
        0 | 1 => vec![],
        2 => (0..32).map(|third| low(0) << 10 | low(1) << 5 | third).collect(),
        _ => vec![low(0) << 10 | low(1) << 5 | low(2)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_keyword_is_found_where_it_is(text in "[a-dA-D.é]{0,40}", words in proptest::collection::btree_set("[a-c.]{2,4}", 1..8)) {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let lower = text.to_ascii_lowercase();
            let mut found = vec![];
            Keywords::new(&words).each(text.as_bytes(), |word, at| found.push((at, word)));
            let mut expected = vec![];
            for at in 0..lower.len() {
                expected.extend((0..words.len()).filter(|word| lower.as_bytes()[at..].starts_with(words[*word].as_bytes())).map(|w| (at, w)));
            }
            prop_assert_eq!(found, expected);
        }
    }
}
