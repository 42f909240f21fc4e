//! What workers tell one another of loading and saving, taken to where it
//! belongs; and what a worker counts of both.

use super::Worker;
use crate::durable::{LogGauges, Note};
use crate::program::Program;
use rufous_base::{Now, WorkerId};

/// What a worker counts of durability.
#[derive(Clone, Debug, Default)]
pub struct DurableFigures {
    pub logs: bool,
    pub log: LogGauges,
    pub changes_since_save: u64,
    pub snapshot_keys_done: u64,
    pub snapshot_keys_total: u64,
    pub snapshot_bytes: u64,
    /// What it keeps in memory.
    pub snapshot_kept: u64,
    /// At worker 0 only, as all that follows.
    pub base_bytes: u64,
    pub generation: u64,
    pub last_save_unix_ms: u64,
    pub pins: u64,
    /// Earlier saves.
    pub kept: u64,
}

impl<P: Program> Worker<P> {
    pub fn durable_figures(&self) -> DurableFigures {
        let mut figures = DurableFigures {
            logs: self.durable.logs(),
            changes_since_save: self.changes_since_save(),
            ..DurableFigures::default()
        };
        if let Some(log) = &self.durable.log {
            figures.log = log.gauges();
        }
        if let Some(snapshot) = &self.durable.snapshot {
            let progress = self.shard.snapshot_progress();
            figures.snapshot_keys_done = progress.written;
            figures.snapshot_keys_total = progress.expected;
            figures.snapshot_bytes = snapshot.bytes();
            figures.snapshot_kept = self.shard.snapshot_bytes() as u64;
        }
        if let Some(keeper) = &self.durable.keeper {
            figures.base_bytes = keeper.status.snapshot_bytes;
            figures.generation = keeper.manifest().generation;
            figures.last_save_unix_ms = keeper.status.last_save_unix_ms;
            figures.pins = keeper.pins() as u64;
            figures.kept = keeper.kept() as u64;
        }
        figures
    }

    pub(super) fn on_note(&mut self, now: Now, from: WorkerId, note: Note) {
        match note {
            Note::Plan(plan) => self.on_plan(now, plan),
            Note::Scanned { partition, summary } => {
                self.on_scanned(now, partition, summary);
            }
            Note::Resolved { verdicts, run } => self.on_resolved(now, verdicts, run),
            Note::Table(table) => self.on_table(&table),
            Note::Held(held) => self.durable.counts.push((from, held)),
            Note::Exchange(table) => self.on_exchange(&table),
            Note::Exchanged => self.on_exchanged(now),
            Note::Marks(marks) => self.on_marks(&marks),
            Note::Node(number) => self.on_node_of_files(number),
            Note::HasHeard(number) => self.on_has_heard(number),
            Note::Loaded => self.on_loaded(now),
            Note::Keys(keys) => self.on_keys(keys),
            Note::NoMoreKeys => self.on_no_more_keys(),
            Note::Serve => self.on_serve(),
            Note::Unloadable(text) => self.on_unloadable(text),
            Note::Saved { generation, saved } => self.on_saved(now, generation, saved),
            Note::SaveEnded(ended) => self.on_save_ended(now, ended),
            Note::Sealed { generation } => self.on_sealed(generation),
            Note::Usage(usage) => {
                if let Some(keeper) = &mut self.durable.keeper {
                    keeper.used(from.index(), usage);
                }
            }
            Note::SaveNow => {
                // Refused only where one is under way, which is as good.
                let _ = self.begin_save(now);
            }
            Note::Trouble(trouble) => self.on_trouble(from, trouble),
            Note::Quiet => self.durable.quiet += 1,
            Note::CloseLogs => self.durable.may_close = true,
        }
    }
}
