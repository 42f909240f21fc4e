//! Commands on collections, on plain ones of the standard library.

use super::claret::{Special, type_name};
use super::held::{Ran, Wrong, hash, hash_mut, list, list_mut, set, set_mut, sorted, sorted_mut};
use super::pops::Pop;
use super::value::{Name, Value, names, written};
use super::{Entry, Expect, State, integer};
use rufous_resp::Reply;
use std::collections::{BTreeMap, BTreeSet};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Left,
    Right,
}

/// One command on collections; keys are places in the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    HSet(usize, Vec<(Name, Name)>),
    HDel(usize, Vec<Name>),
    HIncrBy(usize, Name, i64),
    HGetAll(usize),
    Push(usize, End, Vec<Name>),
    Take(usize, End),
    LSet(usize, i64, Name),
    LRange(usize),
    LMove(usize, usize, End, End),
    SAdd(usize, Vec<Name>),
    SRem(usize, Vec<Name>),
    /// What it took, once that is known.
    SPop(usize, Option<Name>),
    SMembers(usize),
    SMove(usize, usize, Name),
    /// Of all keys of the unit.
    SUnionStore(usize),
    ZAdd(usize, Vec<(i64, Name)>),
    ZIncrBy(usize, i64, Name),
    ZRem(usize, Vec<Name>),
    ZPopMin(usize),
    ZRange(usize),
    /// Of all keys of the unit.
    ZUnionStore(usize),
    /// On a type of Claret's.
    Special(usize, Special),
    /// Waits for a while where there is nothing.
    Pop(Pop),
    /// Of which type it is.
    Type(usize),
}

impl Act {
    /// The only key that it is about, where it is about one.
    pub fn only_key(&self) -> Option<usize> {
        match self {
            Act::HSet(key, _)
            | Act::HDel(key, _)
            | Act::HIncrBy(key, ..)
            | Act::HGetAll(key)
            | Act::Push(key, ..)
            | Act::Take(key, _)
            | Act::LSet(key, ..)
            | Act::LRange(key)
            | Act::SAdd(key, _)
            | Act::SRem(key, _)
            | Act::SPop(key, _)
            | Act::SMembers(key)
            | Act::ZAdd(key, _)
            | Act::ZIncrBy(key, ..)
            | Act::ZRem(key, _)
            | Act::ZPopMin(key)
            | Act::ZRange(key)
            | Act::Special(key, _)
            | Act::Type(key) => Some(*key),
            Act::Pop(pop) => match pop.keys[..] {
                [key] => Some(key),
                _ => None,
            },
            Act::LMove(..) | Act::SMove(..) | Act::SUnionStore(_) | Act::ZUnionStore(_) => None,
        }
    }

    pub fn looks_at(&self, key: usize) -> bool {
        match self {
            Act::LMove(a, b, ..) | Act::SMove(a, b, _) => *a == key || *b == key,
            Act::Pop(pop) => pop.keys.contains(&key),
            _ => self.only_key().is_none_or(|only| only == key),
        }
    }

    pub fn writes(&self) -> bool {
        match self {
            Act::HGetAll(_) | Act::LRange(_) | Act::SMembers(_) | Act::ZRange(_) | Act::Type(_) => {
                false
            }
            Act::Special(_, special) => special.writes(),
            _ => true,
        }
    }

