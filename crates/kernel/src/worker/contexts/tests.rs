//! Contexts of clients, driven by hand.

use super::ClientContexts;
use crate::multi::Gathered;
use crate::shard::causal;
use crate::shard::{Contexts, ExpirySetting, Keyed, Keying, NewValue, Shard};
use rufous_base::{Now, WorkerId};
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::Writer;
use rufous_lattice::Stamp;
use std::sync::Arc;

#[derive(Debug)]
struct Causal;

impl Keying for Causal {
    fn of(&self, _: &[u8]) -> Option<Keyed> {
        Some(Keyed {
            strings: Tag::Siblings,
            is_shared: true,
        })
    }
}

struct Rig {
    contexts: ClientContexts,
    shard: Shard,
    time: u64,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self {
            contexts: ClientContexts::default(),
            shard: Shard::new(7),
            time: 0,
        };
        rig.shard.lattice_mut().set_keying(Some(Arc::new(Causal)));
        rig.contexts.on_table(true);
        rig
    }

    /// Executes a command of a client; returns whether it is refused.
    fn run(&mut self, client: u64, command: impl FnOnce(&mut Shard)) -> bool {
        self.time += 1;
        let stamp = Stamp {
            time: self.time,
            ..Stamp::ZERO
        };
        self.shard.begin_lattice(Writer { stamp });
        self.contexts.begin(client, &mut self.shard);
        command(&mut self.shard);
        let refused = self.contexts.end(&mut self.shard);
        self.shard.end_lattice();
        refused.is_some()
    }

    fn write(&mut self, client: u64, text: &[u8]) {
        self.run(client, |shard| {
            let (key, value) = (shard.key(b"k"), NewValue::Copy(text));
            shard.set(0, key, value, ExpirySetting::Clear, Now::default());
        });
    }

    fn values(&mut self, client: u64) -> usize {
        let mut count = 0;
        self.run(client, |shard| {
            let key = shard.key(b"k");
            let values = causal::see(&mut shard.at(0, key, Now::default()));
            count = values.live().count();
        });
        count
    }
}

fn gathered() -> [Gathered; 1] {
    [Gathered {
        owner: WorkerId(1),
        key: (0, b"k"[..].into()),
        entry: None,
        context: None,
    }]
}

#[test]
fn a_write_replaces_only_what_its_client_has_read() {
    let mut rig = Rig::new();
    rig.write(1, b"one");
    rig.write(2, b"two");
    assert_eq!(rig.values(3), 2, "neither client had read the other's");
    rig.write(3, b"three");
    assert_eq!(rig.values(1), 1, "it had read both");
}

#[test]
fn a_command_on_gathered_keys_sees_what_their_owners_know_of_its_client() {
    let mut owner = Rig::new();
    owner.write(1, b"one");
    assert_eq!(owner.values(5), 1);
    let mut keys = gathered();
    for (client, knows) in [(6, false), (5, true)] {
        owner.contexts.add(client, &mut keys, &owner.shard);
        assert_eq!(keys[0].context.is_some(), knows);
    }
    let mut home = Rig::new();
    home.contexts.borrow(5, &keys, &home.shard);
    let none = home.contexts.give_back(5, &keys, &home.shard);
    assert!(
        none.is_empty(),
        "nothing was read that the owner does not know"
    );
    // What the command reads is reported to the owner, and kept nowhere else.
    keys[0].context = None;
    home.contexts.borrow(5, &keys, &home.shard);
    home.write(1, b"two");
    assert_eq!(home.values(5), 1);
    let seen = home.contexts.give_back(5, &keys, &home.shard);
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [WorkerId(1)]);
    let kept = home.contexts.gathered(5, &keys, &home.shard);
    assert!(kept.is_empty());
    // The owner notes it: a write of this client there replaces the value.
    owner.contexts.note(7, &seen[&WorkerId(1)], &owner.shard);
    assert!(!owner.contexts.gathered(7, &keys, &owner.shard).is_empty());
}

#[test]
fn without_causal_order_nothing_is_kept() {
    let mut rig = Rig::new();
    rig.write(1, b"one");
    rig.values(1);
    rig.contexts.on_table(false);
    let mut keys = gathered();
    rig.contexts.on_table(true);
    rig.contexts.add(1, &mut keys, &rig.shard);
    assert!(keys[0].context.is_none());
    let mut swapped = Contexts::default();
    rig.contexts.swap(&mut swapped);
    assert!(swapped.is_empty());
}
