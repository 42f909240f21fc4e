//! Changes received from other nodes, and checksums of the local state for them.
//!
//! What a worker has merged of this node's workers is in their logs. What it has received from other nodes is written
//! to its own log: a node reports how much it has received and others forget by that, so its files must contain
//! everything that it has reported.

use super::at::At;
use super::merging;
use crate::effect::{Effect, NotAnEffect};
use crate::planted::{self, Planted};
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Forgotten;

/// Bytes of a state that are merged in one step.
const CHUNK: usize = 64 << 10;

/// Like [`Shard::merge`](super::Shard::merge), of a change received from another node; it is also written to the
/// journal.
pub fn merge(at: &mut At<'_>, tag: Tag, chunk: &[u8]) -> Result<bool, NotAnEffect> {
    let changed = merging::merge(at, tag, chunk)?;
    let journal = &mut at.env.observers.journal;
    if changed && journal.is_on() && !planted::is(Planted::ToldNotLogged) {
        // The note of what made way for it must precede it in the log.
        at.env.horizons.tell(journal);
        journal.write(&Effect::More {
            db: at.db.number,
            key: at.key.bytes,
            tag,
            chunk,
        });
    }
    Ok(changed)
}

/// The same of another node's whole state: it may still have what is forgotten here. All nodes had received that, so
/// dropping it loses nothing.
pub fn merge_again(at: &mut At<'_>, tag: Tag, chunk: &[u8]) -> Result<bool, NotAnEffect> {
    let forgotten = at.env.horizons.forgotten();
    if forgotten == 0 {
        return merge(at, tag, chunk);
    }
    if !tag.is_replicated() {
        return Err(NotAnEffect);
    }
    let mut object = tag.empty();
    let done = object.extend(chunk, &at.env.tuning);
    done.map_err(|_| NotAnEffect)?;
    let is_over = object.is_hidden() && object.until() <= forgotten;
    if is_over || object.forget(forgotten, usize::MAX) == Forgotten::Empty {
        return Ok(false);
    }
    let (mut chunk, mut next, mut changed) = (Vec::new(), Some(0), false);
    while let Some(from) = next {
        chunk.clear();
        next = object.chunk(from, CHUNK, &mut chunk);
        changed |= merge(at, tag, &chunk)?;
    }
    Ok(changed)
}

/// A checksum of the replicated state of a key, equal for equal states. It does not depend on the order of elements,
/// and may differ if one node has forgotten what the other has not.
pub fn sum(at: &mut At<'_>) -> Option<u64> {
    let (db, key) = (at.db.number, at.key);
    let sum = at.with_state(|any, _, env| {
        let tag = any.tag().filter(|tag| tag.is_replicated())?;
        let name = hash(hash(START, &[db, tag as u8]), key.bytes);
        let mut chunk = std::mem::take(&mut env.packed);
        let (mut sum, mut next) = (mixed(name), Some(0));
        while let Some(from) = next {
            chunk.clear();
            // One element at a time: their order may differ between nodes.
            next = any.chunk(from, 1, &mut chunk);
            sum = sum.wrapping_add(mixed(hash(name, &chunk)));
        }
        env.packed = chunk;
        Some(sum)
    });
    sum.flatten()
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over words: a client that finds a collision only gains that its own keys are sent again later.
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
