//! What a session may have seen: for each replica, the date of an epoch. A worker that has received these epochs has everything
//! that the session has read and written.
//!
//! A session takes its vector along to another worker, of any node, and is served there once that worker lacks nothing of it.
//! Dates are those of epochs, not stamps of single writes: a replica that had nothing to send need not report for it.

use rufous_store::effect::{NotAnEffect, put_varint, varint};

/// Replicas that there can be.
const MOST: u64 = 1 << u16::BITS;

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector(Vec<(u16, u64)>);

impl Vector {
    /// The vector with these dates; of several of a replica the latest counts.
    pub fn of(dates: impl IntoIterator<Item = (u16, u64)>) -> Self {
        let mut all: Vec<(u16, u64)> = dates.into_iter().collect();
        all.sort_unstable_by_key(|&(replica, date)| (replica, std::cmp::Reverse(date)));
        all.dedup_by_key(|(replica, _)| *replica);
        Self(all)
    }

    /// What sessions with these vectors have seen together.
    pub fn joined(all: impl IntoIterator<Item = Self>) -> Self {
        Self::of(all.into_iter().flat_map(|vector| vector.0))
    }

    pub fn dates(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        // Dates are close to one another.
        let first = self.dates().map(|(_, date)| date).min().unwrap_or(0);
        put_varint(out, self.0.len() as u64);
        put_varint(out, first);
        let mut before = 0;
        for (replica, date) in self.dates() {
            put_varint(out, u64::from(replica - before));
            put_varint(out, date - first);
            before = replica;
        }
    }

    /// Decodes what [`Vector::encode`] wrote. Trailing bytes are an error.
    pub fn decode(mut from: &[u8]) -> Result<Self, NotAnEffect> {
        let from = &mut from;
        let (count, first) = (varint(from)?, varint(from)?);
        if count > MOST {
            return Err(NotAnEffect);
        }
        let (mut all, mut before) = (Vec::new(), 0u16);
        for at in 0..count {
            let more = u16::try_from(varint(from)?).map_err(|_| NotAnEffect)?;
            if more == 0 && at > 0 {
                return Err(NotAnEffect);
            }
            before = before.checked_add(more).ok_or(NotAnEffect)?;
            let date = first.checked_add(varint(from)?).ok_or(NotAnEffect)?;
            all.push((before, date));
        }
        from.is_empty().then_some(Self(all)).ok_or(NotAnEffect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_several_dates_of_a_replica_the_latest_counts() {
        let vector = Vector::of([(3, 5), (1, 9), (3, 7), (3, 6)]);
        assert_eq!(vector.dates().collect::<Vec<_>>(), [(1, 9), (3, 7)]);
        let other = Vector::of([(1, 10), (2, 1)]);
        let both = Vector::joined([vector, other]);
        assert_eq!(both, Vector::of([(1, 10), (2, 1), (3, 7)]));
    }

    proptest! {
        #[test]
        fn bytes_say_what_it_is(dates in prop::collection::vec((any::<u16>(), 1..u64::MAX), 0..70)) {
            let vector = Vector::of(dates);
            let mut bytes = Vec::new();
            vector.encode(&mut bytes);
            prop_assert_eq!(Vector::decode(&bytes), Ok(vector));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Vector::decode(&bytes[..cut]), Err(NotAnEffect));
            }
        }

        #[test]
        fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(vector) = Vector::decode(&bytes) {
                let all: Vec<_> = vector.dates().collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
            }
        }
    }
}
