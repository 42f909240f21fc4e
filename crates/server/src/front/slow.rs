//! Slow commands: `SLOWLOG`.
//!
//! The kernel reads no clock. The driver's time is read between batches, so a command is timed when
//! it ends a batch of its own: those declared `SLOW`, those with many or large arguments, and every
//! command while the threshold is so low that batches are switched off. A command with an
//! unexpectedly long reply ends its batch, and is timed together with the earlier commands of the
//! batch.

use super::connection::Connection;
use super::latency::LatencyLog;
use super::lookahead::What;
use super::outbox::Place;
use super::parse::MANY_ARGS;
use super::secret;
use crate::config::Config;
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
    /// Entries that there ever were.
    noted: u64,
}

/// The times of commands, and the logs of those that took long.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    pub(crate) slow: SlowLog,
    pub(crate) latency: LatencyLog,
    /// When the last step began.
    since_us: u64,
    /// How long the running command asked the driver to block this worker.
    stall_us: u64,
    /// The command that runs alone in the step.
    prepared: Option<Prepared>,
    settings: Settings,
}

/// Settings of the two logs.
#[derive(Debug, Default)]
struct Settings {
    /// In microseconds; negative: off.
    slower_than: i64,
    max_len: usize,
    /// In milliseconds; 0: off.
    latency_ms: u64,
    /// Every command is timed on its own.
    each: bool,
}

impl Settings {
    fn is_on(&self) -> bool {
        self.slower_than >= 0 && self.max_len > 0 || self.latency_ms > 0
    }
}

#[derive(Debug)]
struct Prepared {
    args: Vec<Vec<u8>>,
    client: String,
    client_name: Vec<u8>,
    is_fast: bool,
    skip_log: bool,
}

impl Prepared {
    fn of(spec: &Spec, args: &Args<'_>) -> Self {
        Self {
            args: kept_args(spec, args),
            is_fast: spec.flags.has(Flags::FAST),
            skip_log: spec.flags.has(Flags::SKIP_SLOWLOG),
            client: String::new(),
            client_name: Vec::new(),
        }
    }
}

impl Timing {
    /// Applies settings.
    pub(super) fn configure(&mut self, config: &Config) {
        self.settings = Settings {
            slower_than: config.slowlog_log_slower_than,
            max_len: config.slowlog_max_len,
            latency_ms: config.latency_monitor_threshold_ms,
            each: batch_limit(config.slowlog_log_slower_than) == 1,
        };
        self.slow.entries.truncate(config.slowlog_max_len);
    }

    /// A command is about to run alone.
    pub(super) fn prepare(
        &mut self,
        table: &Table,
        what: What,
        args: &Args<'_>,
        connection: &Connection,
    ) {
        let What::Command(id) = what else { return };
        if !self.settings.is_on() {
            return;
        }
        self.prepared = Some(Prepared {
            client: connection.info.peer.clone(),
            client_name: connection.name.clone(),
            ..Prepared::of(table.spec(id), args)
        });
    }

    /// Requests of another worker's clients are about to run: notes one that arrived alone and would
    /// have run alone there as well.
    pub(super) fn prepare_forwarded(&mut self, table: &Table, batch: &mut Batch) {
        if !self.settings.is_on() || batch.requests.len() != 1 {
            return;
        }
        let (header, args, _) = batch.parts(0);
        let spec = table.spec(header.command);
        let timed =
            self.settings.each || spec.flags.has(Flags::SLOW) || args.len() > MANY_ARGS as usize;
        if timed {
            self.prepared = Some(Prepared::of(spec, &args));
        }
    }

    /// The running command has asked the driver to block the worker after it.
    pub(super) fn on_stall(&mut self, us: u64) {
        self.stall_us = us;
    }

    /// A step begins. Returns the time since the last one, which is that of its commands.
    pub(super) fn on_step(&mut self, now: Now) -> u64 {
        // A stall that the command requested comes after its step.
        let stall_us = std::mem::take(&mut self.stall_us);
        let elapsed = now.mono_us.saturating_sub(self.since_us) + stall_us;
        self.since_us = now.mono_us;
        elapsed
    }

