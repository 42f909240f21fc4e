//! One pass over ranges of files, in order.

use super::Damage;
use rufous_base::disk::FileName;
use rufous_datatype::algebra::Tuning;
use rufous_store::effect::{Effect, NotAnEffect};
use rufous_store::keyspace::Keyspaces;
use rufous_store::shard::{Shard, Warm};

/// A range of a file, to be read from `from` up to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Span {
    pub(in super::super) file: FileName,
    pub(in super::super) from: u64,
    pub(in super::super) to: u64,
}

/// The processing of the bytes of spans. It receives each span in turn: its bytes in pieces of any
/// size, then its end.
pub(in super::super) trait Pass {
    fn spans(&self) -> Vec<Span>;
    fn feed(&mut self, span: usize, bytes: &[u8], target: &mut dyn Target) -> Result<(), Damage>;
    fn end(&mut self, span: usize, target: &mut dyn Target) -> Result<(), Damage>;
}

/// The number of effects that are applied together.
const TOGETHER: usize = 64;
/// Larger effects are applied without copying them.
const KEEP_BYTES: usize = 256 << 10;

/// The target to which effects are applied.
pub(in super::super) trait Target {
    /// Applies encoded effects, [`TOGETHER`] at most.
    fn apply(&mut self, effects: &[u8]) -> Result<(), NotAnEffect>;
}

impl Target for Shard {
    /// First accesses the places of all keys, so that the processor waits for memory once rather
    /// than for each key.
    fn apply(&mut self, effects: &[u8]) -> Result<(), NotAnEffect> {
        let mut places: [Option<(usize, Warm)>; TOGETHER] = [None; TOGETHER];
        let mut count = 0;
        let mut rest = effects;
        while !rest.is_empty() && count < TOGETHER {
            if let Some((db, key)) = Effect::decode(&mut rest)?.keys().next() {
                let (db, hash) = (usize::from(db), self.key(key).hash);
                places[count] = Some((db, self.warm_index(db, hash)));
                count += 1;
            }
        }
        for (db, warm) in places.into_iter().flatten() {
            self.warm_record(db, warm);
        }
        let mut rest = effects;
        while !rest.is_empty() {
            Shard::apply(self, &Effect::decode(&mut rest)?)?;
        }
        Ok(())
    }
}

/// Whether a shard would accept the effect: effects that no command can have are refused.
pub(super) fn is_possible(effect: &Effect<'_>) -> bool {
    match effect {
        Effect::Write { at, bytes, .. } => {
            at.saturating_add(bytes.len() as u64) <= rufous_base::limits::MAX_BULK
        }
        Effect::Keyspaces { bytes } => Keyspaces::decode(bytes).is_ok(),
        Effect::Update { tag, ops, .. } => tag.are_operations(ops),
        Effect::Put { tag, chunk, .. } | Effect::More { tag, chunk, .. } => {
            tag.empty().extend(chunk, &Tuning::default()).is_ok()
        }
        _ => true,
    }
}

/// For passes that apply nothing.
pub(in super::super) struct Nowhere;

impl Target for Nowhere {
    fn apply(&mut self, effects: &[u8]) -> Result<(), NotAnEffect> {
        let mut rest = effects;
        while !rest.is_empty() {
            if !is_possible(&Effect::decode(&mut rest)?) {
                return Err(NotAnEffect);
            }
        }
        Ok(())
    }
}

/// Collects effects, from several frames too, to apply them together.
#[derive(Debug, Default)]
pub(super) struct Stage {
    bytes: Vec<u8>,
    count: usize,
}

impl Stage {
    /// Adds one encoded effect, applied now or later.
    pub(super) fn push(
        &mut self,
        effect: &[u8],
        target: &mut dyn Target,
    ) -> Result<(), NotAnEffect> {
        if effect.len() > KEEP_BYTES {
            self.flush(target)?;
            return target.apply(effect);
        }
        self.bytes.extend_from_slice(effect);
        self.count += 1;
        if self.count == TOGETHER || self.bytes.len() > KEEP_BYTES {
            return self.flush(target);
        }
        Ok(())
    }

    pub(super) fn flush(&mut self, target: &mut dyn Target) -> Result<(), NotAnEffect> {
        let result = target.apply(&self.bytes);
        self.bytes.clear();
        self.count = 0;
        result
    }
}
