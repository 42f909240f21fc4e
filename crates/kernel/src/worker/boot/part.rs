//! A partition that a worker loads.

use super::Next;
use crate::durable::load::Loader;
use crate::durable::{Event, Note};
use crate::shard::{Held, Shard};
use crate::worker::out::{Call, Out};
use crate::worker::store::Store;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Part {
    pub(super) loader: Loader,
    /// Where its data is loaded, unless into the worker's own shard.
    pub(super) staging: Option<Box<Shard>>,
}

impl Part {
    /// The partition is loaded: sends the other workers what they need to know of it.
    pub(super) fn finish(&mut self, store: &mut Store<'_>, out: &mut Out) {
        let mut staging = self.staging.take();
        let shard = staging.as_deref_mut().unwrap_or(store.shard);
        let table = Arc::clone(shard.replayed_keyspaces());
        let held = shard.take_held();
        let node = shard.marks().node();
        out.events
            .extend(self.loader.loaded().cloned().map(Event::Loaded));
        if table.version() > 0 {
            out.tell_all(store, || Note::Table(Arc::clone(&table)));
        }
        // A node outside of a cluster writes as node 0.
        if let Some(number) = node.or(table.has_lattice().then_some(0)) {
            out.tell_all(store, || Note::Node(number));
        }
        // Where nothing was forgotten, nothing was held.
        if let Some(held) = held.filter(|held| !held.says_nothing()) {
            let held = Arc::<Held>::from(held);
            out.tell_all(store, || Note::Held(Arc::clone(&held)));
        }
        let Some(staging) = staging else {
            return out.call(Call::Load(Next::On));
        };
        if !staging.marks().slots().is_empty() {
            let marks = Arc::new(staging.marks().slots().clone());
            out.tell_all(store, || Note::Marks(Arc::clone(&marks)));
        }
        out.call(Call::Load(Next::Move(staging)));
    }
}