    pub fn request(&self, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
        if let Act::Pop(pop) = self {
            return pop.request(keys);
        }
        let mut all = Vec::new();
        let mut put = |word: &[u8]| all.push(word.to_vec());
        let (name, key) = self.name_and_key();
        put(name.as_bytes());
        put(&keys[key]);
        let elements = |all: &[Name]| all.iter().map(|n| written(n)).collect::<Vec<_>>();
        let number = |n: &i64| n.to_string().into_bytes();
        let rest: Vec<Vec<u8>> = match self {
            Act::HSet(_, fields) => fields
                .iter()
                .flat_map(|(f, v)| [written(f), written(v)])
                .collect(),
            Act::HIncrBy(_, field, by) => vec![written(field), number(by)],
            Act::HDel(_, names)
            | Act::SRem(_, names)
            | Act::ZRem(_, names)
            | Act::SAdd(_, names)
            | Act::Push(_, _, names) => elements(names),
            Act::LSet(_, at, value) => vec![number(at), written(value)],
            Act::LRange(_) => vec![b"0".to_vec(), b"-1".to_vec()],
            Act::ZRange(_) => vec![b"0".to_vec(), b"-1".to_vec(), b"WITHSCORES".to_vec()],
            Act::LMove(_, to, a, b) => {
                vec![keys[*to].clone(), a.word().into(), b.word().into()]
            }
            Act::SMove(_, to, member) => vec![keys[*to].clone(), written(member)],
            Act::SUnionStore(_) => keys.to_vec(),
            Act::ZUnionStore(_) => {
                let count = keys.len().to_string().into_bytes();
                std::iter::once(count).chain(keys.iter().cloned()).collect()
            }
            Act::ZAdd(_, members) => members
                .iter()
                .flat_map(|(s, m)| [number(s), written(m)])
                .collect(),
            Act::ZIncrBy(_, by, member) => vec![number(by), written(member)],
            Act::Special(_, special) => special.arguments(),
            _ => Vec::new(),
        };
        all.extend(rest);
        all
    }

    fn name_and_key(&self) -> (&'static str, usize) {
        let (name, key) = match self {
            Act::HSet(key, _) => ("HSET", key),
            Act::HDel(key, _) => ("HDEL", key),
            Act::HIncrBy(key, ..) => ("HINCRBY", key),
            Act::HGetAll(key) => ("HGETALL", key),
            Act::Push(key, End::Left, _) => ("LPUSH", key),
            Act::Push(key, End::Right, _) => ("RPUSH", key),
            Act::Take(key, End::Left) => ("LPOP", key),
            Act::Take(key, End::Right) => ("RPOP", key),
            Act::LSet(key, ..) => ("LSET", key),
            Act::LRange(key) => ("LRANGE", key),
            Act::LMove(key, ..) => ("LMOVE", key),
            Act::SAdd(key, _) => ("SADD", key),
            Act::SRem(key, _) => ("SREM", key),
            Act::SPop(key, _) => ("SPOP", key),
            Act::SMembers(key) => ("SMEMBERS", key),
            Act::SMove(key, ..) => ("SMOVE", key),
            Act::SUnionStore(key) => ("SUNIONSTORE", key),
            Act::ZAdd(key, _) => ("ZADD", key),
            Act::ZIncrBy(key, ..) => ("ZINCRBY", key),
            Act::ZRem(key, _) => ("ZREM", key),
            Act::ZPopMin(key) => ("ZPOPMIN", key),
            Act::ZRange(key) => ("ZRANGE", key),
            Act::ZUnionStore(key) => ("ZUNIONSTORE", key),
            Act::Special(key, special) => (special.name(), key),
            // Has more than one.
            Act::Pop(pop) => ("", &pop.keys[0]),
            Act::Type(key) => ("TYPE", key),
        };
        (name, *key)
    }

    /// What it may have done: of all that it might take, that which it says.
    pub fn choices(&self, state: &State, reply: Option<&Reply>) -> Vec<Act> {
        if let Some(reply) = reply
            && let Act::Special(..) = self
        {
            return vec![self.as_told(reply)];
        }
        let Act::SPop(key, None) = self else {
            return vec![self.clone()];
        };
        let Ok(Some(members)) = set(state, *key) else {
            return vec![self.clone()];
        };
        let named = reply.and_then(|r| names(&Reply::Array(vec![r.clone()])));
        let took = |member: &Name| Act::SPop(*key, Some(member.clone()));
        match named {
            Some(named) => named.iter().map(took).collect(),
            None => members.iter().map(took).collect(),
        }
    }

    /// With what the reply says that the node chose, where that says it all.
    pub fn as_told(&self, reply: &Reply) -> Act {
        match self {
            Act::Special(key, special) => Act::Special(*key, special.as_told(reply)),
            _ => self.clone(),
        }
    }

