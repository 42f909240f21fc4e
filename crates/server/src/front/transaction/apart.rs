//! Transactions over slots: `EXEC`, and commands such as `MSET` and `RENAME`, whose keys are at several nodes, at another
//! one, or in several slots with copies. The kernel runs them as linear transactions; here their commands become a body
//! ([`rufous_cluster::composing`]), and what the slots tell the client's reply. `exec` has `EXEC` and `COMMIT`, `begun` the commands
//! before `COMMIT`, and `watches` the watches of keys at other nodes.

pub(super) mod begun;
mod exec;
mod far;
mod open;
mod watches;

pub(super) use far::Far;
pub(crate) use open::Open;

use super::super::connection::Connection;
use super::super::lookahead::What;
use super::super::request::Request;
use super::super::{Front, Message};
use super::discarded;
use crate::cluster::door::Door;
use crate::cluster::links::Links;
use crate::cluster::way::Way;
use open::Waiting;
use rufous_base::slot::slot_of;
use rufous_base::{Args, Effects, Now, Output};
use rufous_cluster::composing::{
    self, Composer, MOST_BYTES, MOST_KEPT, MOST_SLOTS, Refusal, Shape,
};
use rufous_command::{Failure, Flags, Reply, Spec};
use rufous_kernel::Submitted;
use rufous_kernel::batch::Header;
use rufous_kernel::body::{self, At};
use rufous_kernel::lock::KeyName;
use rufous_kernel::worker::Transacted;
use rufous_wire::version::{LETTERS, READS};
use std::borrow::Cow;
use std::collections::BTreeSet;
use watches::Watches;

/// A worker's front, for the time of an event of such a transaction.
pub(crate) struct Apart<'f> {
    pub(super) front: &'f mut Front,
    pub(super) now: Now,
    /// When the client has asked for it.
    pub(super) since_us: u64,
}

/// How a command may be taken apart.
fn shape_of(spec: &Spec) -> Shape {
    let flags = spec.flags;
    let of = [
        (Flags::PER_KEY.or(Flags::SUM), Shape::Sum),
        (Flags::PER_KEY.or(Flags::LIST), Shape::Elements),
        (Flags::PAIRS.or(Flags::IF_MISSING), Shape::PairsIfMissing),
        (Flags::PAIRS, Shape::Pairs),
    ];
    let found = of.into_iter().find(|(all, _)| flags.has(*all));
    found.map_or(Shape::Whole, |(_, shape)| shape)
}

fn what_of(spec: &Spec) -> composing::What<'static> {
    composing::What {
        name: spec.name,
        shape: shape_of(spec),
        writes: spec.flags.has(Flags::WRITE),
        grows: spec.flags.has(Flags::DENYOOM),
    }
}

fn at_of(header: &Header) -> At {
    At {
        db: header.db,
        resp3: header.resp3,
        quiet: header.quiet,
    }
}

/// How many slots these keys have.
fn slots_of(args: &Args<'_>, keys: &[(u8, u32)]) -> usize {
    let slots = keys.iter().map(|(_, arg)| slot_of(args.get(*arg as usize)));
    slots.collect::<BTreeSet<u16>>().len()
}

fn refusal(why: Refusal, name: &str) -> Failure {
    match why {
        Refusal::Keys => format!(
            "CROSSSLOT '{name}' cannot have keys of several slots: give them one hash tag, as in {{tag}}key"
        ),
        Refusal::TooManySlots => format!(
            "ERR the transaction has keys of more than {MOST_SLOTS} slots: use several, or hash tags, as in {{tag}}key"
        ),
        Refusal::TooLargeEach => format!(
            "ERR each slot of a transaction keeps all of its commands: its bytes times its slots are at most {MOST_KEPT}: use several, or give its keys one hash tag, as in {{tag}}key"
        ),
        Refusal::TooLarge => format!(
            "ERR a transaction over several slots has at most {MOST_BYTES} bytes: use several, or give its keys one hash tag, as in {{tag}}key"
        ),
    }
    .into()
}

