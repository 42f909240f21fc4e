//! What a key holds, and how elements of collections are written down: those of
//! many bytes by a short name, so that states stay small.

use rufous_resp::Reply;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An element. What ends with `:N` stands for N bytes: it, and then `x` again
/// and again.
pub type Name = Vec<u8>;

/// A key's contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Text(Vec<u8>),
    Hash(BTreeMap<Name, Name>),
    List(Vec<Name>),
    Set(BTreeSet<Name>),
    Sorted(BTreeMap<Name, i64>),
    Ids(Ids),
    Ranking(Ranking),
    Summary(Summary),
    Counter(Counter),
}

/// Identifiers that were given out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ids {
    pub taken: BTreeSet<i64>,
    /// How many more were given out whose numbers no client saw.
    pub unseen: u64,
}

impl Ids {
    /// A number above all of them is no less than this: none is negative.
    pub fn above(&self) -> i64 {
        let count = self.taken.len() as u64 + self.unseen;
        let last = self.taken.last().map_or(0, |last| last + 1);
        last.max(count as i64)
    }
}

/// The `k` highest members, each with its greatest score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ranking {
    k: u32,
    members: BTreeMap<Name, i64>,
}

impl Ranking {
    /// The least `k` that was given holds.
    pub fn add(&mut self, k: u32, score: i64, member: &Name) {
        self.k = if self.members.is_empty() {
            k
        } else {
            self.k.min(k)
        };
        let held = self.members.entry(member.clone()).or_insert(score);
        *held = score.max(*held);
        let low = self.highest_first().into_iter().skip(self.k as usize);
        let low: Vec<Name> = low.map(|(_, name)| name.clone()).collect();
        self.members.retain(|name, _| !low.contains(name));
    }

    /// Of equal scores the greater member ranks higher.
    pub fn highest_first(&self) -> Vec<(i64, &Name)> {
        let mut all = Value::ranked(&self.members);
        all.reverse();
        all
    }
}

/// Numbers that were added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Summary {
    pub count: u64,
    pub sum: i128,
    pub min: i64,
    pub max: i64,
}

impl Summary {
    pub fn add(&mut self, number: i64) {
        let first = self.count == 0;
        self.count += 1;
        self.sum += i128::from(number);
        self.min = if first { number } else { self.min.min(number) };
        self.max = if first { number } else { self.max.max(number) };
    }
}

/// A value that stays within its bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counter {
    pub value: i64,
    pub min: i64,
    pub max: i64,
}

impl Counter {
    pub fn is_sound(&self) -> bool {
        (self.min..=self.max).contains(&self.value)
    }
}

impl Value {
    pub fn text(&self) -> Option<&Vec<u8>> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_empty_collection(&self) -> bool {
        match self {
            Value::Text(_) | Value::Ids(_) | Value::Counter(_) => false,
            Value::Ranking(all) => all.members.is_empty(),
            Value::Summary(all) => all.count == 0,
            Value::Hash(all) => all.is_empty(),
            Value::List(all) => all.is_empty(),
            Value::Set(all) => all.is_empty(),
            Value::Sorted(all) => all.is_empty(),
        }
    }

    /// Members by rank: those of one score by their bytes.
    pub fn ranked(members: &BTreeMap<Name, i64>) -> Vec<(i64, &Name)> {
        let mut all: Vec<_> = members.iter().map(|(name, score)| (*score, name)).collect();
        all.sort_by(|(s, m), (t, n)| s.cmp(t).then_with(|| written(m).cmp(&written(n))));
        all
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |name: &Name| crate::engine::trace::show(name);
        let all = match self {
            Value::Text(text) => return f.write_str(&crate::engine::trace::show(text)),
            Value::Hash(all) => all
                .iter()
                .map(|(k, v)| format!("{}={}", show(k), show(v)))
                .collect(),
            Value::List(all) => all.iter().map(show).collect(),
            Value::Set(all) => all.iter().map(show).collect(),
            Value::Ids(all) => vec![format!("{:?} and {} more", all.taken, all.unseen)],
            Value::Summary(all) => vec![format!("{all:?}")],
            Value::Counter(all) => vec![format!("{} in {}..={}", all.value, all.min, all.max)],
            Value::Ranking(Ranking { members: all, .. }) | Value::Sorted(all) => all
                .iter()
                .map(|(k, v)| format!("{}={v}", show(k)))
                .collect::<Vec<_>>(),
        };
        write!(f, "[{}]", all.join(" "))
    }
}

/// The bytes that an element stands for.
pub fn written(name: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    let colon = name.iter().rposition(|b| *b == b':');
    let len = colon.and_then(|at| std::str::from_utf8(&name[at + 1..]).ok()?.parse().ok());
    bytes.resize(bytes.len().max(len.unwrap_or(0)), b'x');
    bytes
}

/// The element that these bytes are; what is none comes back as it is.
pub fn name_of(bytes: &[u8]) -> Name {
    let end = bytes
        .iter()
        .rposition(|b| *b != b'x')
        .map_or(0, |at| at + 1);
    let name = &bytes[..end];
    match written(name) == bytes {
        true => name.to_vec(),
        false => bytes.to_vec(),
    }
}

/// The elements of a reply, which has only such.
pub fn names(reply: &Reply) -> Option<Vec<Name>> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let name = |part: &Reply| match part {
        Reply::Bulk(bytes) => Some(name_of(bytes)),
        _ => None,
    };
    parts.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_bytes() {
        assert_eq!(written(b"m1"), b"m1");
        assert_eq!(written(b"m1:7"), b"m1:7xxx");
        for name in [&b"m1"[..], b"m1:7", b"m1:1000", b"12", b""] {
            assert_eq!(name_of(&written(name)), name);
        }
        assert_eq!(name_of(b"m1:7xx"), b"m1:7xx", "too short");
        assert_eq!(name_of(b"m1x"), b"m1x");
    }
}
