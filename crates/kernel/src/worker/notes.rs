//! Dispatches the messages between workers on loading and saving to machines; and the counters of
//! both.

use super::Worker;
use super::switch::LogState;
use crate::durable::{LogGauges, Note};
use crate::program::Program;
use rufous_base::{Now, WorkerId};

/// A worker's counters of durability.
#[derive(Clone, Debug, Default)]
pub struct DurableFigures {
    pub log: LogGauges,
    pub changes_since_save: u64,
    pub snapshot_keys_done: u64,
    pub snapshot_keys_total: u64,
    pub snapshot_bytes: u64,
    /// What the snapshot keeps in memory.
    pub snapshot_kept: u64,
    /// At worker 0 only, like all fields that follow.
    pub base_bytes: u64,
    pub generation: u64,
    pub last_save_unix_ms: u64,
    pub pins: u64,
    /// Earlier saves.
    pub kept: u64,
    pub log_state: LogState,
}

impl<P: Program> Worker<P> {
    pub fn durable_figures(&self) -> DurableFigures {
        let mut figures = DurableFigures::default();
        if let Some(log) = self.commit.log() {
            figures.log = log.gauges();
        }
        self.saves.count(&mut figures, &self.shard);
        figures
    }

    pub(super) fn on_note(&mut self, now: Now, from: WorkerId, note: Note) {
        match note {
            Note::Plan(plan) => {
                if let Some(seed) = plan.hash_seed() {
                    self.commit.on_seed(seed);
                }
                self.boot.on_plan(plan, &mut store!(self), &mut self.out);
            }
            Note::Scanned { partition, summary } => {
                let scanned = (partition, summary);
                self.boot
                    .on_scanned(now, scanned, &mut store!(self), &mut self.out);
            }
            Note::Resolved { verdicts, run } => {
                self.commit.on_run(run);
                self.spanning.on_run(run);
                self.boot.on_resolved(verdicts, &mut self.out);
            }
            Note::Table(table) => self.on_table(&table),
            Note::Held(held) => self.boot.on_held(from, held),
            Note::Exchange(table) => {
                self.boot.on_exchange();
                self.on_exchange(&table);
            }
            Note::Exchanged => self.boot.on_exchanged(&store!(self), &mut self.out),
            Note::Marks(marks) => self.boot.on_marks(&marks, &mut store!(self)),
            Note::Node(number) => self.lattice.on_node_of_files(number, &mut store!(self)),
            Note::HasHeard(number) => self.lattice.on_has_heard(number, &mut store!(self)),
            Note::Loaded => self.boot.on_loaded(&store!(self), &mut self.out),
            Note::Keys(keys) => self.boot.on_keys(keys, &mut store!(self)),
            Note::NoMoreKeys => self.boot.on_no_more_keys(&mut store!(self), &mut self.out),
            Note::Serve => {
                self.boot.on_serve(&mut self.out);
                self.lattice.on_serve(&mut store!(self));
                self.saves.on_serve(&store!(self));
            }
            Note::Unloadable(text) => self.boot.on_unloadable(text, &mut self.out),
            Note::Saved { generation, saved } => {
                self.saves.on_saved(now, generation, saved, &mut self.out);
            }
            Note::SaveEnded(ended) => self.on_save_ended(now, ended),
            Note::Sealed { generation } => {
                self.saves
                    .on_sealed(generation, &store!(self), &mut self.out);
            }
            Note::Usage(usage) => self.saves.on_usage(from, usage),
            Note::SaveNow(purpose) => {
                // Refused only while another save is in progress, which serves as well.
                let _ = self.begin_save(now, purpose);
            }
            Note::EndLog => self.end_log(now),
            Note::LogEnded => self.saves.on_log_ended(),
            Note::Trouble(trouble) => {
                self.commit.on_trouble(from, trouble);
                if let Some(chains) = &mut self.chains {
                    chains.on_trouble(self.commit.ails());
                }
            }
            Note::Quiet => self.quiet.on_quiet(),
            Note::CloseLogs => self.quiet.on_close_logs(),
        }
    }
}
