//! `EXEC` and `COMMIT` over slots.

use super::far::{Far, in_db};
use super::watches::{Watches, are_elsewhere};
use super::{Apart, CANNOT_UNDO, at_of, has_earlier, refusal, shape_of, slots_of, what_of};
use crate::cluster::door::Door;
use crate::cluster::way::Locator;
use crate::command::{CommandTable, Dispatch};
use crate::front::Message;
use crate::front::transaction::run::Running;
use crate::front::transaction::{discarded, end_of};
use rufous_base::{Args, ConnId, Effects, Output};
use rufous_cluster::composing::{self, Composer};
use rufous_command::{DataCommands, Failure, Flags, Reply, options};
use rufous_kernel::batch::Header;
use rufous_kernel::body::{At, Deed};
use rufous_kernel::lock::KeyName;
use rufous_kernel::{Batch, Program};
use rufous_wire::version::UNDOES;

impl Apart<'_> {
    /// Whether the queued commands of a connection are executed as a transaction over slots.
    pub(super) fn takes_queue(&mut self, conn: ConnId) -> bool {
        let Some(connection) = self.front.connection(conn) else {
            return false;
        };
        if connection.door() != Door::Plain {
            return false;
        }
        let transaction = &mut connection.transaction;
        if !transaction.far.is_empty() {
            return true;
        }
        let watched: Vec<KeyName> = transaction.watched.iter().cloned().collect();
        let Some(mut queued) = transaction.queued.take() else {
            return false;
        };
        let goes = is_apart(&mut queued, &watched, self.front.locator());
        if let Some(connection) = self.front.connection(conn) {
            connection.transaction.queued = Some(queued);
        }
        goes
    }

    /// Executes the queued commands, if they are a transaction over slots. The reply comes later.
    pub(in super::super) fn exec(&mut self, conn: ConnId) -> Option<Result<(), Failure>> {
        if !self.takes_queue(conn) {
            return None;
        }
        let begun = self.front.connection(conn)?.transaction.is_begun();
        let command = end_of(self.front.table, begun);
        let connection = self.front.connection(conn)?;
        let taken = std::mem::take(&mut connection.transaction);
        let header = connection.header(command, false, None);
        let undoes = connection.undoes || taken.has_token;
        let watches = Watches::End {
            watcher: connection.watcher(),
            keys: taken.watched.into_iter().collect(),
            far: taken.far,
            db: taken.db,
            begun,
        };
        if let Some(begun) = taken.begun {
            let front = &mut self.front;
            let (kernel, out) = (&mut front.kernel, &mut front.out);
            front.transactions.end_begun(*begun, kernel, out);
        }
        let queued = taken.queued.unwrap_or_default();
        Some(self.exec_queue((&header, undoes), queued, watches))
    }

    /// Whether a transaction is to be executed over slots that was to be executed here: slots may have moved to other
    /// nodes, or got copies, while it waited for its keys.
    pub(in super::super) fn takes_by_now(&mut self, running: &mut Running) -> bool {
        let door = self.front.connection(running.header.conn).map(|c| c.door());
        door == Some(Door::Plain)
            && is_apart(&mut running.batch, &running.watched, self.front.locator())
    }

    /// Executes it.
    pub(in super::super) fn exec_late(&mut self, running: Running, fx: &mut Effects<Message>) {
        let header = running.header;
        let watches = Watches::End {
            watcher: running.watcher,
            keys: running.watched,
            far: Far::default(),
            db: running.db,
            begun: running.begun,
        };
        // Its client has waited since then, and waits no longer than others.
        self.since_us = running.since_us;
        let undoes = running.errors.undo();
        if let Err(failure) = self.exec_queue((&header, undoes), running.batch, watches) {
            let mut out = Output::default();
            Reply::new(&mut out, header.resp3).error(&failure);
            self.front.deliver(header.conn, header.seq, &out, fx);
        }
        self.front.deliver_outcomes(fx);
    }

    fn exec_queue(
        &mut self,
        (header, undoes): (&Header, bool),
        mut queued: Box<Batch>,
        watches: Watches,
    ) -> Result<(), Failure> {
        let composed = compose(
            (header, undoes),
            &mut queued,
            &watches,
            self.front.locator(),
        );
        // Monitors have seen the commands of `COMMIT`.
        let is_shown = !watches.are_of_commit();
        for at in 0..queued.requests.len() {
            let (header, args, _) = queued.parts(at);
            if is_shown {
                self.front.show_queued(self.now, &header, &args);
            }
        }
        self.front.transactions.keep(queued);
        let begun = match composed {
            Ok(composer) => self.begin(header, composer, watches),
            Err(failure) => {
                self.drop_watches(watches);
                Err(failure)
            }
        };
        if is_shown {
            self.front.show_exec(self.now, header.conn);
        } else if begun.is_err() {
            self.front.counters.on_transaction_ended(false);
        }
        begun
    }
}

