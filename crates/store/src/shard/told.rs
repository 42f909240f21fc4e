//! What other nodes tell, and what is told them of what is here.
//!
//! What a worker has merged of this node's workers is in their logs. Of what
//! other nodes have told, each worker's own log says that it has it: a node says
//! how far it has heard, others forget by that, and so its files must have
//! what it has said to know.

use super::Shard;
use super::types::{Any, Key};
use crate::effect::{Effect, NotAnEffect};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Forgotten;

/// Bytes of a state that are merged together.
const CHUNK: usize = 64 << 10;

impl Shard {
    /// As [`Shard::merge`], of what another node has changed.
    pub fn merge_told(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        chunk: &[u8],
        now: Now,
    ) -> Result<bool, NotAnEffect> {
        let changed = self.merge(db, key, tag, chunk, now)?;
        if changed && self.env.journaling && !planted::is(Planted::ToldNotLogged) {
            // What made way for it has to be in the log before.
            self.tell_horizon();
            let (db, key) = (db as u8, key.bytes);
            Effect::More {
                db,
                key,
                tag,
                chunk,
            }
            .encode(&mut self.env.journal);
        }
        Ok(changed)
    }

    /// Likewise of what another node has, as it is: it may not have forgotten yet
    /// what is forgotten here. All had heard of that, so nothing is lost with it.
    pub fn merge_again(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        chunk: &[u8],
        now: Now,
    ) -> Result<bool, NotAnEffect> {
        let forgotten = self.env.forgotten;
        if forgotten == 0 {
            return self.merge_told(db, key, tag, chunk, now);
        }
        if !tag.is_replicated() {
            return Err(NotAnEffect);
        }
        let mut object = tag.empty();
        let done = object.extend(chunk, &self.env.tuning);
        done.map_err(|_| NotAnEffect)?;
        let is_over = object.is_hidden() && object.until() <= forgotten;
        if is_over || object.forget(forgotten, usize::MAX) == Forgotten::Empty {
            return Ok(false);
        }
        let (mut chunk, mut next, mut changed) = (Vec::new(), Some(0), false);
        while let Some(at) = next {
            chunk.clear();
            next = object.chunk(at, CHUNK, &mut chunk);
            changed |= self.merge_told(db, key, tag, &chunk, now)?;
        }
        Ok(changed)
    }

    /// Up to where something was forgotten here.
    pub fn forgotten(&self) -> u64 {
        self.env.forgotten
    }

    /// A number for all that is known of a key here, the same where the same is
    /// known. It does not depend on the order of elements, and may differ where
    /// one has forgotten what the other has not.
    pub fn sum_replica(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<u64> {
        let found = self.dbs[db].live(key, now, &mut self.env);
        let at = &self.dbs[db];
        let grave;
        let any = match found {
            Some(found) => at.value(found.handle),
            None => {
                grave = at.graves.get(key.bytes)?;
                Any::of_object(&grave)
            }
        };
        let tag = any.tag().filter(|tag| tag.is_replicated())?;
        let name = hash(hash(START, &[db as u8, tag as u8]), key.bytes);
        let mut chunk = std::mem::take(&mut self.env.packed);
        let (mut sum, mut next) = (mixed(name), Some(0));
        while let Some(from) = next {
            chunk.clear();
            // One element at a time: their order is no node's business.
            next = any.chunk(from, 1, &mut chunk);
            sum = sum.wrapping_add(mixed(hash(name, &chunk)));
        }
        self.env.packed = chunk;
        Some(sum)
    }
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over words: nobody gains by finding two of the same, but to have his
/// own keys told again later.
fn hash(start: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let step = |hash: u64, word: u64| {
        (hash ^ word)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(29)
    };
    let whole = words.by_ref().map(|word| {
        let mut all = [0; 8];
        all.copy_from_slice(word);
        u64::from_le_bytes(all)
    });
    let so_far = whole.fold(start, step);
    let rest = words.remainder().iter().map(|&byte| u64::from(byte));
    let so_far = rest.fold(so_far, step);
    step(so_far, bytes.len() as u64)
}

fn mixed(mut hash: u64) -> u64 {
    for _ in 0..2 {
        hash ^= hash >> 32;
        hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    hash ^ hash >> 32
}
