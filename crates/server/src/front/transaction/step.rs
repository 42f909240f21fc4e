//! Commands of a transaction begun with `BEGIN`: where each runs, and on which keys.

use super::super::connection::Connection;
use super::begun::{Begun, given_up};
use super::watching::watch_here;
use super::{TOO_LARGE, Transaction, size_of_request};
use rufous_base::{Args, Now, Output};
use rufous_command::{DataCommands, Failure, Flags, Spec};
use rufous_kernel::batch::Header;
use rufous_kernel::lock::KeyName;
use rufous_kernel::replicate::level::Level;
use rufous_kernel::replicate::transaction::isolation::AtOnce;
use rufous_kernel::replicate::transaction::{Runs, Transaction as Open};
use rufous_kernel::shard::WatchId;
use rufous_kernel::worker::{ExecPlan, HeldExec};
use rufous_kernel::{Batch, Program, Worker};
use std::borrow::Cow;

type Kernel = Worker<DataCommands>;

pub(super) const NOT_INSIDE: Failure = Failure(Cow::Borrowed(
    "ERR Command not allowed inside a transaction started by BEGIN",
));
const OTHER_KEYS: Failure = Failure(Cow::Borrowed(
    "ERR BY and GET may tell of keys that the command does not name, of which the transaction has no copies: \
     use SORT_RO before the first write (not at levels item-cut and serializable), or do this outside",
));
pub(super) const TABLE_CHANGED: Failure = Failure(Cow::Borrowed(
    "ERR the keyspaces were changed since the transaction began",
));
const OTHER_KEYSPACE: Failure = Failure(Cow::Borrowed(
    "ERR the transaction has written keys of LEVEL read-uncommitted, which is done at once, and cannot keep writes or reads of keys \
     of another LEVEL: give a level to BEGIN, as in BEGIN read-committed",
));
const TWO_ORDERS: Failure = Failure(Cow::Borrowed(
    "ERR keys of a causal keyspace and others can't be written by one command of a transaction of level read-uncommitted",
));

/// A command of such a transaction, while its keys are held.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) header: Header,
    spec: &'static Spec,
    pub(super) batch: Box<Batch>,
    pub(super) runs: Runs,
    /// Keys that are copied for it.
    pub(super) taken: Vec<KeyName>,
    /// They were copied.
    pub(super) is_copied: bool,
    /// It watches them from then on.
    pub(super) watcher: Option<WatchId>,
}

impl Step {
    /// A command on these keys, of which the transaction may have copies.
    pub(super) fn new(
        header: &Header,
        spec: &'static Spec,
        batch: Box<Batch>,
        (runs, keys): (Runs, Vec<KeyName>),
        connection: &Connection,
    ) -> Self {
        let begun = connection.transaction.begun.as_deref();
        let begun = begun.filter(|_| runs == Runs::OnCopies);
        let watches = begun.is_some_and(|begun| begun.open.watches());
        Self {
            header: *header,
            spec,
            batch,
            runs,
            taken: match begun {
                Some(begun) => begun.open.missing(keys),
                None => keys,
            },
            is_copied: false,
            watcher: watches.then(|| connection.watcher()),
        }
    }

    /// The keys of the command.
    fn names(&mut self) -> Vec<KeyName> {
        let (header, args, _) = self.batch.parts(0);
        let mut found = Vec::new();
        self.spec.keys.find(&args, header.db, &mut found);
        let named = |&(db, arg): &(u8, u32)| (db, args.get(arg as usize).into());
        found.iter().map(named).collect()
    }

    /// What is to be held for it.
    pub(super) fn plan(&self, exec: u64) -> ExecPlan {
        ExecPlan {
            exec,
            client: self.header.client,
            keys: self.taken.clone(),
            watched: Vec::new(),
            watcher: self.watcher,
            watches: self.watcher.is_some(),
            whole: false,
            touch: !self.header.no_touch,
        }
    }

    /// Runs the command in the transaction, whose keys are held, free or copied. True if it has changed
    /// copies, and is to be kept for `COMMIT`.
    pub(super) fn run(
        &mut self,
        now: Now,
        begun: &mut Begun,
        held: Option<&mut HeldExec>,
        kernel: &mut Kernel,
        out: &mut Output,
    ) -> bool {
        if begun.keyspaces != kernel.keyspaces().version() {
            // They changed while the keys were awaited.
            return false;
        }
        if self.runs == Runs::OnCopies {
            if !self.is_copied {
                self.copy(now, &mut begun.open, held, kernel);
            }
            return self.run_apart(now, &mut begun.open, kernel, out);
        }
        self.run_at_once(now, begun, held, kernel, out);
        false
    }

    /// Whether it has copied keys whose watches end with the transaction.
    pub(super) fn has_watched(&self, begun: &Begun, kernel: &Kernel) -> bool {
        self.runs == Runs::OnCopies && begun.keyspaces == kernel.keyspaces().version()
    }