fn is_apart(queued: &mut Batch, watched: &[KeyName], locator: Locator<'_>) -> bool {
    let mut keys = watched.to_vec();
    let mut found = Vec::new();
    for at in 0..queued.requests.len() {
        let (header, args, _) = queued.parts(at);
        found.clear();
        let spec = locator.table.spec(header.command);
        spec.keys.find(&args, header.db, &mut found);
        let named = found.iter();
        keys.extend(named.map(|&(db, arg)| (db, args.get(arg as usize).into())));
    }
    are_elsewhere(&keys, locator) || locator.refused_spread(queued).is_some()
}

fn compose(
    (exec, undoes): (&Header, bool),
    queued: &mut Batch,
    watches: &Watches,
    locator: Locator<'_>,
) -> Result<Composer, Failure> {
    if undoes && has_earlier(UNDOES, locator.links).is_some() {
        return Err(discarded(&CANNOT_UNDO));
    }
    let mut composer = Composer::new(true, undoes || is_together(queued, locator.table));
    let mut marks = undoes;
    if let Watches::End {
        watcher, keys, far, ..
    } = watches
    {
        for key in keys {
            let since = far.since(key);
            let watcher = if since == 0 { watcher.0 } else { far.number() };
            let at = At {
                resp3: exec.resp3,
                ..in_db(key.0)
            };
            composer.add_deed(at, Deed::Untouched { watcher, since }, &key.1);
        }
    }
    for index in 0..queued.requests.len() {
        let (header, args, _) = queued.parts(index);
        let spec = locator.table.spec(header.command);
        if spec.flags.has(Flags::SELECT) {
            if let Some(why) = options::database(args.get(1)).err().filter(|_| undoes) {
                return Err(discarded(&why));
            }
            composer.add_known(&selected(&args, exec.resp3));
            continue;
        }
        if spec.flags.has(Flags::PAIRS) && args.len().is_multiple_of(2) {
            if undoes {
                return Err(discarded(&Failure::wrong_arity(spec.name)));
            }
            let mut out = Output::default();
            Reply::new(&mut out, exec.resp3).error(&Failure::wrong_arity(spec.name));
            composer.add_known(&out.to_vec());
            continue;
        }
        let mut found = Vec::new();
        spec.keys.find(&args, header.db, &mut found);
        check(&header, &args, &found, locator)?;
        // One of the deeds is enough.
        if let Some((_, first)) = found.first().filter(|_| std::mem::take(&mut marks)) {
            let key = args.get(*first as usize);
            composer.add_deed(in_db(header.db), Deed::Undoes, key);
        }
        let at = At {
            resp3: exec.resp3,
            ..at_of(&header)
        };
        let added = composer.add(at, &what_of(spec), &args, &found);
        added.map_err(|why| refusal(why, spec.name))?;
    }
    Ok(composer)
}

/// Whether queued commands have to be executed together.
fn is_together(queued: &mut Batch, table: &CommandTable) -> bool {
    let mut found = Vec::new();
    (0..queued.requests.len()).any(|at| {
        let (header, args, _) = queued.parts(at);
        found.clear();
        let spec = table.spec(header.command);
        spec.keys.find(&args, header.db, &mut found);
        composing::is_together(shape_of(spec), slots_of(&args, &found), true)
    })
}

/// Why a command cannot be part of a transaction over slots.
pub(super) fn check(
    header: &Header,
    args: &Args<'_>,
    keys: &[(u8, u32)],
    locator: Locator<'_>,
) -> Result<(), Failure> {
    let spec = locator.table.spec(header.command);
    let dispatch = locator.table.dispatch(header.command);
    let is_data = matches!(dispatch, Dispatch::Key | Dispatch::Keys);
    let is_open = is_data && DataCommands::is_open(header.command, args);
    if !is_data || is_open || keys.is_empty() {
        return Err(format!("CROSSNODE '{}' cannot be part of a transaction whose keys are of several nodes or slots: send it alone", spec.name).into());
    }
    let placement = locator.kernel.placement();
    let mut keys = keys.iter().map(|(_, arg)| args.get(*arg as usize));
    match keys.find_map(|key| placement.lattice(key)) {
        Some(keyspace) => Err(format!("CROSSNODE '{}' has a key of keyspace '{}', which is of regime lattice: a transaction whose keys are of several nodes or slots has keys of regime strict alone", spec.name, keyspace.name).into()),
        None => Ok(()),
    }
}

/// The reply to `SELECT`: the commands behind it carry the database.
fn selected(args: &Args<'_>, resp3: bool) -> Vec<u8> {
    let mut out = Output::default();
    let mut reply = Reply::new(&mut out, resp3);
    match options::database(args.get(1)) {
        Ok(_) => reply.ok(),
        Err(failure) => reply.error(&failure),
    }
    out.to_vec()
}
