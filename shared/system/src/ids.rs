//! Fresh identifiers from the system's randomness.

use collie_core::id::{ItemId, Token};
use collie_core::time::Timestamp;
use collie_engine::ports::Ids;
use uuid::{NoContext, Uuid};

/// Identifiers nobody can guess; item ids sort by time.
#[derive(Debug, Clone, Copy)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn item_id(&self, now: Timestamp) -> ItemId {
        let ms = now.as_millis();
        let nanos = u32::try_from(ms % 1_000 * 1_000_000).unwrap_or_default();
        let at = uuid::Timestamp::from_unix(NoContext, ms / 1_000, nanos);
        ItemId::new(Uuid::new_v7(at).to_string())
    }

    fn token(&self) -> Token {
        Token::new(Uuid::new_v4().simple().to_string())
    }

    fn jitter(&self) -> f64 {
        // The low 32 bits of a random UUID are all random.
        f64::from(Uuid::new_v4().as_u128() as u32) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_ids_sort_by_time_and_hold_it() {
        let (early, late) = (Timestamp::from_millis(1_780_000_000_001), Timestamp::from_millis(1_780_000_000_002));
        let (a, b) = (RandomIds.item_id(early), RandomIds.item_id(late));
        assert!(a < b);
        let ms = Uuid::parse_str(a.as_str()).unwrap().get_timestamp().unwrap().to_unix();
        assert_eq!(ms, (1_780_000_000, 1_000_000));
    }

    #[test]
    fn jitter_stays_below_one() {
        assert!((0..1000).map(|_| RandomIds.jitter()).all(|j| (0.0..1.0).contains(&j)));
    }
}
