//! Commands on Claret's types, judged by what they promise and not by how the
//! node does it: identifiers in any order, sums without rounding.

use super::held::{
    Ran, counter, counter_mut, ids, ids_mut, ranking, ranking_mut, summary, summary_mut,
};
use super::value::{Counter, Name, Value, written};
use super::{Expect, State, integer};
use rufous_resp::Reply;

/// What is asked of a summary bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Stats,
    Count,
    Sum,
    Mean,
    Min,
    Max,
}

impl Part {
    pub const ALL: [(Part, &'static str); 6] = [
        (Part::Stats, "BAG.STATS"),
        (Part::Count, "BAG.COUNT"),
        (Part::Sum, "BAG.SUM"),
        (Part::Mean, "BAG.MEAN"),
        (Part::Min, "BAG.MIN"),
        (Part::Max, "BAG.MAX"),
    ];

    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(part, _)| *part == self);
        found.map_or("", |(_, name)| name)
    }
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Special {
    /// How many, and which they were, once that is known.
    UidNext(Option<u64>, Option<Vec<i64>>),
    UidPeek,
    RankAdd(u32, Vec<(i64, Name)>),
    RankRange,
    RankMax,
    RankScore(Name),
    RankPosition(Name),
    RankLen,
    BagAdd(Vec<i64>),
    BagRead(Part),
    CounterSet(i64, Option<i64>, Option<i64>),
    /// Replies whether it was accepted.
    CounterAdd(i64),
    /// Replies with the new value.
    CounterIncr(i64),
    CounterGet,
    CounterBounds,
}

fn number(n: i64) -> Vec<u8> {
    n.to_string().into_bytes()
}

