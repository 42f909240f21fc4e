//! Commands that wait for data, judged afterwards: they take the elements present
//! at some instant, or found nothing when they were executed.

use super::act::End;
use super::held::{Ran, list_mut, sorted_mut};
use super::value::{Name, Value, written};
use super::{Expect, State};
use rufous_resp::Reply;

/// What is taken, and the form of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `BLPOP`, `BRPOP`
    One(End),
    /// `BLMPOP`
    Some(End, u64),
    /// `BZPOPMIN`; `BZPOPMAX` where set
    Ranked(bool),
    /// `BZMPOP`, likewise
    RankedSome(bool, u64),
}

impl How {
    /// How many it may take.
    pub fn most(self) -> u64 {
        match self {
            How::One(_) | How::Ranked(_) => 1,
            How::Some(_, most) | How::RankedSome(_, most) => most,
        }
    }

    pub fn request(self, keys: &[&[u8]], timeout: &[u8]) -> Vec<Vec<u8>> {
        let word = |w: &str| w.as_bytes().to_vec();
        let names = keys.iter().map(|key| key.to_vec());
        let plain = |name: &str| {
            let mut all = vec![word(name)];
            all.extend(names.clone());
            all.push(timeout.to_vec());
            all
        };
        let many = |name: &str, from: &str, most: u64| {
            let count = keys.len().to_string();
            let mut all = vec![word(name), timeout.to_vec(), word(&count)];
            all.extend(names.clone());
            all.extend([word(from), word("COUNT"), word(&most.to_string())]);
            all
        };
        match self {
            How::One(End::Left) => plain("BLPOP"),
            How::One(End::Right) => plain("BRPOP"),
            How::Some(end, most) => many("BLMPOP", end.word(), most),
            How::Ranked(false) => plain("BZPOPMIN"),
            How::Ranked(true) => plain("BZPOPMAX"),
            How::RankedSome(top, most) => many("BZMPOP", if top { "MAX" } else { "MIN" }, most),
        }
    }
}

/// Seconds, as the commands want them.
pub fn seconds(ms: u64) -> Vec<u8> {
    format!("{}.{:03}", ms / 1_000, ms % 1_000).into_bytes()
}

/// One command on keys of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pop {
    pub how: How,
    pub keys: Vec<usize>,
    pub ms: u64,
}

impl Pop {
    pub(super) fn request(&self, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let names: Vec<_> = self.keys.iter().map(|k| &keys[*k][..]).collect();
        self.how.request(&names, &seconds(self.ms))
    }

    /// From the first key that has something.
    pub(super) fn run(&self, state: &mut State) -> Ran {
        for &key in &self.keys {
            let taken = match self.how {
                How::One(end) | How::Some(end, _) => {
                    let all = list_mut(state, key)?;
                    (0..self.how.most())
                        .map_while(|_| Some(vec![end.pop(all)?]))
                        .collect()
                }
                How::Ranked(top) | How::RankedSome(top, _) => ranked(state, key, top, self.how)?,
            };
            if !taken.is_empty() {
                return Ok(Expect::Popped(self.how, taken));
            }
        }
        Ok(Expect::Exactly(Reply::NullArray))
    }
}

fn ranked(
    state: &mut State,
    key: usize,
    top: bool,
    how: How,
) -> Result<Vec<Vec<Name>>, super::held::Wrong> {
    let all = sorted_mut(state, key)?;
    let mut order: Vec<_> = Value::ranked(all)
        .into_iter()
        .map(|(score, name)| vec![name.clone(), score.to_string().into_bytes()])
        .collect();
    if top {
        order.reverse();
    }
    order.truncate(how.most() as usize);
    all.retain(|name, _| order.iter().all(|pair| pair[0] != *name));
    Ok(order)
}

/// Whether a reply contains these elements, whatever the name of the key: elements
/// of another key would differ.
pub(super) fn tells(how: How, taken: &[Vec<Name>], reply: &Reply) -> bool {
    let Reply::Array(parts) = reply else {
        return false;
    };
    let bulk = |name: &Name| Reply::Bulk(written(name));
    let expected: Vec<Reply> = match how {
        How::One(_) | How::Ranked(_) => taken.iter().flatten().map(bulk).collect(),
        How::Some(..) => vec![Reply::Array(taken.iter().flatten().map(bulk).collect())],
        How::RankedSome(..) => {
            let pair = |pair: &Vec<Name>| Reply::Array(pair.iter().map(bulk).collect());
            vec![Reply::Array(taken.iter().map(pair).collect())]
        }
    };
    matches!(parts.split_first(), Some((Reply::Bulk(_), rest)) if *rest == expected[..])
}
