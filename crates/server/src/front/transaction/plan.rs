//! The keys that a transaction has to hold before it runs.

use super::run::Running;
use crate::command::{CommandTable, Dispatch};
use rufous_base::Now;
use rufous_command::{DataCommands, Flags, Spec};
use rufous_kernel::lock::KeyName;
use rufous_kernel::multi::NodeAction;
use rufous_kernel::worker::ExecPlan;
use rufous_kernel::{Batch, Program, Worker};

/// Whether a command's reply depends on data that it does not name.
pub(super) fn looks_at_all_keys(spec: &Spec) -> bool {
    spec.flags.has(Flags::ALL_KEYS.or(Flags::READONLY))
}

/// The requirements of a transaction's commands.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) keys: Vec<KeyName>,
    /// Databases that are swapped.
    swapped: Vec<u8>,
    /// Some command is on whole databases.
    whole: bool,
    /// Some command may ask other workers.
    asks: bool,
}

impl Running {
    /// The keys to hold, or `None` if the transaction can run at once.
    pub(super) fn plan(
        &mut self,
        now: Now,
        exec: u64,
        kernel: &Worker<DataCommands>,
        table: &CommandTable,
    ) -> Option<ExecPlan> {
        let undoes = self.errors.undo();
        if kernel.placement().workers() == 1 && kernel.is_free() && !undoes {
            return None;
        }
        let mut needs = Needs::of(&mut self.batch, table);
        let concerned = || needs.keys.iter().chain(&self.watched);
        let free = concerned().all(|(db, key)| kernel.is_free_here(now, *db, key));
        let alone = needs.asks && concerned().next().is_some();
        // Only changes of keys that are held can be dropped.
        let drops = undoes && concerned().next().is_some();
        if free && !needs.whole && !alone && !drops {
            return None;
        }
        needs.follow_swaps();
        Some(ExecPlan {
            exec,
            client: self.header.client,
            keys: needs.keys,
            watched: self.watched.clone(),
            watcher: Some(self.watcher),
            watches: false,
            whole: needs.whole,
            touch: !self.header.no_touch,
        })
    }
}

impl Needs {
    pub(super) fn of(batch: &mut Batch, table: &CommandTable) -> Self {
        let mut needs = Self::default();
        let mut found = Vec::new();
        for index in 0..batch.requests.len() {
            let (header, args, _) = batch.parts(index);
            let spec = table.spec(header.command);
            match table.dispatch(header.command) {
                Dispatch::Key | Dispatch::Keys => {
                    found.clear();
                    spec.keys.find(&args, header.db, &mut found);
                    let named = found
                        .iter()
                        .map(|&(db, arg)| (db, args.get(arg as usize).into()));
                    needs.keys.extend(named);
                    // The other keys that it reads are known only when it runs.
                    needs.whole |= DataCommands::is_open(header.command, &args);
                }
                Dispatch::Node(action) => {
                    needs.whole = true;
                    if let Ok(NodeAction::SwapDb(a, b)) = action(&args, header.db) {
                        needs.swapped.extend([a, b]);
                    }
                }
                Dispatch::Session(_) => {
                    needs.whole |= looks_at_all_keys(spec);
                    needs.asks |= !spec.flags.has(Flags::LOCAL);
                }
            }
        }
        needs
    }

    /// A key of a swapped database is in one of the others before or after: all of them are needed
    /// to determine which.
    fn follow_swaps(&mut self) {
        self.swapped.sort_unstable();
        self.swapped.dedup();
        let moved: Vec<_> = self
            .keys
            .iter()
            .filter(|(db, _)| self.swapped.contains(db))
            .flat_map(|(_, key)| self.swapped.iter().map(|db| (*db, key.clone())))
            .collect();
        self.keys.extend(moved);
    }
}
