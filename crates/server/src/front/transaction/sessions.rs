//! What commands of transactions do with the session of their connection.

use super::super::session::Session;
use super::begun::{Begun, WRITES_STAY, level_of};
use super::run::{Running, refused_by_clocks};
use super::token::{DONE_AT_ONCE, Token};
use super::undoing;
use super::watching::watch_here;
use super::{WATCHES_TOO_MUCH, discarded, end_of, refusal_of_changes};
use rufous_base::{Args, Now};
use rufous_command::{DataCommands, Failure, Reply};
use rufous_kernel::Worker;
use rufous_kernel::batch::Header;
use rufous_kernel::lock::KeyName;
use rufous_kernel::replicate::level::read_uncommitted;
use rufous_kernel::replicate::transaction::isolation::Isolation;
use std::borrow::Cow;
use std::collections::BTreeSet;

const UNKNOWN_LEVEL: Failure = Failure(Cow::Borrowed(
    "ERR unknown isolation level: use serializable, item-cut, read-committed or read-uncommitted",
));

impl Session<'_> {
    /// `MULTI`.
    pub(crate) fn begin_transaction(&mut self) -> Result<(), Failure> {
        let transaction = &mut self.connection()?.transaction;
        if transaction.open {
            return Err("ERR MULTI calls can not be nested".into());
        }
        if transaction.is_begun() {
            return Err("ERR MULTI inside a transaction started by BEGIN".into());
        }
        transaction.open = true;
        Ok(())
    }

    /// `DISCARD`.
    pub(crate) fn discard_transaction(&mut self) -> Result<(), Failure> {
        if !self.connection()?.transaction.open {
            return Err("ERR DISCARD without MULTI".into());
        }
        self.local.front.end_transaction(self.conn);
        Ok(())
    }

    /// `WATCH` keys, which begin at argument `from`. The reply comes when all their owners have
    /// recorded the watch.
    pub(crate) fn watch(
        &mut self,
        args: &Args<'_>,
        from: usize,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let limit = self.local.front.config.client_query_buffer_limit;
        let (here, now) = (self.local.front.id(), self.now);
        let placement = self.local.front.kernel.placement().clone();
        let refused = args
            .iter_from(from)
            .find_map(|key| self.local.front.locator().refused_watch(key));
        if let Some(failure) = refused {
            return Err(failure);
        }
        let connection = self.connection()?;
        if connection.transaction.open {
            return Err("ERR WATCH inside MULTI is not allowed".into());
        }
        if connection.transaction.is_begun() {
            return Err("ERR WATCH inside BEGIN is not allowed".into());
        }
        let (watcher, db) = (connection.watcher(), connection.db);
        let transaction = &mut connection.transaction;
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let mut all = Vec::new();
        for key in args.iter_from(from) {
            let key: KeyName = (db, key.into());
            if transaction.watched.contains(&key) {
                continue;
            }
            transaction.watched_bytes += key.1.len() + 2 * size_of::<KeyName>();
            if transaction.watched_bytes > limit {
                return Err(WATCHES_TOO_MUCH);
            }
            transaction.watched.insert(key.clone());
            all.push(key.clone());
            match placement.owner(&key.1) {
                owner if owner == here => own.push(key),
                owner => others.push((owner, key)),
            }
        }
        let (conn, front) = (self.conn, &mut self.local.front);
        if front.apart(now).records(conn, &all) {
            front.apart(now).watch(conn, all)?;
            self.pending = true;
            return Ok(());
        }
        watch_here(watcher, own.iter(), now, &mut self.local.front.kernel);
        if others.is_empty() {
            reply.ok();
            return Ok(());
        }
        let owners: BTreeSet<_> = others.iter().map(|(owner, _)| *owner).collect();
        let owners: Vec<_> = owners.into_iter().collect();
        self.ask(
            &owners,
            None,
            move |local, now| {
                let here = local.id();
                let own = others.iter().filter(|(owner, _)| *owner == here);
                let own = own.map(|(_, key)| key);
                watch_here(watcher, own, now, &mut local.front.kernel);
            },
            |_, _: Vec<()>, reply| reply.ok(),
        );
        Ok(())
    }

    /// `UNWATCH`.
    pub(crate) fn unwatch(&mut self) -> Result<(), Failure> {
        let connection = self.connection()?;
        if connection.transaction.is_begun() {
            return Err("ERR UNWATCH inside BEGIN is not allowed".into());
        }
        let watcher = connection.watcher();
        let watches = connection.transaction.take_watches();
        self.local.front.end_watches(watcher, watches);
        Ok(())
    }
}

