//! `SAVEPOINT`, `ROLLBACK TO` and `RELEASE`: points of a transaction that `BEGIN` has begun, to which its client can go back
//! [Warp §3.2]. What was read since stays read: a transaction of level serializable watches it to its end.

use super::Transaction;
use super::begun::{Begun, given_up};
use rufous_base::Now;
use rufous_command::{Failure, Flags};

/// So many may be set at a time.
const MOST: usize = 1024;

/// What a transaction had kept for `COMMIT` when a savepoint was set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    commands: usize,
    bytes: usize,
    flags: Flags,
    grows: Option<u16>,
}

impl Transaction {
    /// `SAVEPOINT name`; `limit`: of the bytes of a transaction.
    pub(crate) fn save_point(&mut self, name: &[u8], limit: usize) -> Result<(), Failure> {
        let kept = Kept {
            commands: self.len(),
            bytes: self.bytes,
            flags: self.flags,
            grows: self.grows,
        };
        let bytes = self.bytes();
        let begun = with_savepoints(self.begun.as_deref_mut(), "SAVEPOINT")?;
        if begun.open.savepoints() == MOST {
            return Err(
                format!("ERR a transaction has at most {MOST} savepoints: RELEASE some").into(),
            );
        }
        if bytes + name.len() > limit {
            return Err(super::TOO_LARGE);
        }
        // A transaction that writes at once has none.
        begun.open.settle();
        begun.open.save(name);
        begun.kept.push(kept);
        Ok(())
    }

    /// `ROLLBACK TO [SAVEPOINT] name`: its last argument is the name.
    pub(crate) fn roll_back_to(&mut self, name: &[u8], now: Now) -> Result<(), Failure> {
        let begun = with_savepoints(self.begun.as_deref_mut(), "ROLLBACK TO")?;
        let at = begun.open.savepoint(name).ok_or_else(|| unknown(name))?;
        begun.open.go_back(at, now);
        begun.kept.truncate(at + 1);
        if let Some(kept) = begun.kept.last().copied() {
            if let Some(queued) = &mut self.queued {
                queued.truncate(kept.commands);
            }
            self.bytes = kept.bytes;
            self.flags = kept.flags;
            self.grows = kept.grows;
        }
        Ok(())
    }

    /// `RELEASE [SAVEPOINT] name`.
    pub(crate) fn release_point(&mut self, name: &[u8]) -> Result<(), Failure> {
        let begun = with_savepoints(self.begun.as_deref_mut(), "RELEASE")?;
        let at = begun.open.savepoint(name).ok_or_else(|| unknown(name))?;
        begun.open.release(at);
        begun.kept.truncate(at);
        Ok(())
    }
}

/// The transaction of a connection, if it may have savepoints.
fn with_savepoints<'b>(
    begun: Option<&'b mut Begun>,
    command: &str,
) -> Result<&'b mut Begun, Failure> {
    let begun = begun.ok_or_else(|| Failure::from(format!("ERR {command} without BEGIN")))?;
    if let Some(why) = &begun.given_up {
        return Err(given_up(why));
    }
    if begun.open.writes_at_once() {
        return Err(format!("ERR {command} is not for transactions of level read-uncommitted: their writes are done at once").into());
    }
    Ok(begun)
}

fn unknown(name: &[u8]) -> Failure {
    let name = String::from_utf8_lossy(name);
    format!("ERR no savepoint '{name}' in this transaction").into()
}
