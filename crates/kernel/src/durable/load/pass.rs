//! Going once through stretches of files, in order.

use super::super::effect::{Effect, NotAnEffect};
use super::Damage;
use crate::shard::Shard;
use rufous_base::disk::FileName;

/// A stretch of a file, to be read from `from` up to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Span {
    pub(in super::super) file: FileName,
    pub(in super::super) from: u64,
    pub(in super::super) to: u64,
}

/// What is done with the bytes of spans. It is given each span in turn: its
/// bytes in pieces of any size, then the end of it.
pub(in super::super) trait Pass {
    fn spans(&self) -> Vec<Span>;
    fn feed(&mut self, span: usize, bytes: &[u8], target: &mut dyn Target) -> Result<(), Damage>;
    fn end(&mut self, span: usize) -> Result<(), Damage>;
}

/// Where effects are applied.
pub(in super::super) trait Target {
    fn apply(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect>;
}

impl Target for Shard {
    #[inline]
    fn apply(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        Shard::apply(self, effect)
    }
}

/// Whether a shard would take the effect: what no command can have done is refused.
pub(super) fn is_possible(effect: &Effect<'_>) -> bool {
    match effect {
        Effect::Write { at, bytes, .. } => {
            at.saturating_add(bytes.len() as u64) <= rufous_base::limits::MAX_BULK
        }
        _ => true,
    }
}

/// For looking only.
pub(in super::super) struct Nowhere;

impl Target for Nowhere {
    fn apply(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        if is_possible(effect) {
            Ok(())
        } else {
            Err(NotAnEffect)
        }
    }
}