    /// The last step took so long: logs the command that ran alone, if it was slow. `ran`: it has run.
    #[inline]
    pub(super) fn on_elapsed(&mut self, now: Now, elapsed_us: u64, ran: bool, place: Place) {
        if let Some(prepared) = self.prepared.take().filter(|_| ran) {
            self.note(now, elapsed_us, prepared, place);
        }
    }

    fn note(&mut self, now: Now, elapsed_us: u64, prepared: Prepared, place: Place) {
        let Settings {
            slower_than,
            max_len,
            latency_ms,
            ..
        } = self.settings;
        self.latency
            .note_command(now, prepared.is_fast, elapsed_us, latency_ms);
        if prepared.skip_log || slower_than < 0 || elapsed_us < slower_than as u64 {
            return;
        }
        let entry = Entry {
            id: self.slow.noted * place.workers as u64 + u64::from(place.own.0),
            unix_us: now.unix_us,
            duration_us: elapsed_us,
            args: prepared.args,
            client: prepared.client,
            client_name: prepared.client_name,
        };
        self.slow.noted += 1;
        self.slow.entries.push_front(entry);
        self.slow.entries.truncate(max_len);
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

#[cfg(test)]
mod tests {
    use super::super::testing::with_args;
    use super::*;
    use rufous_base::WorkerId;

    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            ..Now::default()
        }
    }

    fn timing(slower_than: i64) -> Timing {
        let mut timing = Timing::default();
        timing.configure(&Config {
            slowlog_log_slower_than: slower_than,
            slowlog_max_len: 2,
            ..Config::in_memory()
        });
        timing
    }

    /// Runs a command of another worker's client that takes so long; returns the number of entries.
    fn run(timing: &mut Timing, command: &str, from_us: u64, took_us: u64) -> usize {
        let table = crate::command::table();
        let command = table.find(command.as_bytes()).expect("a command");
        let place = Place {
            own: WorkerId(1),
            workers: 3,
        };
        timing.on_step(at(from_us));
        let spec = table.spec(command);
        with_args(&[spec.name.as_bytes()], |args| {
            timing.prepared = Some(Prepared::of(spec, args));
        });
        let elapsed_us = timing.on_step(at(from_us + took_us));
        timing.on_elapsed(at(from_us + took_us), elapsed_us, true, place);
        timing.slow.entries.len()
    }

    #[test]
    fn the_slow_ones_are_kept_the_newest_first() {
        let mut timing = timing(50);
        assert_eq!(run(&mut timing, "keys", 1000, 49), 0);
        assert_eq!(run(&mut timing, "keys", 2000, 50), 1);
        assert_eq!(run(&mut timing, "sort", 3000, 60), 2);
        assert_eq!(run(&mut timing, "sort", 4000, 70), 2);
        let kept = timing.slow.entries.iter();
        let kept: Vec<_> = kept.map(|entry| (entry.id, entry.duration_us)).collect();
        // Numbers differ over the workers.
        assert_eq!(kept, [(7, 70), (4, 60)]);
    }

    #[test]
    fn a_stall_counts_and_a_command_that_has_not_run_does_not() {
        let mut timing = timing(50);
        timing.on_step(at(1000));
        timing.on_stall(500);
        assert_eq!(timing.on_step(at(1010)), 510);
        assert_eq!(timing.on_step(at(1020)), 10, "once");
        with_args(&[b"keys"], |args| {
            let table = crate::command::table();
            let spec = table.spec(table.find(b"keys").expect("a command"));
            timing.prepared = Some(Prepared::of(spec, args));
        });
        let place = Place {
            own: WorkerId(0),
            workers: 1,
        };
        timing.on_elapsed(at(2000), 980, false, place);
        timing.on_elapsed(at(3000), 980, true, place);
        assert!(timing.slow.entries.is_empty());
    }
}