/// Transactions of a worker's clients, those that have left included, that may wait for their outcomes.
const MOST_WAITING: usize = 4096;
const FULL: &str = "TRYAGAIN 4096 transactions over slots of this worker's clients have no outcome yet: nothing was done; send it again later";

/// Keys that one transaction deletes.
const MOST_KEYS: usize = 4096;

const EARLIER: &str = "CROSSNODE A node runs an earlier program, which has no part in transactions over nodes or slots: upgrade all nodes";
const CANNOT_UNDO: Failure = Failure(Cow::Borrowed(
    "ERR a node runs an earlier program, where no error undoes a transaction over nodes or slots: upgrade all nodes, or send CLIENT ROLLBACK-ON-ERROR OFF, and COMMIT without a token",
));
const NO_PART: &str = "CLUSTERDOWN This node has no part in the cluster yet: see CLUSTER STATUS; send the transaction again";
const OTHER_VERSION: &str = "ERR nodes of this cluster answer a part of this transaction differently: are they of different versions?";

/// The error that a slot has told which executes nothing.
fn refused(told: &[u8]) -> Option<Failure> {
    let text = told.strip_prefix(b"-")?.strip_suffix(b"\r\n")?;
    Some(String::from_utf8_lossy(text).into_owned().into())
}

/// Whether a command may be a transaction over slots, while earlier requests of its connection are not answered.
#[inline]
pub(crate) fn may_overtake(spec: &Spec, connection: &Connection) -> bool {
    let flags = [Flags::EXEC, Flags::AT_ONCE, Flags::DOOR];
    let may = || {
        flags.iter().any(|flag| spec.flags.has(*flag))
            || spec.goes_over_slots()
            || spec.deletes_each()
    };
    !connection.replies.is_empty() && (may() || connection.transaction.is_begun())
}

/// Why no transaction begins, if another node runs a program that has no part in it.
fn has_earlier(version: u16, links: Option<&Links>) -> Option<Failure> {
    links?.has_earlier(version).then_some(EARLIER.into())
}

/// Whether keys that are read or deleted are few enough for one transaction.
fn are_few(request: &Request<'_>, args: &Args<'_>) -> bool {
    let keys = || request.keys.iter().map(|key| args.get(key.arg as usize));
    // A body has some bytes more for each.
    let bytes: usize = keys().map(<[u8]>::len).sum();
    let slots: BTreeSet<u16> = keys().map(slot_of).collect();
    bytes * slots.len() <= MOST_KEPT / 2
        && bytes <= MOST_BYTES / 2
        && request.keys.len() <= MOST_KEYS
        && slots.len() <= MOST_SLOTS
}

/// Whether keys that could be treated each by itself are of one transaction, which programs since this version have: otherwise
/// each node treats its own.
fn are_together(
    request: &Request<'_>,
    args: &Args<'_>,
    (since, links): (u16, Option<&Links>),
) -> bool {
    are_few(request, args) && has_earlier(since, links).is_none()
}