    /// Changes the state and returns the expected reply.
    pub fn run(&self, state: &mut State) -> Expect {
        let before = state.clone();
        let ran = match self {
            Act::HSet(..) | Act::HDel(..) | Act::HIncrBy(..) | Act::HGetAll(_) => self.hash(state),
            Act::Push(..) | Act::Take(..) | Act::LSet(..) | Act::LRange(_) | Act::LMove(..) => {
                self.list(state)
            }
            Act::ZAdd(..)
            | Act::ZIncrBy(..)
            | Act::ZRem(..)
            | Act::ZPopMin(_)
            | Act::ZRange(_)
            | Act::ZUnionStore(_) => self.sorted(state),
            Act::Special(key, special) => special.run(state, *key),
            Act::Pop(pop) => pop.run(state),
            Act::Type(key) => {
                let name = type_name(state[*key].as_ref().map(|entry| &entry.value));
                Ok(Expect::Exactly(Reply::Simple(name.into())))
            }
            _ => self.set(state),
        };
        let Ok(expected) = ran else {
            *state = before;
            return Expect::Error("WRONGTYPE");
        };
        for entry in state.iter_mut() {
            if entry
                .as_ref()
                .is_some_and(|e| e.value.is_empty_collection())
            {
                *entry = None;
            }
        }
        expected
    }

    fn hash(&self, state: &mut State) -> Ran {
        Ok(match self {
            Act::HSet(key, fields) => {
                let all = hash_mut(state, *key)?;
                let new = fields
                    .iter()
                    .filter(|(f, v)| all.insert(f.clone(), v.clone()).is_none());
                integer(new.count())
            }
            Act::HDel(key, fields) => {
                let all = hash_mut(state, *key)?;
                integer(fields.iter().filter(|f| all.remove(*f).is_some()).count())
            }
            Act::HIncrBy(key, field, by) => {
                let all = hash_mut(state, *key)?;
                let text = all.get(field).map_or(&b"0"[..], |v| v);
                let number = std::str::from_utf8(text).ok();
                let Some(number) = number.and_then(|t| t.parse::<i64>().ok()) else {
                    return Ok(Expect::Error("ERR hash value is not an integer"));
                };
                let sum = number + by;
                all.insert(field.clone(), sum.to_string().into_bytes());
                Expect::Exactly(Reply::Integer(sum))
            }
            Act::HGetAll(key) => {
                let pairs = hash(state, *key)?.into_iter().flatten();
                Expect::Bag(pairs.map(|(f, v)| vec![f.clone(), v.clone()]).collect())
            }
            _ => return Err(Wrong),
        })
    }

    fn list(&self, state: &mut State) -> Ran {
        Ok(match self {
            Act::Push(key, end, values) => {
                let all = list_mut(state, *key)?;
                values.iter().for_each(|v| end.push(all, v.clone()));
                integer(all.len())
            }
            Act::Take(key, end) => Expect::Element(end.pop(list_mut(state, *key)?)),
            Act::LSet(key, at, value) => {
                let Some(all) = list(state, *key)? else {
                    return Ok(Expect::Error("ERR no such key"));
                };
                let at = if *at < 0 { *at + all.len() as i64 } else { *at };
                match list_mut(state, *key)?.get_mut(at as usize) {
                    Some(place) => *place = value.clone(),
                    None => return Ok(Expect::Error("ERR index out of range")),
                }
                super::ok()
            }
            Act::LRange(key) => Expect::Elements(list(state, *key)?.cloned().unwrap_or_default()),
            Act::LMove(from, to, a, b) => {
                if list(state, *from)?.is_none() {
                    return Ok(Expect::Element(None));
                }
                list(state, *to)?;
                let moved = a.pop(list_mut(state, *from)?);
                let values = moved.clone().into_iter();
                let all = list_mut(state, *to)?;
                values.for_each(|v| b.push(all, v));
                Expect::Element(moved)
            }
            _ => return Err(Wrong),
        })
    }

