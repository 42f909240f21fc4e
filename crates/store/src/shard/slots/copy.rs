//! The effects of a copy of a slot that were produced, and what is still to be put.

use super::PART;
use crate::effect::Effect;
use crate::shard::types::{Any, Item, Value};
use rufous_datatype::object::Object;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Database and key.
type Name = (u8, Box<[u8]>);

#[derive(Debug, Default)]
pub(super) struct Copy {
    pub(super) parts: VecDeque<Vec<u8>>,
    /// Large values that are not complete yet.
    pub(super) rests: Vec<Rest>,
    /// Keys to be put whole, or to be deleted at the receiver.
    pub(super) again: BTreeSet<Name>,
}

#[derive(Debug)]
pub(super) enum Large {
    Object(Object),
    String(Arc<Vec<u8>>),
}

/// A large value as it was, and the position of its next chunk.
#[derive(Debug)]
pub(super) struct Rest {
    name: Name,
    pub(super) value: Large,
    at: u64,
    /// Later effects on it.
    pub(super) later: Vec<Vec<u8>>,
}

impl Copy {
    pub(super) fn push(&mut self, effect: &[u8], backlog: &mut usize) {
        *backlog += effect.len();
        match self.parts.back_mut().filter(|part| part.len() < PART) {
            Some(part) => part.extend_from_slice(effect),
            None => self.parts.push_back(effect.to_vec()),
        }
    }

    pub(super) fn say(&mut self, effect: &Effect<'_>, backlog: &mut usize) {
        let mut bytes = Vec::new();
        effect.encode(&mut bytes);
        self.push(&bytes, backlog);
    }

    /// Puts a key, or its first chunk.
    pub(super) fn put(&mut self, db: u8, item: &Item<'_>, backlog: &mut usize) {
        let (key, expire_at) = (item.key, item.expire_at);
        let Some(tag) = item.value.tag() else {
            let value = item.value.string();
            let bytes = value.map_or(&b""[..], Value::bytes);
            let first = &bytes[..bytes.len().min(PART)];
            let effect = Effect::Set {
                db,
                key,
                value: first,
                expire_at,
            };
            self.say(&effect, backlog);
            if let Ok(Value::Big(whole)) = value
                && first.len() < bytes.len()
            {
                self.go_on((db, key), Large::String(Arc::clone(whole)), PART as u64);
            }
            return;
        };
        let mut chunk = Vec::new();
        let next = item.value.chunk(0, PART / 4, &mut chunk);
        let effect = Effect::Put {
            db,
            key,
            tag,
            chunk: &chunk,
            expire_at,
        };
        self.say(&effect, backlog);
        if let (Some(at), Any::Object(object)) = (next, item.value) {
            self.go_on((db, key), Large::Object(object.clone()), at);
        }
    }

    fn go_on(&mut self, (db, key): (u8, &[u8]), value: Large, at: u64) {
        self.rests.push(Rest {
            name: (db, key.into()),
            value,
            at,
            later: Vec::new(),
        });
    }

    pub(super) fn rest_of(&self, name: (u8, &[u8])) -> Option<usize> {
        let mut rests = self.rests.iter();
        rests.position(|rest| (rest.name.0, &*rest.name.1) == name)
    }

    /// Puts the next chunk of a large value. Returns the value when it is complete.
    pub(super) fn write_on(&mut self, backlog: &mut usize) -> Option<Large> {
        let rest = self.rests.last_mut()?;
        let (db, key) = (rest.name.0, &*rest.name.1);
        let mut bytes = Vec::new();
        let next = match &rest.value {
            Large::Object(object) => {
                let mut chunk = Vec::new();
                let next = object.chunk(rest.at, PART, &mut chunk);
                let (tag, chunk) = (object.tag(), &chunk[..]);
                let effect = Effect::More {
                    db,
                    key,
                    tag,
                    chunk,
                };
                effect.encode(&mut bytes);
                next
            }
            Large::String(whole) => {
                let from = (rest.at as usize).min(whole.len());
                let end = (from + PART).min(whole.len());
                let tail = &whole[from..end];
                Effect::Append { db, key, tail }.encode(&mut bytes);
                (end < whole.len()).then_some(end as u64)
            }
        };
        rest.at = next.unwrap_or(rest.at);
        self.push(&bytes, backlog);
        if next.is_some() {
            return None;
        }
        let rest = self.rests.pop()?;
        for effect in &rest.later {
            self.push(effect, backlog);
        }
        Some(rest.value)
    }
}
