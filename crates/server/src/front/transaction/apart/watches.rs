//! What a transaction over slots means for the watches of its connection.

use super::Apart;
use super::far::{Far, NEVER, in_db};
use crate::cluster::door::Door;
use crate::cluster::way::{Locator, Way};
use crate::front::transaction::step::Step;
use crate::front::transaction::watching::end_watches;
use rufous_base::ConnId;
use rufous_cluster::composing::Composer;
use rufous_command::Failure;
use rufous_kernel::body::Deed;
use rufous_kernel::lock::KeyName;
use rufous_kernel::planted::{self, Planted};
use rufous_kernel::shard::WatchId;

/// What a transaction means for the watches of its connection.
#[derive(Debug)]
pub(super) enum Watches {
    /// Nothing.
    Stay,
    /// `EXEC` or `COMMIT` ends them.
    End {
        watcher: WatchId,
        keys: Vec<KeyName>,
        far: Far,
        /// The database that its commands select.
        db: Option<u8>,
        /// `COMMIT` does.
        begun: bool,
    },
    /// `WATCH` begins these.
    Begin { number: u64, keys: Vec<KeyName> },
    /// A command of a transaction that `BEGIN` has begun begins these, unless the number is 0, for the keys that it takes.
    Fetch { number: u64, step: Box<Step> },
}

impl Watches {
    /// Whether `COMMIT` ends them.
    pub(super) fn are_of_commit(&self) -> bool {
        matches!(self, Self::End { begun: true, .. })
    }
}

impl Apart<'_> {
    /// Whether slots record these watches: other nodes have some of the keys.
    pub(in super::super) fn records(&mut self, conn: ConnId, keys: &[KeyName]) -> bool {
        let door = self.front.connection(conn).map(|c| c.door());
        door == Some(Door::Plain) && are_elsewhere(keys, self.front.locator())
    }

    /// Has them recorded. The reply comes when they are.
    pub(in super::super) fn watch(
        &mut self,
        conn: ConnId,
        keys: Vec<KeyName>,
    ) -> Result<(), Failure> {
        let command = self.front.table.find(b"watch").unwrap_or_default();
        let number = self.number_watches(conn);
        let watcher = number;
        let Some(connection) = self.front.connection(conn) else {
            return Ok(());
        };
        let header = connection.header(command, false, None);
        let mut composer = Composer::new(true, false);
        for (db, key) in &keys {
            composer.add_deed(in_db(*db), Deed::Watch { watcher }, key);
        }
        self.begin(&header, composer, Watches::Begin { number, keys })
    }

    /// The number of the watches of a connection.
    pub(super) fn number_watches(&mut self, conn: ConnId) -> u64 {
        let own = u64::from(self.front.id().0);
        let next = self.front.transactions.apart.next_watcher(own);
        let Some(connection) = self.front.connection(conn) else {
            return next;
        };
        let far = &mut connection.transaction.far;
        if far.number == 0 {
            far.number = next;
        }
        far.number
    }

    /// A transaction was executed: its commands may have selected a database.
    pub(super) fn select(&mut self, conn: ConnId, watches: &Watches) {
        if let Watches::End { db: Some(db), .. } = watches
            && let Some(connection) = self.front.connection(conn)
        {
            connection.db = *db;
        }
    }

    /// A transaction is over: ends or begins the watches of its connection. `told`: by its slots.
    pub(super) fn settle_watches(&mut self, conn: ConnId, watches: Watches, told: &[u8]) {
        let Watches::Begin { number, keys } = watches else {
            return self.drop_watches(watches);
        };
        self.watches_begun(conn, Far::told(number, keys, told));
    }

    /// Slots have recorded these watches of a connection.
    pub(super) fn watches_begun(&mut self, conn: ConnId, begun: Far) {
        let connection = self.front.connection(conn);
        let transaction = connection.map(|connection| &mut connection.transaction);
        match transaction.filter(|transaction| transaction.far.number == begun.number) {
            Some(transaction) => {
                for (key, since) in begun.keys {
                    if since != NEVER && !planted::is(Planted::CopyNotWatched) {
                        transaction.watched.insert(key.clone());
                    }
                    transaction.far.add(key, since);
                }
            }
            None => begun.end(self.front.peers.links(), &mut self.front.kernel),
        }
    }

    /// Ends the watches of an `EXEC` that is over, or is not executed.
    pub(super) fn drop_watches(&mut self, watches: Watches) {
        if let Watches::End {
            watcher, keys, far, ..
        } = watches
        {
            let front = &mut self.front;
            let (kernel, out) = (&mut front.kernel, &mut front.out);
            end_watches(watcher, keys.iter(), kernel, out);
            far.end(front.peers.links(), kernel);
        }
    }
}

/// Whether some of these keys are at another node.
pub(super) fn are_elsewhere(keys: &[KeyName], locator: Locator<'_>) -> bool {
    let Some(links) = locator.links else {
        return false;
    };
    let mut slots = keys.iter().filter_map(|(_, key)| locator.slot(key));
    let routing = links.routing();
    // One by one: no node may serve one of them now.
    slots.any(|slot| matches!(routing.to_slots([Some(slot)]), Way::There(_)))
}