/// `EXEC`.
impl Session<'_> {
    /// `EXEC`.
    pub(crate) fn exec(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        let now = self.now;
        let connection = self.connection()?;
        if !connection.transaction.open {
            return Err("ERR EXEC without MULTI".into());
        }
        if connection.transaction.aborted {
            self.local.front.end_transaction(self.conn);
            self.local.front.show_exec(now, self.conn);
            return Err("EXECABORT Transaction discarded because of previous errors.".into());
        }
        self.run_kept(reply)
    }

    /// Runs the queued commands.
    pub(super) fn run_kept(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        let now = self.now;
        let connection = self.connection()?;
        let (flags, grows) = connection.transaction.changes();
        if let Some(failure) = refusal_of_changes(&mut self.local.front.kernel, now, flags, grows) {
            self.local.front.end_transaction(self.conn);
            return Err(discarded(&failure));
        }
        if let Some(begun) = self.local.front.apart(now).exec(self.conn) {
            self.pending = begun.is_ok();
            return begun;
        }
        if let Some(failure) = self.refused_queue(now)? {
            self.local.front.end_transaction(self.conn);
            return Err(failure);
        }
        let begun = self.connection()?.transaction.is_begun();
        let command = end_of(self.local.front.table, begun);
        let connection = self.connection()?;
        let mut taken = std::mem::take(&mut connection.transaction);
        let header = connection.header(command, false, None);
        let running = Running::new(now, header, &mut taken, connection);
        if let Some(begun) = taken.begun {
            let front = &mut self.local.front;
            let (kernel, out) = (&mut front.kernel, &mut front.out);
            front.transactions.end_begun(*begun, kernel, out);
        }
        self.pending = self.local.front.run_transaction(now, running, reply);
        Ok(())
    }

    /// Where the client is redirected with its transaction, or why clocks do not allow it.
    fn refused_queue(&mut self, now: Now) -> Result<Option<Failure>, Failure> {
        let connection = self.connection()?;
        let undoes = connection.undoes || connection.transaction.has_token;
        let door = connection.door();
        let Some(mut queued) = connection.transaction.queued.take() else {
            return Ok(None);
        };
        let front = &mut self.local.front;
        let refused = front.locator().refused_queue(door, &mut queued);
        let refused = refused.or_else(|| refused_by_clocks(&mut front.kernel, now, &mut queued));
        let locator = front.locator();
        let refused = refused.or_else(|| undoes.then(|| undoing::refused(locator, &mut queued))?);
        self.connection()?.transaction.queued = Some(queued);
        Ok(refused)
    }
}

/// `BEGIN` and `COMMIT`.
impl Session<'_> {
    /// `BEGIN`, with the level of this name; without one, the keyspaces of its keys give it.
    pub(crate) fn begin(
        &mut self,
        level: Option<&[u8]>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let mut isolation = match level {
            None => Isolation::of_keys(),
            Some(name) => Isolation::given(level_of(name).ok_or(UNKNOWN_LEVEL)?),
        };
        let (now, conn) = (self.now, self.conn);
        let transaction = &self.connection()?.transaction;
        let refused = if transaction.open {
            Some("ERR BEGIN inside MULTI is not allowed")
        } else if transaction.is_begun() {
            Some("ERR a transaction is already open: end it with COMMIT or ROLLBACK")
        } else if isolation.writes_at_once() && !transaction.watched.is_empty() {
            Some(
                "ERR WATCH has no meaning for a transaction of level read-uncommitted: its writes are done at once",
            )
        } else {
            None
        };
        if let Some(why) = refused {
            return Err(why.into());
        }
        if transaction.watches() {
            isolation.settle();
        }
        let kernel = &mut self.local.front.kernel;
        let at_once = needs_promises(isolation, kernel);
        let open = kernel.open_transaction(now, isolation);
        let begun = Begun::new(now, open, kernel.keyspaces().version());
        self.connection()?.transaction.begun = Some(Box::new(begun));
        if !at_once {
            reply.ok();
            return Ok(());
        }
        let own = self.local.front.id();
        let name = self.local.front.transactions.promises.name(own);
        self.ask_all(
            reply,
            move |local, now| local.front.kernel.promise_to(now, name),
            move |local, times, reply| {
                local.front.begin_at_once(now, conn, name, &times);
                reply.ok();
            },
        );
        Ok(())
    }

    /// `ROLLBACK`.
    pub(crate) fn rollback(&mut self) -> Result<(), Failure> {
        let Some(begun) = &self.connection()?.transaction.begun else {
            return Err("ERR ROLLBACK without BEGIN".into());
        };
        let stays = begun.wrote;
        self.local.front.end_transaction(self.conn);
        match stays {
            true => Err(WRITES_STAY),
            false => Ok(()),
        }
    }

    /// `COMMIT`. The reply is that of `EXEC`.
    pub(crate) fn commit(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        let Some(begun) = &self.connection()?.transaction.begun else {
            return Err("ERR COMMIT without BEGIN".into());
        };
        if let Some(why) = &begun.given_up {
            let failure = match begun.wrote {
                true => WRITES_STAY,
                false => discarded(why),
            };
            self.local.front.end_transaction(self.conn);
            return Err(failure);
        }
        self.run_kept(reply)
    }

    /// Adds the command that keeps the outcome to those that `COMMIT` will run.
    pub(crate) fn keep_token(&mut self, token: &Token<'_>) -> Result<(), Failure> {
        let front = &mut self.local.front;
        let command = front.table.find(b"outcome").unwrap_or_default();
        let spec = front.table.spec(command);
        let hash = front.kernel.shard.key(token.token).hash;
        let spare = &mut front.transactions.spare;
        let Some(connection) = front.connections.get(self.conn) else {
            return Ok(());
        };
        let header = Header {
            key: 1,
            hash,
            ..connection.header(command, false, None)
        };
        let transaction = &mut connection.transaction;
        match &transaction.begun {
            // `COMMIT` says why it is refused.
            None => return Ok(()),
            Some(begun) if begun.given_up.is_some() => return Ok(()),
            Some(begun) if begun.open.writes_at_once() => return Err(DONE_AT_ONCE),
            Some(_) => {}
        }
        let (bytes, places) = token.command();
        transaction.keep(header, spec, Args::new(&bytes, &places, &mut []), spare);
        transaction.has_token = true;
        Ok(())
    }
}

/// Whether a transaction needs the promises of all workers: it writes lattice keys at once, or will if its first keys demand that.
fn needs_promises(isolation: Isolation, kernel: &Worker<DataCommands>) -> bool {
    let placement = kernel.placement();
    if isolation.writes_at_once() {
        return placement.has_lattice();
    }
    isolation.may_write_at_once()
        && placement.any_lattice(|keyspace| {
            read_uncommitted::writes_at_once(keyspace.level.in_transactions())
        })
}