    /// Runs a command on copies. True if it has changed them.
    fn run_apart(
        &mut self,
        now: Now,
        open: &mut Open,
        kernel: &mut Kernel,
        out: &mut Output,
    ) -> bool {
        let spec = self.spec;
        let writes = spec.flags.has(Flags::WRITE);
        if writes {
            let keys = self.names();
            open.before_change(&keys, &self.taken, now);
        }
        let done = if writes {
            // It takes over its arguments, which are needed again.
            let mut copy = self.batch.copy_of(0);
            let (header, args, _) = copy.parts(0);
            kernel.run_on_copies(open, now, &header, args, out)
        } else {
            let (header, args, _) = self.batch.parts(0);
            kernel.run_on_copies(open, now, &header, args, out)
        };
        open.end_command(std::mem::take(&mut self.taken), writes && done, now);
        writes && done
    }

    /// Copies the keys of a command, which are this node's.
    fn copy(&self, now: Now, open: &mut Open, held: Option<&mut HeldExec>, kernel: &mut Kernel) {
        let touch = !self.header.no_touch;
        if let (Some(watcher), None) = (self.watcher, &held) {
            watch_here(watcher, self.taken.iter(), now, kernel);
        }
        match held {
            Some(held) => kernel.copy_held(open, held, now),
            None => kernel.copy_here(open, &self.taken, touch, now),
        }
    }

    /// The watches of the command's keys end with its transaction.
    pub(super) fn watch_until_end(&self, transaction: &mut Transaction) {
        if self.watcher.is_some() && !self.is_copied {
            transaction.watched.extend(self.taken.iter().cloned());
        }
    }

    fn run_at_once(
        &mut self,
        now: Now,
        begun: &mut Begun,
        held: Option<&mut HeldExec>,
        kernel: &mut Kernel,
        out: &mut Output,
    ) {
        let (header, args, _) = self.batch.parts(0);
        let mut stamp = begun.stamp;
        if let Some(held) = held {
            held.go_on_at(stamp);
            kernel.run_held(held, now, &header, None, args, out);
            stamp = held.stamp();
        } else {
            kernel.run_under(&mut stamp, now, &header, args, out);
        }
        if begun.promise.is_some() {
            begun.stamp = stamp;
        }
    }
}

/// A command of a transaction that is to be placed.
pub(super) struct Asked<'r, 'a> {
    pub(super) now: Now,
    pub(super) command: u16,
    pub(super) spec: &'r Spec,
    pub(super) keys: &'r [KeyName],
    pub(super) args: &'r Args<'a>,
}

/// Why a command of a transaction does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotPlaced {
    Refused(Failure),
    /// The transaction cannot go on.
    GivenUp(Failure),
}

impl From<Failure> for NotPlaced {
    fn from(why: Failure) -> Self {
        Self::Refused(why)
    }
}

impl Begun {
    /// Where a command of the transaction runs, if it is allowed. `refused`: why no changes are made at
    /// present; `room`: bytes that the transaction may still grow by.
    pub(super) fn place(
        &mut self,
        asked: &Asked<'_, '_>,
        refused: Option<Failure>,
        room: usize,
        kernel: &Kernel,
    ) -> Result<Runs, NotPlaced> {
        let &Asked {
            now,
            command,
            spec,
            keys,
            args,
        } = asked;
        if let Some(why) = &self.given_up {
            return Err(given_up(why).into());
        }
        if self.keyspaces != kernel.keyspaces().version() {
            return Err(NotPlaced::GivenUp(TABLE_CHANGED));
        }
        if let Some(failure) = refused {
            return Err(failure.into());
        }
        let mut names = keys.iter();
        let lattice = names.find_map(|key| kernel.placement().lattice(&key.1));
        if let Some(keyspace) = lattice
            && self.open.watches()
        {
            let name = &keyspace.name;
            return Err(NotPlaced::Refused(format!("ERR a key is in keyspace '{name}', which is of regime lattice: a serializable transaction has keys of regime strict alone").into()));
        }
        let writes = spec.flags.has(Flags::WRITE);
        let is_open = DataCommands::is_open(command, args);
        if let Some(level) = level_of_keys(keys, is_open, kernel) {
            let taken = self.open.on_keys(writes, level, kernel.instant(now));
            taken.map_err(|AtOnce| NotPlaced::Refused(OTHER_KEYSPACE))?;
        }
        let mut runs = self.open.runs(writes, keys);
        if runs == Runs::UnderStamp {
            self.wrote = true;
            // Waiting for data might never end: its writer may wait for this transaction.
            let waits = DataCommands::may_wait(command);
            let (by_stamps, beside) = orders_of(keys, kernel);
            let at = self.stamp.is_some() && by_stamps;
            if at && beside {
                return Err(TWO_ORDERS.into());
            }
            if !waits && !at {
                runs = Runs::AsEver;
            }
        }
        if is_open && (runs != Runs::AsEver || !self.open.is_empty()) {
            return Err(OTHER_KEYS.into());
        }
        if runs == Runs::OnCopies && size_of_request(args) > room {
            return Err(NotPlaced::GivenUp(TOO_LARGE));
        }
        Ok(runs)
    }
}

