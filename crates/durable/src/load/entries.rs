//! What the entries of a frame say of commands over several workers.

use super::super::entry::{Entry, entries};
use super::super::resolve::Parts;
use super::pass::is_possible;

/// Records the entries of a frame on commands over several workers; returns whether it marks the
/// end of a log.
pub(super) fn note(parts: &mut Parts, seq: u64, payload: &[u8]) -> Result<bool, ()> {
    let mut clean = false;
    for entry in entries(payload) {
        match entry.map_err(|_| ())? {
            Entry::Effect(effect) | Entry::Repeated(effect) if is_possible(&effect) => {
                clean = false;
            }
            Entry::Piece {
                txn,
                participants,
                effects,
            } => {
                if !effects
                    .iter()
                    .all(|effect| effect.is_ok_and(|e| is_possible(&e)))
                {
                    return Err(());
                }
                parts.piece(txn, participants.iter(), seq);
                clean = false;
            }
            Entry::Done { txn } => {
                parts.done(txn, seq);
                clean = false;
            }
            Entry::CleanEnd => clean = true,
            Entry::Effect(_) | Entry::Repeated(_) | Entry::SnapshotEnd { .. } => return Err(()),
        }
    }
    Ok(clean)
}
