//! Commands that took long: `SLOWLOG`.
//!
//! The kernel reads no clock. The driver's time is looked at between batches,
//! so a command is timed when it ends a batch of its own: those declared
//! `SLOW`, those with many or large arguments, and every command while the
//! threshold is so low that batches are switched off.

use super::Front;
use super::connection::{Connection, What};
use rufous_base::{Args, Now};
use std::collections::VecDeque;

/// Below this threshold every command is timed by itself.
const TIME_EVERY_COMMAND_US: i64 = 1000;

/// As Redis does: so many arguments and bytes of each are kept.
const KEPT_ARGS: usize = 32;
const KEPT_BYTES: usize = 128;

/// One entry of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: u64,
    pub unix_s: u64,
    pub duration_us: u64,
    pub args: Vec<Vec<u8>>,
    pub client: String,
    pub client_name: Vec<u8>,
}

/// The log of one worker, newest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    pub entries: VecDeque<Entry>,
    next_id: u64,
    prepared: Option<Prepared>,
    enabled: bool,
}

#[derive(Debug)]
struct Prepared {
    args: Vec<Vec<u8>>,
    client: String,
    client_name: Vec<u8>,
}

impl SlowLog {
    /// Remembers the command that is about to run alone.
    pub(super) fn prepare(&mut self, what: What, args: &Args<'_>, connection: &Connection) {
        if !self.enabled || !matches!(what, What::Command(_)) {
            return;
        }
        self.prepared = Some(Prepared {
            args: kept_args(args),
            client: connection.info.peer.clone(),
            client_name: connection.name.clone(),
        });
    }

    /// Takes over settings: the threshold in microseconds (negative: off).
    pub(crate) fn configure(&mut self, threshold_us: i64, max_len: usize) {
        self.enabled = threshold_us >= 0 && max_len > 0;
        self.entries.truncate(max_len);
    }
}

/// How many commands may run between two looks at the clock.
pub(crate) fn batch_limit(threshold_us: i64) -> usize {
    if (0..TIME_EVERY_COMMAND_US).contains(&threshold_us) { 1 } else { usize::MAX }
}

fn kept_args(args: &Args<'_>) -> Vec<Vec<u8>> {
    let keep = if args.len() > KEPT_ARGS { KEPT_ARGS - 1 } else { args.len() };
    let mut kept: Vec<Vec<u8>> = args
        .iter_from(0)
        .take(keep)
        .map(|arg| {
            let mut kept = arg[..arg.len().min(KEPT_BYTES)].to_vec();
            if arg.len() > KEPT_BYTES {
                kept.extend_from_slice(format!("... ({} more bytes)", arg.len() - KEPT_BYTES).as_bytes());
            }
            kept
        })
        .collect();
    if keep < args.len() {
        kept.push(format!("... ({} more arguments)", args.len() - keep).into_bytes());
    }
    kept
}

impl Front {
    /// Spreads the time since the last step over the commands it ran, and
    /// logs the one that ran alone and took long.
    pub(super) fn account(&mut self, now: Now) {
        let elapsed = now.mono_us.saturating_sub(self.batch_started_us);
        self.batch_started_us = now.mono_us;
        let ran = self.kernel.has_unaccounted();
        self.kernel.account(elapsed);
        let Some(prepared) = self.slow.prepared.take() else { return };
        let threshold = self.config.slowlog_log_slower_than;
        if !ran || threshold < 0 || elapsed < threshold as u64 {
            return;
        }
        let workers = self.shared.workers as u64;
        let entry = Entry {
            id: self.slow.next_id * workers + u64::from(self.id().0),
            unix_s: now.unix_s(),
            duration_us: elapsed,
            args: prepared.args,
            client: prepared.client,
            client_name: prepared.client_name,
        };
        self.slow.next_id += 1;
        self.slow.entries.push_front(entry);
        self.slow.entries.truncate(self.config.slowlog_max_len);
    }
}