    fn set(&self, state: &mut State) -> Ran {
        Ok(match self {
            Act::SAdd(key, members) => {
                let all = set_mut(state, *key)?;
                integer(members.iter().filter(|m| all.insert((*m).clone())).count())
            }
            Act::SRem(key, members) => {
                let all = set_mut(state, *key)?;
                integer(members.iter().filter(|m| all.remove(*m)).count())
            }
            Act::SPop(key, taken) => {
                let all = set_mut(state, *key)?;
                match taken {
                    Some(member) if !all.remove(member) => Expect::Never,
                    taken => Expect::Element(taken.clone()),
                }
            }
            Act::SMembers(key) => {
                let members = set(state, *key)?.into_iter().flatten();
                Expect::Bag(members.map(|m| vec![m.clone()]).collect())
            }
            Act::SMove(from, to, member) => {
                if set(state, *from)?.is_none() {
                    return Ok(integer(0));
                }
                set(state, *to)?;
                let moves = set_mut(state, *from)?.remove(member);
                if moves {
                    set_mut(state, *to)?.insert(member.clone());
                }
                integer(usize::from(moves))
            }
            Act::SUnionStore(to) => {
                let mut union = BTreeSet::new();
                for key in 0..state.len() {
                    union.extend(set(state, key)?.into_iter().flatten().cloned());
                }
                let size = union.len();
                state[*to] = Some(Entry {
                    value: Value::Set(union),
                    expiry: None,
                });
                integer(size)
            }
            _ => return Err(Wrong),
        })
    }

    fn sorted(&self, state: &mut State) -> Ran {
        Ok(match self {
            Act::ZAdd(key, members) => {
                let all = sorted_mut(state, *key)?;
                let new = members
                    .iter()
                    .filter(|(s, m)| all.insert(m.clone(), *s).is_none());
                integer(new.count())
            }
            Act::ZIncrBy(key, by, member) => {
                let score = sorted_mut(state, *key)?.entry(member.clone()).or_default();
                *score += by;
                Expect::Element(Some(score.to_string().into_bytes()))
            }
            Act::ZRem(key, members) => {
                let all = sorted_mut(state, *key)?;
                integer(members.iter().filter(|m| all.remove(*m).is_some()).count())
            }
            Act::ZPopMin(key) => {
                let all = sorted_mut(state, *key)?;
                let lowest = Value::ranked(all).first().map(|(s, m)| (*s, (*m).clone()));
                let Some((score, member)) = lowest else {
                    return Ok(Expect::Elements(Vec::new()));
                };
                all.remove(&member);
                Expect::Elements(vec![member, score.to_string().into_bytes()])
            }
            Act::ZRange(key) => {
                let ranked = sorted(state, *key)?.map(Value::ranked).unwrap_or_default();
                let pairs = ranked.into_iter();
                let pairs = pairs.flat_map(|(s, m)| [m.clone(), s.to_string().into_bytes()]);
                Expect::Elements(pairs.collect())
            }
            Act::ZUnionStore(to) => {
                let mut union = BTreeMap::<Name, i64>::new();
                let mut add = |member: &Name, score| {
                    *union.entry(member.clone()).or_default() += score;
                };
                for entry in state.iter().flatten() {
                    match &entry.value {
                        Value::Sorted(all) => all.iter().for_each(|(m, score)| add(m, *score)),
                        // Members of a set count as if they had the score 1.
                        Value::Set(all) => all.iter().for_each(|m| add(m, 1)),
                        _ => return Err(Wrong),
                    }
                }
                let size = union.len();
                state[*to] = Some(Entry {
                    value: Value::Sorted(union),
                    expiry: None,
                });
                integer(size)
            }
            _ => return Err(Wrong),
        })
    }
}

impl End {
    pub fn word(self) -> &'static str {
        match self {
            End::Left => "LEFT",
            End::Right => "RIGHT",
        }
    }

    fn push(self, list: &mut Vec<Name>, value: Name) {
        match self {
            End::Left => list.insert(0, value),
            End::Right => list.push(value),
        }
    }

    pub(super) fn pop(self, list: &mut Vec<Name>) -> Option<Name> {
        match self {
            End::Left => (!list.is_empty()).then(|| list.remove(0)),
            End::Right => list.pop(),
        }
    }
}
