//! Counters and sets with many replicas: the operations of clients at each node,
//! and the state that each connection was shown.
//!
//! Every element is added once, and only seen elements are removed. A
//! connection stays at one replica of a key: what it was shown stays until it may have
//! been removed, and does not come back; a counter does not fall.
//!
//! `end` judges all of it after quiet.

mod end;

use rufous_resp::Reply;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Counter,
    Set,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Add(u64),
    Remove(u64),
    Members,
    Count(u64),
    Sum,
}

impl Shape {
    pub fn look(self) -> Deed {
        match self {
            Shape::Counter => Deed::Sum,
            Shape::Set => Deed::Members,
        }
    }
}

impl Deed {
    pub fn writes(&self) -> bool {
        !matches!(self, Deed::Members | Deed::Sum)
    }

    pub fn request(&self, key: &str) -> Vec<Vec<u8>> {
        let (name, rest) = match self {
            Deed::Add(element) => ("SADD", Some(element)),
            Deed::Remove(element) => ("SREM", Some(element)),
            Deed::Count(by) => ("INCRBY", Some(by)),
            Deed::Members => ("SMEMBERS", None),
            Deed::Sum => ("GET", None),
        };
        let rest = rest.map(|number| number.to_string().into_bytes());
        let words = [name.into(), key.into()];
        words.into_iter().chain(rest).collect()
    }

    /// What a reply says; nothing, where it is none to this.
    pub fn told(&self, reply: &Reply) -> Option<Told> {
        match (self, reply) {
            (Deed::Members, Reply::Array(all) | Reply::Set(all)) => {
                all.iter().map(number).collect::<Option<_>>().map(Told::All)
            }
            (Deed::Sum, Reply::Null) => Some(Told::Number(0)),
            (Deed::Sum, text) => number(text).map(Told::Number),
            (_, Reply::Integer(n)) => u64::try_from(*n).ok().map(Told::Number),
            _ => None,
        }
    }
}

fn number(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// What a reply said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Number(u64),
    All(BTreeSet<u64>),
}

/// Something that a client did.
#[derive(Debug)]
pub struct Done {
    pub key: usize,
    pub deed: Deed,
    /// The number of the node that it was done at, if that is known.
    pub number: Option<u16>,
    /// Nothing, if that is in doubt.
    pub told: Option<Told>,
}

/// What a connection knows of one key.
#[derive(Debug, Default)]
pub struct Shown {
    there: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    sum: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Account {
    done: Vec<Done>,
    /// The elements that a client has asked to remove.
    unwanted: BTreeSet<u64>,
    /// What is not seen any more where it was, and by which node's word.
    gone: Vec<(usize, u64, Option<u16>)>,
}

impl Account {
    /// A client is about to remove an element.
    pub fn want_away(&mut self, element: u64) {
        self.unwanted.insert(element);
    }

    pub fn done(&self) -> &[Done] {
        &self.done
    }

    /// Takes down what was done. An error says why that cannot be, after all that its
    /// connection was shown of the key, which has this name.
    pub fn note(&mut self, name: &str, shown: &mut Shown, done: Done) -> Result<(), String> {
        let fits = self.look(name, shown, &done);
        self.done.push(done);
        fits
    }

    /// Checks a reply to a connection at one replica against its earlier replies.
    fn look(&mut self, name: &str, shown: &mut Shown, done: &Done) -> Result<(), String> {
        let Some(told) = &done.told else {
            return Ok(());
        };
        match (&done.deed, told) {
            (Deed::Add(element), Told::Number(new)) => {
                shown.there.insert(*element);
                if *new != 1 {
                    return Err(format!("{name} had {element} before it was added"));
                }
            }
            (Deed::Remove(element), Told::Number(count)) => {
                if *count > 1 {
                    return Err(format!("{count} elements of {name} were removed for one"));
                }
                let was_there = shown.there.remove(element);
                if *count == 1 || was_there {
                    shown.gone.insert(*element);
                    self.gone.push((done.key, *element, done.number));
                }
            }
            (Deed::Members, Told::All(all)) => self.look_at_members(name, shown, done, all)?,
            (Deed::Count(by), Told::Number(sum)) if *sum < shown.sum + by => {
                return Err(format!(
                    "{name} was {}, and is {sum} with {by} more",
                    shown.sum
                ));
            }
            (Deed::Sum, Told::Number(sum)) if *sum < shown.sum => {
                return Err(format!("{name} was {}, and is {sum}", shown.sum));
            }
            (Deed::Count(_) | Deed::Sum, Told::Number(sum)) => shown.sum = *sum,
            _ => return Err(format!("{done:?} makes no sense")),
        }
        Ok(())
    }

    fn look_at_members(
        &mut self,
        name: &str,
        shown: &mut Shown,
        done: &Done,
        all: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let missing: Vec<u64> = shown.there.difference(all).copied().collect();
        if let Some(element) = missing.iter().find(|of| !self.unwanted.contains(of)) {
            return Err(format!(
                "{name} has lost {element}, which nobody removed, for a connection"
            ));
        }
        if let Some(element) = shown.gone.intersection(all).next() {
            return Err(format!(
                "{name} has {element} again, which was gone, for a connection"
            ));
        }
        let gone = missing.iter().map(|of| (done.key, *of, done.number));
        self.gone.extend(gone);
        shown.gone.extend(missing);
        shown.there.clone_from(all);
        Ok(())
    }
}