impl Special {
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Special::UidNext(..)
                | Special::RankAdd(..)
                | Special::BagAdd(_)
                | Special::CounterSet(..)
                | Special::CounterAdd(_)
                | Special::CounterIncr(_)
        )
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Special::UidNext(..) => "UID.NEXT",
            Special::UidPeek => "UID.PEEK",
            Special::RankAdd(..) => "RANK.ADD",
            Special::RankRange => "RANK.RANGE",
            Special::RankMax => "RANK.MAX",
            Special::RankScore(_) => "RANK.SCORE",
            Special::RankPosition(_) => "RANK.POSITION",
            Special::RankLen => "RANK.LEN",
            Special::BagAdd(_) => "BAG.ADD",
            Special::BagRead(part) => part.name(),
            Special::CounterSet(..) => "BCOUNT.SET",
            Special::CounterAdd(_) => "BCOUNT.ADD",
            Special::CounterIncr(_) => "BCOUNT.INCRBY",
            Special::CounterGet => "BCOUNT.GET",
            Special::CounterBounds => "BCOUNT.BOUNDS",
        }
    }

    /// What follows the key.
    pub(super) fn arguments(&self) -> Vec<Vec<u8>> {
        match self {
            Special::UidNext(Some(count), _) => {
                vec![b"COUNT".to_vec(), count.to_string().into_bytes()]
            }
            Special::RankAdd(k, members) => std::iter::once(number(i64::from(*k)))
                .chain(members.iter().flat_map(|(s, m)| [number(*s), written(m)]))
                .collect(),
            Special::RankRange => vec![number(0), number(-1), b"WITHSCORES".to_vec()],
            Special::RankScore(member) | Special::RankPosition(member) => vec![written(member)],
            Special::BagAdd(numbers) => numbers.iter().map(|n| number(*n)).collect(),
            Special::CounterSet(value, min, max) => {
                let bound = |word: &str, n: &Option<i64>| {
                    n.map_or(Vec::new(), |n| vec![word.as_bytes().to_vec(), number(n)])
                };
                [vec![number(*value)], bound("MIN", min), bound("MAX", max)].concat()
            }
            Special::CounterAdd(by) | Special::CounterIncr(by) => vec![number(*by)],
            _ => Vec::new(),
        }
    }

    /// With what the reply says that the node chose.
    pub(super) fn as_told(&self, reply: &Reply) -> Special {
        let id = |part: &Reply| match part {
            Reply::Integer(id) => Some(*id),
            _ => None,
        };
        match (self, reply) {
            (Special::UidNext(count, _), Reply::Array(parts)) => {
                Special::UidNext(*count, parts.iter().map(id).collect())
            }
            (Special::UidNext(count, _), one) => {
                Special::UidNext(*count, id(one).map(|id| vec![id]))
            }
            _ => self.clone(),
        }
    }

    pub(super) fn run(&self, state: &mut State, key: usize) -> Ran {
        match self {
            Special::UidNext(..) | Special::UidPeek => self.ids(state, key),
            Special::BagAdd(numbers) => {
                let all = summary_mut(state, key)?;
                numbers.iter().for_each(|n| all.add(*n));
                Ok(super::ok())
            }
            Special::BagRead(part) => {
                let all = summary(state, key)?.cloned().unwrap_or_default();
                Ok(Expect::Summary(all, *part))
            }
            Special::RankAdd(..)
            | Special::RankRange
            | Special::RankMax
            | Special::RankScore(_)
            | Special::RankPosition(_)
            | Special::RankLen => self.ranking(state, key),
            _ => self.counter(state, key),
        }
    }

    fn ids(&self, state: &mut State, key: usize) -> Ran {
        let Special::UidNext(count, taken) = self else {
            let least = ids(state, key)?.map_or(0, |ids| ids.above());
            return Ok(Expect::Between(least, i64::MAX));
        };
        let all = ids_mut(state, key)?;
        let many = count.unwrap_or(1);
        let Some(taken) = taken else {
            all.unseen += many;
            return Ok(Expect::Unseen);
        };
        let fresh = taken.iter().all(|id| *id >= 0 && all.taken.insert(*id));
        if !fresh || taken.len() as u64 != many {
            return Ok(Expect::Never);
        }
        let ids: Vec<_> = taken.iter().map(|id| Reply::Integer(*id)).collect();
        Ok(Expect::Exactly(match (count, ids.as_slice()) {
            (None, [one]) => one.clone(),
            _ => Reply::Array(ids),
        }))
    }

    fn ranking(&self, state: &mut State, key: usize) -> Ran {
        if let Special::RankAdd(k, members) = self {
            let all = ranking_mut(state, key)?;
            members.iter().for_each(|(s, m)| all.add(*k, *s, m));
            return Ok(super::ok());
        }
        let held = ranking(state, key)?;
        let ranked = held.map(|all| all.highest_first()).unwrap_or_default();
        let place = |member: &Name| ranked.iter().position(|(_, m)| *m == member);
        Ok(match self {
            Special::RankRange => {
                let pairs = ranked.iter();
                let pairs = pairs.flat_map(|(score, member)| [(*member).clone(), number(*score)]);
                Expect::Elements(pairs.collect())
            }
            Special::RankMax => match ranked.first() {
                Some((score, member)) => Expect::Elements(vec![(*member).clone(), number(*score)]),
                None => Expect::Exactly(Reply::NullArray),
            },
            Special::RankScore(member) => {
                Expect::Element(place(member).map(|at| number(ranked[at].0)))
            }
            Special::RankPosition(member) => match place(member) {
                Some(at) => integer(at),
                None => Expect::Exactly(Reply::Null),
            },
            _ => integer(ranked.len()),
        })
    }

    fn counter(&self, state: &mut State, key: usize) -> Ran {
        let held = counter(state, key)?.cloned();
        if let Special::CounterSet(value, min, max) = self {
            let now = Counter {
                value: *value,
                min: min.unwrap_or(held.as_ref().map_or(0, |c| c.min)),
                max: max.unwrap_or(held.as_ref().map_or(i64::MAX, |c| c.max)),
            };
            if !now.is_sound() {
                return Ok(Expect::Error("ERR value is out of bounds"));
            }
            *counter_mut(state, key)? = now;
            return Ok(super::ok());
        }
        let whole = |n: i64| Expect::Exactly(Reply::Integer(n));
        let (by, tells) = match (self, &held) {
            (Special::CounterAdd(by), Some(_)) => (*by, false),
            (Special::CounterIncr(by), Some(_)) => (*by, true),
            (Special::CounterAdd(_) | Special::CounterIncr(_), None) => {
                return Ok(Expect::Error("ERR no such key"));
            }
            (Special::CounterGet, None) => return Ok(Expect::Exactly(Reply::Null)),
            (Special::CounterGet, Some(held)) => return Ok(whole(held.value)),
            (_, None) => return Ok(Expect::Exactly(Reply::NullArray)),
            (_, Some(held)) => {
                let bounds = [held.min, held.max].map(Reply::Integer);
                return Ok(Expect::Exactly(Reply::Array(bounds.to_vec())));
            }
        };
        let all = counter_mut(state, key)?;
        let moved = Counter {
            value: all.value.saturating_add(by),
            ..*all
        };
        let accepted = moved.is_sound();
        if accepted {
            *all = moved;
        }
        Ok(match (tells, accepted) {
            (false, accepted) => integer(usize::from(accepted)),
            (true, true) => whole(all.value),
            (true, false) => Expect::Exactly(Reply::Null),
        })
    }
}

/// What `TYPE` answers.
pub(super) fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "none",
        Some(Value::Text(_)) => "string",
        Some(Value::Hash(_)) => "hash",
        Some(Value::List(_)) => "list",
        Some(Value::Set(_)) => "set",
        Some(Value::Sorted(_)) => "zset",
        Some(Value::Ids(_)) => "uid",
        Some(Value::Ranking(_)) => "ranking",
        Some(Value::Summary(_)) => "bag",
        Some(Value::Counter(_)) => "bcount",
    }
}
