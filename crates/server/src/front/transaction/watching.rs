//! Watches that the owners of keys record, which are workers of this node.

use super::super::outbox::Outbox;
use rufous_base::Now;
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::lock::KeyName;
use rufous_kernel::shard::WatchId;
use std::collections::BTreeSet;

/// Records watches of keys of this worker.
pub(super) fn watch_here<'k>(
    watcher: WatchId,
    keys: impl Iterator<Item = &'k KeyName>,
    now: Now,
    kernel: &mut Worker<DataCommands>,
) {
    for (db, bytes) in keys {
        let key = kernel.shard.key(bytes);
        kernel.shard.watch(usize::from(*db), key, watcher, now);
    }
}

/// Removes watches at the owners of keys.
pub(super) fn end_watches<'k>(
    watcher: WatchId,
    keys: impl Iterator<Item = &'k KeyName>,
    kernel: &mut Worker<DataCommands>,
    out: &mut Outbox,
) {
    let placement = kernel.placement();
    let owners: BTreeSet<_> = keys.map(|(_, key)| placement.owner(key)).collect();
    for owner in owners {
        if owner == kernel.id() {
            kernel.shard.observers_mut().unwatch(watcher);
        } else {
            out.tell(owner, move |front, _| {
                front.kernel.shard.observers_mut().unwatch(watcher)
            });
        }
    }
}