/// The level that keyspaces of these keys give to a transaction that was begun without one. `is_open`: the command may read
/// keys of any keyspace.
fn level_of_keys(keys: &[KeyName], is_open: bool, kernel: &Kernel) -> Option<Level> {
    let placement = kernel.placement();
    let of = |(_, key): &KeyName| {
        let keyspace = placement.lattice(key);
        keyspace.map_or(Level::READ_COMMITTED, |found| found.level.in_transactions())
    };
    let named = keys.iter().map(of).reduce(Level::and)?;
    let all = kernel.keyspaces().iter().filter(|_| is_open);
    let all = all.map(|keyspace| keyspace.level.in_transactions());
    Some(all.fold(named, Level::and))
}

/// Whether for some of these keys the write with the highest stamp counts, and whether some
/// keep several values side by side: these have an order of their own, in which no write goes
/// back in time.
fn orders_of(keys: &[KeyName], kernel: &Kernel) -> (bool, bool) {
    let placement = kernel.placement();
    let all = keys.iter().filter_map(|key| placement.lattice(&key.1));
    all.fold((false, false), |(by_stamps, beside), keyspace| {
        let keeps = keyspace.level.keeps_siblings();
        (by_stamps || !keeps, beside || keeps)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::with_args;
    use super::*;
    use rufous_base::WorkerId;
    use rufous_kernel::placement::Placement;
    use rufous_kernel::replicate::transaction::isolation::Isolation;

    fn kernel() -> Kernel {
        let commands = crate::command::table().len();
        Worker::new(WorkerId(0), Placement::new(1), commands, 1)
    }

    fn begun(level: &str, kernel: &mut Kernel) -> Begun {
        let level = super::super::begun::level_of(level.as_bytes()).expect("a level");
        let open = kernel.open_transaction(Now::default(), Isolation::given(level));
        Begun::new(Now::default(), open, kernel.keyspaces().version())
    }

    /// Where a command on these keys runs.
    fn place(
        begun: &mut Begun,
        words: &str,
        refused: Option<Failure>,
        room: usize,
        kernel: &Kernel,
    ) -> Result<Runs, NotPlaced> {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let table = crate::command::table();
        let command = table.find(words[0]).expect("a command");
        with_args(&words, |args| {
            let (spec, mut found) = (table.spec(command), Vec::new());
            spec.keys.find(args, 0, &mut found);
            let keys = found.iter();
            let keys: Vec<KeyName> = keys
                .map(|(db, arg)| (*db, args.get(*arg as usize).into()))
                .collect();
            let asked = Asked {
                now: Now::default(),
                command,
                spec,
                keys: &keys,
                args,
            };
            begun.place(&asked, refused, room, kernel)
        })
    }

    #[test]
    fn the_level_decides_where_a_command_runs() {
        let mut kernel = kernel();
        let mut serializable = begun("serializable", &mut kernel);
        let mut plain = begun("read-committed", &mut kernel);
        let runs = |begun: &mut Begun, words| place(begun, words, None, 1000, &kernel);
        assert_eq!(runs(&mut serializable, "get a"), Ok(Runs::OnCopies));
        assert_eq!(runs(&mut plain, "get a"), Ok(Runs::AsEver));
        assert_eq!(runs(&mut plain, "set a 1"), Ok(Runs::OnCopies));
    }

    #[test]
    fn a_command_that_is_refused_leaves_the_transaction_open() {
        let mut kernel = kernel();
        let mut begun = begun("serializable", &mut kernel);
        let full = Failure::from("OOM");
        let refused = place(&mut begun, "set a 1", Some(full.clone()), 1000, &kernel);
        assert_eq!(refused, Err(NotPlaced::Refused(full)));
        assert!(begun.given_up.is_none());
    }

    #[test]
    fn a_transaction_that_is_too_large_or_older_than_the_table_is_given_up() {
        let mut kernel = kernel();
        let mut begun = begun("serializable", &mut kernel);
        let large = place(&mut begun, "set a 1", None, 3, &kernel);
        assert_eq!(large, Err(NotPlaced::GivenUp(TOO_LARGE)));
        begun.keyspaces += 1;
        let old = place(&mut begun, "get a", None, 1000, &kernel);
        assert_eq!(old, Err(NotPlaced::GivenUp(TABLE_CHANGED)));
    }

    #[test]
    fn nothing_runs_in_a_transaction_that_was_given_up() {
        let mut kernel = kernel();
        let mut begun = begun("serializable", &mut kernel);
        let empty = kernel.open_transaction(Now::default(), begun.open.isolation());
        let (copies, promise) = begun.give_up("ERR why".into(), empty);
        assert!(promise.is_none());
        kernel.close_transaction(copies);
        let Err(NotPlaced::Refused(why)) = place(&mut begun, "get a", None, 1000, &kernel) else {
            panic!("refused");
        };
        assert!(why.text().starts_with("ERR why: "), "{}", why.text());
    }
}
