//! Transactions as the algebra of keys sees them. Messages and books say only which keys are read or written; the
//! commands in the body say more, where each slot executes its own, and nothing of a key was looked at before: then
//! transactions that write different parts of a key need not wait for one another.

use super::Linear;
use super::keys::word_of;
use crate::body::{Command, Commands, Deed};
use crate::planted::{self, Planted};
use crate::program::Program;
use rufous_base::{Args, Now};
use rufous_datatype::key::Footprint;
use rufous_linear::access::Access;
use rufous_linear::{Entry, Operation, Part, Transaction, Typed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a transaction does to a key. As bytes, only whether it writes.
pub(super) type KeyOp = Typed<Access>;

/// What is known of the keys of a transaction.
#[derive(Debug, Default)]
struct Known<'b> {
    keys: BTreeMap<&'b [u8], Footprint>,
    /// Slots of whose keys no more is known than what was declared.
    declared: BTreeSet<u16>,
}

impl Linear {
    /// The transaction, with what its commands say of its keys.
    pub(super) fn typed<P: Program>(
        &mut self,
        now: Now,
        txn: &Arc<Transaction<KeyOp>>,
    ) -> Arc<Transaction<KeyOp>> {
        if is_typed(txn) {
            return Arc::clone(txn);
        }
        let commands = self.commands(txn.id, txn.body());
        let Some(commands) = commands.filter(|commands| commands.are_apart) else {
            return Arc::clone(txn);
        };
        let known = known::<P>(now, txn.body(), &commands);
        Arc::new(txn.known_as(|part| known.op(part)))
    }

    /// Likewise, for an entry of a book.
    pub(super) fn typed_entry<P: Program>(
        &mut self,
        now: Now,
        entry: Entry<KeyOp>,
    ) -> Entry<KeyOp> {
        let txn = self.typed::<P>(now, entry.txn());
        entry.with_txn(txn)
    }
}

/// Whether this was done before: transactions go from worker to worker of a node as they are.
fn is_typed(txn: &Transaction<KeyOp>) -> bool {
    let mut ops = txn.parts().iter().flat_map(|part| &part.ops);
    ops.any(|op| *op != op.command.into())
}

fn known<'b, P: Program>(now: Now, body: &'b [u8], commands: &Commands) -> Known<'b> {
    let mut known = Known::default();
    for command in &commands.all {
        let is_known = matches!(command.deed, Deed::Run { .. })
            && known.add::<P>(now, body, command).is_some();
        if !is_known {
            known.declared.insert(command.slot);
        }
    }
    known
}

impl<'b> Known<'b> {
    /// What a command touches of its keys. `None`: that is not known.
    fn add<P: Program>(&mut self, now: Now, body: &'b [u8], command: &Command) -> Option<()> {
        let id = P::find(word_of(body, command, 0))?;
        let args = Args::new(body, command.words.get(1..)?, &mut []);
        for (key, footprint) in P::touches(id, &args, now)? {
            let key = word_of(body, command, key + 1);
            self.keys.entry(key).or_default().join(footprint);
        }
        Some(())
    }

    fn op(&self, part: &Part<KeyOp>) -> Option<KeyOp> {
        let footprint = self.keys.get(&*part.key)?;
        let writes = part.ops.iter().any(Operation::writes);
        let is_declared = self.declared.contains(&part.slot) || footprint.writes() && !writes;
        let access = if writes { Access::Write } else { Access::Read };
        if is_declared {
            return None;
        }
        if planted::is(Planted::DependentBeside) {
            return Some(Typed::with(access, Footprint::default()));
        }
        Some(Typed::with(access, footprint.clone()))
    }
}