/// Single commands.
impl Apart<'_> {
    /// Whether a request is executed as a transaction over slots, and has to wait until the earlier requests of its
    /// connection are answered: its messages would overtake those that are forwarded to other nodes.
    pub(crate) fn waits(&mut self, request: &Request<'_>, way: &Way, args: &Args<'_>) -> bool {
        let What::Command(id) = request.what else {
            return false;
        };
        let spec = self.front.table.spec(id);
        let Some(connection) = self.front.connection(request.conn) else {
            return false;
        };
        if spec.flags.has(Flags::DOOR) {
            // Requests behind it are routed in another way, and would overtake the earlier ones.
            return !connection.replies.is_empty() && self.front.links().is_some();
        }
        let reads = spec.reads_each() && !connection.replies.is_empty();
        let may = (may_overtake(spec, connection) || reads) && !connection.queues(spec);
        if !may || connection.transaction.is_begun() {
            return may && self.front.links().is_some();
        }
        if spec.flags.has(Flags::EXEC) {
            return self.takes_queue(request.conn);
        }
        if !spec.flags.has(Flags::AT_ONCE) {
            return self.takes(request, way, args);
        }
        let keys = request.keys.iter();
        let keys: Vec<KeyName> = keys
            .map(|key| (0, args.get(key.arg as usize).into()))
            .collect();
        self.records(request.conn, &keys)
    }

    /// Whether a request is executed as a transaction over slots.
    pub(crate) fn takes(&mut self, request: &Request<'_>, way: &Way, args: &Args<'_>) -> bool {
        let What::Command(id) = request.what else {
            return false;
        };
        let spec = self.front.table.spec(id);
        let reads = spec.reads_each() && self.front.config.cluster_atomic_reads;
        let may = spec.goes_over_slots() || spec.deletes_each() || reads;
        if request.keys.len() < 2 || !may || self.front.links().is_none() {
            return false;
        }
        let each = spec.reads_each().then_some(READS);
        let each = each.or(spec.deletes_each().then_some(LETTERS));
        let door = self.front.connection(request.conn).map(|c| c.door());
        let keys = || request.keys.iter().map(|key| args.get(key.arg as usize));
        let placement = self.front.kernel.placement();
        let is_apart = match way {
            Way::Apart(_) => true,
            Way::Here | Way::There(_) => {
                spec.flags.has(Flags::WRITE) && self.front.kernel.is_spread(keys())
            }
            Way::All(_) | Way::None(_) => false,
        };
        let has_lattice = || keys().any(|key| placement.lattice(key).is_some());
        door == Some(Door::Plain)
            && is_apart
            && !has_lattice()
            && each.is_none_or(|since| are_together(request, args, (since, self.front.links())))
    }

    /// Executes it.
    pub(crate) fn submit(
        &mut self,
        request: &Request<'_>,
        header: &Header,
        args: &Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        let begun = self.begin_one(request, header, args);
        let Err(failure) = begun else {
            return Submitted::Barrier;
        };
        self.front.kernel.note(header.command, false);
        Reply::new(out, header.resp3).error(&failure);
        Submitted::Done
    }

    fn begin_one(
        &mut self,
        request: &Request<'_>,
        header: &Header,
        args: &Args<'_>,
    ) -> Result<(), Failure> {
        let spec = self.front.table.spec(header.command);
        if spec.flags.has(Flags::PAIRS) && args.len().is_multiple_of(2) {
            // A key without a value.
            return Err(Failure::wrong_arity(spec.name));
        }
        let keys = request.keys_in(header.db, spec.keys, args);
        exec::check(header, args, &keys, self.front.locator())?;
        let together = composing::is_together(shape_of(spec), slots_of(args, &keys), false);
        let mut composer = Composer::new(false, together);
        let added = composer.add(at_of(header), &what_of(spec), args, &keys);
        added.map_err(|why| refusal(why, spec.name))?;
        self.begin(header, composer, Watches::Stay)
    }

    fn begin(
        &mut self,
        header: &Header,
        composer: Composer,
        watches: Watches,
    ) -> Result<(), Failure> {
        let name = self.front.table.spec(header.command).name;
        let composed = composer.finish().map_err(|why| refusal(why, name));
        let composed =
            composed.and_then(|composed| match has_earlier(LETTERS, self.front.links()) {
                Some(why) => Err(why),
                None => Ok(composed),
            });
        let composed = composed.and_then(|composed| {
            let is_full = self.front.kernel.waiting_transactions() >= MOST_WAITING;
            if is_full {
                Err(FULL.into())
            } else {
                Ok(composed)
            }
        });
        let begun = composed.and_then(|(body, keys, plan)| {
            let reads = keys.values().all(|writes| !writes);
            let reads = reads && has_earlier(READS, self.front.links()).is_none();
            let kernel = &mut self.front.kernel;
            let begun = if reads {
                let keys = keys.keys().map(|key| &**key);
                kernel.begin_reading(self.now, header, keys, body)
            } else {
                let keys = keys.iter().map(|(key, writes)| (&**key, *writes));
                kernel.begin_transacting(Some(header), keys, body)
            };
            begun.then_some(plan).ok_or(NO_PART.into())
        });
        let plan = match begun {
            Ok(plan) => plan,
            Err(failure) => {
                self.drop_watches(watches);
                return Err(failure);
            }
        };
        let waiting = Waiting {
            header: *header,
            plan,
            since_us: self.since_us,
            watches,
        };
        let open = &mut self.front.transactions.apart;
        open.on_begun(waiting);
        Ok(())
    }
}

