//! Counters that never fall below their bound, though each replica subtracts without coordination: it subtracts
//! within its rights [Escrow 1986], [Balegas 2015].
//!
//! An addition gives its replica the right to subtract as much, and a replica may transfer rights to others. The
//! state is the totals of what each has added, transferred to each other one, and subtracted; of two totals the
//! greater is the later. A replica alone changes its own totals, so its rights decrease only by its own operations,
//! and increase by others' transfers. The sum of all rights is the amount above the bound.
//!
//! Only whole states are merged: so a replica that has received a subtraction has also received the addition that it
//! was subtracted from. An upper bound is a second counter of this kind, of the amount that may still be added.

use crate::{Lattice, Map, VectorClock};

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundedCounter {
    put: VectorClock,
    taken: VectorClock,
    /// By giver and taker.
    given: VectorClock<(u16, u16)>,
}

/// A replica's rights do not suffice, though other replicas may have some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    pub rights: u64,
}

/// A replica has added more than can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

fn sum<K: Ord>(clock: &VectorClock<K>, of: impl Fn(&K) -> bool) -> u128 {
    let all = clock.iter().filter(|(key, _)| of(key));
    all.map(|(_, amount)| u128::from(amount.0)).sum()
}

impl BoundedCounter {
    /// The amount above the bound according to this state.
    pub fn left(&self) -> u64 {
        // Never below zero: see the description.
        let left = sum(&self.put, |_| true).saturating_sub(sum(&self.taken, |_| true));
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    /// The amount that a replica may subtract or transfer. For a replica other than one's own it may be less by now.
    pub fn rights(&self, replica: u16) -> u64 {
        let is_own = |key: &u16| *key == replica;
        let gains = sum(&self.put, is_own) + sum(&self.given, |key| key.1 == replica);
        let losses = sum(&self.taken, is_own) + sum(&self.given, |key| key.0 == replica);
        u64::try_from(gains.saturating_sub(losses)).unwrap_or(u64::MAX)
    }

    pub fn put(&mut self, replica: u16, amount: u64) -> Result<(), Full> {
        raise(&mut self.put, replica, amount)
    }

    pub fn take(&mut self, replica: u16, amount: u64) -> Result<(), Short> {
        let rights = self.rights(replica);
        if amount > rights {
            return Err(Short { rights });
        }
        raise(&mut self.taken, replica, amount).map_err(|Full| Short { rights })
    }

    /// Transfers some of a replica's rights to another one.
    pub fn give(&mut self, replica: u16, to: u16, amount: u64) -> Result<(), Short> {
        let rights = self.rights(replica);
        if amount > rights {
            return Err(Short { rights });
        }
        if to == replica {
            return Ok(());
        }
        raise(&mut self.given, (replica, to), amount).map_err(|Full| Short { rights })
    }
}

fn raise<K: Ord>(clock: &mut Map<K, crate::Max<u64>>, key: K, by: u64) -> Result<(), Full> {
    let count = clock.at(key);
    count.0 = count.0.checked_add(by).ok_or(Full)?;
    Ok(())
}

impl Lattice for BoundedCounter {
    fn merge(&mut self, other: &Self) -> bool {
        let put = self.put.merge(&other.put);
        let taken = self.taken.merge(&other.taken);
        self.given.merge(&other.given) || taken || put
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};

    /// Does something at a replica that it may do, or is refused.
    fn step(counter: &mut BoundedCounter, replica: u16, draw: &mut Draw) -> i64 {
        let amount = draw.below(4);
        match draw.below(4) {
            0 => {
                counter.put(replica, amount).unwrap();
                amount as i64
            }
            1 => {
                let _ = counter.give(replica, draw.below(3) as u16, amount);
                0
            }
            _ if counter.take(replica, amount).is_ok() => -(amount as i64),
            _ => 0,
        }
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<BoundedCounter>(60, 1, |draw| {
            let mut counter = BoundedCounter::default();
            for _ in 0..draw.below(6) {
                let replica = draw.below(3) as u16;
                step(&mut counter, replica, draw);
            }
            counter
        })
        .unwrap();
    }

    #[test]
    fn no_replica_sees_it_below_its_bound_whatever_merges() {
        let mut refused = 0;
        for seed in 0..300 {
            let mut draw = Draw::new(seed);
            let mut replicas: [BoundedCounter; 3] = Default::default();
            let (mut past, mut total) = (Vec::new(), 0);
            for _ in 0..40 {
                let at = draw.below(3) as usize;
                if draw.below(3) == 0 && !past.is_empty() {
                    let message = &past[draw.below(past.len() as u64) as usize];
                    replicas[at].merge(message);
                } else {
                    total += step(&mut replicas[at], at as u16, &mut draw);
                    refused += u64::from(replicas[at].take(at as u16, 1_000).is_err());
                }
                past.push(replicas[at].clone());
                assert!(total >= 0, "seed {seed}");
                let [a, b, c] = &replicas;
                for pair in [(a, b), (b, c), (c, a)] {
                    let mut view = pair.0.clone();
                    view.merge(pair.1);
                    let (put, taken) = (sum(&view.put, |_| true), sum(&view.taken, |_| true));
                    assert!(taken <= put, "seed {seed}");
                    let rights = (0..3).map(|replica| view.rights(replica)).sum::<u64>();
                    assert_eq!(rights, view.left(), "seed {seed}");
                }
            }
            let mut all = BoundedCounter::default();
            replicas.iter().for_each(|replica| {
                all.merge(replica);
            });
            assert_eq!(all.left() as i64, total, "seed {seed}");
        }
        assert!(refused > 0);
    }

    #[test]
    fn each_takes_within_its_rights() {
        let mut here = BoundedCounter::default();
        here.put(1, 10).unwrap();
        let mut there = here.clone();
        assert_eq!(there.take(2, 1), Err(Short { rights: 0 }));
        here.give(1, 2, 4).unwrap();
        assert_eq!(here.take(1, 7), Err(Short { rights: 6 }));
        here.take(1, 6).unwrap();
        assert!(there.merge(&here) && !there.merge(&here));
        there.take(2, 3).unwrap();
        assert_eq!((there.left(), there.rights(1), there.rights(2)), (1, 0, 1));
        assert_eq!(there.put(1, u64::MAX), Err(Full));
        assert_eq!(there.left(), 1);
    }
}
