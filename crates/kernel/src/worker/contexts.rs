//! The contexts of clients for keys with causal order, for this worker's replicas of them: lent to
//! the shard on which their command is executed, and sent along with a command over several
//! workers.

#[cfg(test)]
mod tests;

use crate::lock::KeyName;
use crate::multi::{Gathered, Seen};
use crate::replicate::replicas::Figures;
use crate::shard::{Contexts, Shard};
use rufous_base::WorkerId;
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

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct ClientContexts {
    /// Strings of some keyspace have causal order.
    keeps: bool,
    contexts: Contexts,
    /// The contexts of this worker while a command is executed with those of gathered keys.
    own: Option<Contexts>,
}

impl ClientContexts {
    pub(super) fn count(&self, figures: &mut Figures) {
        figures.contexts = self.contexts.len() as u64;
        figures.contexts_bytes = self.contexts.bytes() as u64;
    }

    /// A table of keyspaces was adopted. `keeps`: strings of some keyspace have causal order.
    pub(super) fn on_table(&mut self, keeps: bool) {
        self.keeps = keeps;
        if !keeps {
            self.contexts = Contexts::default();
        }
    }

    /// A client's command begins.
    pub(super) fn begin(&mut self, client: u64, shard: &mut Shard) {
        if self.keeps {
            shard
                .lattice_mut()
                .begin_session(client, std::mem::take(&mut self.contexts));
        }
    }

    /// The command has been executed. Returns why it is refused.
    pub(super) fn end(&mut self, shard: &mut Shard) -> Option<String> {
        if !self.keeps {
            return None;
        }
        let (contexts, concurrent) = shard.lattice_mut().end_session();
        self.contexts = contexts;
        let count = concurrent?;
        Some(format!(
            "needs one value, and the key has {count} concurrent ones of which its keyspace \
             picks none: read them with CAUSAL.GET, and write what becomes of them with CAUSAL.SET"
        ))
    }

    /// Adds what a client has seen of keys that are gathered here.
    pub(super) fn add(&mut self, client: u64, gathered: &mut [Gathered], shard: &Shard) {
        if !self.keeps {
            return;
        }
        for Gathered { key, context, .. } in gathered {
            let name = shard.key(&key.1);
            *context = self.contexts.get(client, key.0, name).cloned();
        }
    }

    /// What a client has seen of gathered keys, as known to their owners, or to this worker if it
    /// has sent the client copies.
    pub(super) fn gathered(
        &mut self,
        client: u64,
        gathered: &[Gathered],
        shard: &Shard,
    ) -> Contexts {
        let mut contexts = Contexts::default();
        if !self.keeps {
            return contexts;
        }
        for Gathered { key, context, .. } in gathered {
            let name = shard.key(&key.1);
            let own = self.contexts.get(client, key.0, name);
            for seen in own.into_iter().chain(context) {
                contexts.note(client, key.0, name, seen);
            }
        }
        contexts
    }

    /// Before a command is run on gathered keys.
    pub(super) fn borrow(&mut self, client: u64, gathered: &[Gathered], shard: &Shard) {
        if self.keeps {
            let borrowed = self.gathered(client, gathered, shard);
            self.own = Some(std::mem::replace(&mut self.contexts, borrowed));
        }
    }

    /// After a command was executed on them: what the client has seen of them now, by owner.
    pub(super) fn give_back(
        &mut self,
        client: u64,
        gathered: &[Gathered],
        shard: &Shard,
    ) -> BTreeMap<WorkerId, Seen> {
        let Some(own) = self.own.take() else {
            return BTreeMap::new();
        };
        let mut borrowed = std::mem::replace(&mut self.contexts, own);
        seen_since(client, gathered, &mut borrowed, shard)
    }

    /// A command of a client was executed elsewhere on keys of this worker.
    pub(super) fn note(&mut self, client: u64, seen: &[(KeyName, lattice::Seen)], shard: &Shard) {
        for ((db, bytes), seen) in seen {
            self.contexts.note(client, *db, shard.key(bytes), seen);
        }
    }

    /// Swaps the contexts here with those of a transaction.
    pub(super) fn swap(&mut self, with: &mut Contexts) {
        std::mem::swap(&mut self.contexts, with);
    }
}
