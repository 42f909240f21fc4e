//! The contexts of clients for keys with causal order, for this worker's replicas of them: lent to
//! the shard on which their command is executed, and sent along with a command over several
//! workers.

use super::{HeldExec, Worker};
use crate::batch::Header;
use crate::lock::KeyName;
use crate::multi::{Gathered, Seen};
use crate::program::Program;
use crate::shard::{Contexts, Shard};
use rufous_base::{Output, WorkerId};
use rufous_lattice as lattice;
use std::collections::BTreeMap;

/// What the client has seen of them since, by their owners.
pub(super) fn seen_since(
    client: u64,
    gathered: &[Gathered],
    contexts: &mut Contexts,
    shard: &Shard,
) -> BTreeMap<WorkerId, Seen> {
    let mut all = BTreeMap::<WorkerId, Seen>::new();
    if contexts.is_empty() {
        return all;
    }
    for Gathered {
        owner,
        key,
        context,
        ..
    } in gathered
    {
        let seen = contexts.get(client, key.0, shard.key(&key.1));
        if let Some(seen) = seen.filter(|seen| context.as_ref() != Some(seen)) {
            let of_owner = all.entry(*owner).or_default();
            of_owner.push((key.clone(), seen.clone()));
        }
    }
    all
}

impl<P: Program> Worker<P> {
    #[inline(never)]
    pub(super) fn begin_session(&mut self, header: &Header) {
        let contexts = std::mem::take(&mut self.lattice.contexts);
        self.shard
            .lattice_mut()
            .begin_session(header.client, contexts);
    }

    /// Ends a command that began with contexts; false where its reply is a refusal.
    #[inline(never)]
    pub(super) fn end_session(
        &mut self,
        header: &Header,
        (out, start): (&mut Output, (usize, usize)),
    ) -> bool {
        let (contexts, concurrent) = self.shard.lattice_mut().end_session();
        self.lattice.contexts = contexts;
        let Some(count) = concurrent else {
            return true;
        };
        out.truncate(start);
        let why = format!(
            "needs one value, and the key has {count} concurrent ones of which its keyspace \
             picks none: read them with CAUSAL.GET, and write what becomes of them with CAUSAL.SET"
        );
        P::refuse(header.command, &why, header.resp3, out);
        false
    }

    /// Adds what a client has seen of keys that are gathered here.
    pub(super) fn add_contexts(&mut self, client: u64, gathered: &mut [Gathered]) {
        if !self.lattice.keeps_siblings {
            return;
        }
        for Gathered { key, context, .. } in gathered {
            let name = self.shard.key(&key.1);
            *context = self.lattice.contexts.get(client, key.0, name).cloned();
        }
    }

    /// What a client has seen of gathered keys, as known to their owners, or to this worker if it
    /// has sent the client copies.
    pub(super) fn gathered_contexts(&mut self, client: u64, gathered: &[Gathered]) -> Contexts {
        let mut contexts = Contexts::default();
        if !self.lattice.keeps_siblings {
            return contexts;
        }
        for Gathered { key, context, .. } in gathered {
            let name = self.shard.key(&key.1);
            let own = self.lattice.contexts.get(client, key.0, name);
            for seen in own.into_iter().chain(context) {
                contexts.note(client, key.0, name, seen);
            }
        }
        contexts
    }

    /// Before a command is run on gathered keys.
    pub(super) fn borrow_contexts(&mut self, client: u64, gathered: &[Gathered]) {
        if self.lattice.keeps_siblings {
            let borrowed = self.gathered_contexts(client, gathered);
            let own = std::mem::replace(&mut self.lattice.contexts, borrowed);
            self.lattice.own_contexts = Some(own);
        }
    }

    /// After a command was executed on them: what the client has seen of them now, by owner.
    pub(super) fn return_contexts(
        &mut self,
        client: u64,
        gathered: &[Gathered],
    ) -> BTreeMap<WorkerId, Seen> {
        let Some(own) = self.lattice.own_contexts.take() else {
            return BTreeMap::new();
        };
        let mut borrowed = std::mem::replace(&mut self.lattice.contexts, own);
        seen_since(client, gathered, &mut borrowed, &self.shard)
    }

    /// A command of a client was executed elsewhere on keys of this worker.
    pub(super) fn note_contexts(&mut self, client: u64, seen: &[(KeyName, lattice::Seen)]) {
        for ((db, bytes), seen) in seen {
            let key = self.shard.key(bytes);
            self.lattice.contexts.note(client, *db, key, seen);
        }
    }

    /// Swaps the contexts of the client with those of a transaction's command.
    pub(super) fn swap_contexts(&mut self, held: &mut HeldExec) {
        std::mem::swap(&mut self.lattice.contexts, &mut held.contexts);
    }
}
