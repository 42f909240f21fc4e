//! Slow commands: `SLOWLOG`.
//!
//! The kernel reads no clock. The driver's time is read between batches, so a command is timed when
//! it ends a batch of its own: those declared `SLOW`, those with many or large arguments, and every
//! command while the threshold is so low that batches are switched off. A command with an
//! unexpectedly long reply ends its batch, and is timed together with the earlier commands of the
//! batch.

use super::connection::{Connection, What};
use super::parse::MANY_ARGS;
use super::{Front, secret};
use rufous_base::{Args, Now};
use rufous_command::{Flags, Spec, Table};
use rufous_kernel::batch::Batch;
use std::collections::VecDeque;

/// Below this threshold every command is timed individually.
const TIME_EVERY_COMMAND_US: i64 = 1000;

/// As in Redis: the number of arguments that are kept, and the bytes of each.
const KEPT_ARGS: usize = 32;
const KEPT_BYTES: usize = 128;

/// One entry of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: u64,
    pub unix_us: u64,
    pub duration_us: u64,
    pub args: Vec<Vec<u8>>,
    /// Empty if the client is at another worker, which forwards no addresses.
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
    is_fast: bool,
    skip_log: bool,
}

impl SlowLog {
    /// Notes the command that is about to run alone.
    pub(super) fn prepare(
        &mut self,
        table: &Table,
        what: What,
        args: &Args<'_>,
        connection: &Connection,
    ) {
        let What::Command(id) = what else { return };
        if !self.enabled {
            return;
        }
        let spec = table.spec(id);
        self.prepared = Some(Prepared {
            args: kept_args(spec, args),
            is_fast: spec.flags.has(Flags::FAST),
            skip_log: spec.flags.has(Flags::SKIP_SLOWLOG),
            client: connection.info.peer.clone(),
            client_name: connection.name.clone(),
        });
    }

    /// Applies settings: the threshold in microseconds (negative: off).
    pub(crate) fn configure(&mut self, threshold_us: i64, max_len: usize, latency_ms: u64) {
        self.enabled = threshold_us >= 0 && max_len > 0 || latency_ms > 0;
        self.entries.truncate(max_len);
    }
}

/// Limit on the commands between two readings of the clock.
pub(crate) fn batch_limit(threshold_us: i64) -> usize {
    if (0..TIME_EVERY_COMMAND_US).contains(&threshold_us) {
        1
    } else {
        usize::MAX
    }
}

fn kept_args(spec: &Spec, args: &Args<'_>) -> Vec<Vec<u8>> {
    let keep = if args.len() > KEPT_ARGS {
        KEPT_ARGS - 1
    } else {
        args.len()
    };
    let mut kept: Vec<Vec<u8>> = args
        .iter_from(0)
        .enumerate()
        .take(keep)
        .map(|(index, arg)| {
            let arg = if secret::is_secret(spec.flags, args, index) {
                secret::REDACTED
            } else {
                arg
            };
            let mut kept = arg[..arg.len().min(KEPT_BYTES)].to_vec();
            if arg.len() > KEPT_BYTES {
                kept.extend_from_slice(
                    format!("... ({} more bytes)", arg.len() - KEPT_BYTES).as_bytes(),
                );
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
    /// Notes a request of another worker's client that is about to run, if it arrived alone and
    /// would have run alone there as well.
    pub(super) fn prepare_forwarded(&mut self, batch: &mut Batch) {
        if !self.slow.enabled || batch.requests.len() != 1 {
            return;
        }
        let (header, args, _) = batch.parts(0);
        let spec = self.table.spec(header.command);
        let timed =
            self.batch_limit == 1 || spec.flags.has(Flags::SLOW) || args.len() > MANY_ARGS as usize;
        if timed {
            self.slow.prepared = Some(Prepared {
                args: kept_args(spec, &args),
                is_fast: spec.flags.has(Flags::FAST),
                skip_log: spec.flags.has(Flags::SKIP_SLOWLOG),
                client: String::new(),
                client_name: Vec::new(),
            });
        }
    }

    /// Distributes the time since the last step over the commands of that step, and logs the one
    /// that ran alone, if it was slow.
    pub(super) fn account(&mut self, now: Now) {
        // A stall that the command requested comes after this step.
        let elapsed =
            now.mono_us.saturating_sub(self.batch_started_us) + std::mem::take(&mut self.stall_us);
        self.batch_started_us = now.mono_us;
        let ran = self.kernel.has_unaccounted();
        self.kernel.account(elapsed);
        let Some(prepared) = self.slow.prepared.take() else {
            return;
        };
        if ran {
            let threshold_ms = self.config.latency_monitor_threshold_ms;
            self.latency
                .note_command(now, prepared.is_fast, elapsed, threshold_ms);
        }
        let threshold = self.config.slowlog_log_slower_than;
        if !ran || prepared.skip_log || threshold < 0 || elapsed < threshold as u64 {
            return;
        }
        let workers = self.shared.workers as u64;
        let entry = Entry {
            id: self.slow.next_id * workers + u64::from(self.id().0),
            unix_us: now.unix_us,
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