/// Outcomes.
impl Apart<'_> {
    /// A transaction over slots has ended.
    pub(crate) fn on_transacted(&mut self, transacted: &Transacted, fx: &mut Effects<Message>) {
        self.now = transacted.at;
        let open = &mut self.front.transactions.apart;
        let Some(waiting) = open.on_ended(self.now, &transacted.header) else {
            // Its client was told that the outcome is unknown.
            return;
        };
        if matches!(waiting.watches, Watches::Fetch { .. }) {
            return begun::on_fetched(self, waiting, transacted, fx);
        }
        let is_committed = transacted.is_committed == Some(true);
        let told = is_committed.then(|| body::told(&transacted.told)).flatten();
        let undone = told.as_deref().and_then(body::undone);
        if is_committed && undone.is_none() {
            self.select(transacted.header.conn, &waiting.watches);
        }
        let mut out = Output::default();
        let mut reply = Reply::new(&mut out, waiting.header.resp3);
        match transacted.is_committed {
            Some(true) if matches!(waiting.watches, Watches::Begin { .. }) => reply.ok(),
            Some(true) if undone.is_none() => {
                match told.and_then(|told| waiting.plan.reply(told)) {
                    Some(whole) => out = whole,
                    None => reply.error(&OTHER_VERSION.into()),
                }
            }
            Some(_) => match refused(undone.unwrap_or(&transacted.told)) {
                Some(why) if matches!(waiting.watches, Watches::End { .. }) => {
                    reply.error(&discarded(&why));
                }
                Some(why) => reply.error(&why),
                None => out.bytes.extend_from_slice(&transacted.told),
            },
            None => reply.error(&self.without_outcome(&waiting.header)),
        }
        if waiting.watches.are_of_commit() {
            let is_done = is_committed && undone.is_none();
            self.front.counters.on_transaction_ended(is_done);
        }
        self.end(waiting, &transacted.told, &out, fx);
    }

    fn end(&mut self, waiting: Waiting, told: &[u8], reply: &Output, fx: &mut Effects<Message>) {
        let header = waiting.header;
        self.settle_watches(header.conn, waiting.watches, told);
        self.front.deliver(header.conn, header.seq, reply, fx);
    }

    /// The reply to a command whose transaction has no outcome in time.
    fn without_outcome(&mut self, header: &Header) -> Failure {
        let spec = self.front.table.spec(header.command);
        let reads = spec.flags.has(Flags::READONLY);
        self.front.transactions.apart.without_outcome(reads)
    }

    /// Time has passed: clients of transactions without an outcome are told so.
    pub(crate) fn give_up(&mut self, fx: &mut Effects<Message>) {
        let late = self.front.transactions.apart.on_time(self.now);
        for waiting in late {
            if matches!(waiting.watches, Watches::Fetch { .. }) {
                let header = waiting.header;
                let unknown = Transacted {
                    header,
                    is_committed: None,
                    told: Default::default(),
                    at: self.now,
                };
                begun::on_fetched(self, waiting, &unknown, fx);
                continue;
            }
            let mut out = Output::default();
            let why = self.without_outcome(&waiting.header);
            Reply::new(&mut out, waiting.header.resp3).error(&why);
            self.end(waiting, &[], &out, fx);
        }
    }
}
