//! Ids and hashes as bytes: half the size of their text.
//!
//! Every text value of a row goes through here, so text that happens to look like an id comes back the same.

const HEX: u8 = 0;
const UUID: u8 = 1;
/// Shorter text is left readable.
const MIN_DIGITS: usize = 16;
const UUID_LENGTH: usize = 36;
const UUID_DASHES: [usize; 4] = [8, 13, 18, 23];

/// The bytes of a lower-case hex number of at least 16 digits, or of a UUID.
pub(crate) fn pack(text: &str) -> Option<Vec<u8>> {
    if is_uuid_shaped(text) {
        return tagged(UUID, &text.replace('-', ""));
    }
    if text.len() < MIN_DIGITS {
        return None;
    }
    tagged(HEX, text)
}

/// The text that these bytes were.
pub(crate) fn unpack(bytes: &[u8]) -> Option<String> {
    let (tag, rest) = bytes.split_first()?;
    let mut text: String = rest.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(digit).collect();
    match *tag {
        HEX => {}
        UUID if rest.len() == 16 => UUID_DASHES.iter().for_each(|&at| text.insert(at, '-')),
        _ => return None,
    }
    Some(text)
}

fn is_uuid_shaped(text: &str) -> bool {
    text.len() == UUID_LENGTH && text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == UUID_DASHES.contains(&at))
}

fn tagged(tag: u8, digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    });
    std::iter::once(Some(tag)).chain(pairs).collect()
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn digit(value: u8) -> Option<char> {
    char::from_digit(u32::from(value), 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_text_comes_back_the_same_at_half_the_size() {
        let cases =
            [("0123456789abcdef0123456789abcdef01234567", 21), ("0198c0de-0000-7000-8000-00000000cafe", 17), ("0000000000000000", 9)];
        for (text, size) in cases {
            let bytes = pack(text).unwrap();
            assert_eq!((bytes.len(), unpack(&bytes).as_deref()), (size, Some(text)));
        }
    }

    #[test]
    fn other_text_stays_text() {
        for text in ["", "abc", "deadbeef", "0123456789ABCDEF", "0123456789abcdef0", "0198c0de-0000-7000-8000-00000000cafx", "éééééééé"]
        {
            assert_eq!(pack(text), None, "{text}");
        }
        assert_eq!(unpack(&[2, 3]), None);
        assert_eq!(unpack(&[]), None);
    }
}
