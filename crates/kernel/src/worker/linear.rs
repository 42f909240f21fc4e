//! Linear transactions at a worker ([`rufous_linear`] has the protocol): the heads of its slots that have transactions,
//! and the transactions of its own clients.
//!
//! A slot's book is kept with its keys, in a database of the shard that clients do not see: so its chain, log and
//! snapshots have it, and whichever node becomes the head goes on from it. A message of a head leaves when the copies
//! and the log have what the head has recorded, as a reply does.
//!
//! A key of a transaction that is prepared is taken: other requests for it wait as for a slot that is not served
//! ([`super::parking`]), and hold nothing meanwhile. Other transactions may have it, too, if they are independent of all
//! that have it (`typing`). A transaction, the other way round, is not prepared before commands over several workers let
//! go of its keys, and before requests have run that wait for one of them and for no other slot. The former never wait for
//! a transaction while they hold keys, and the latter wait for what is prepared at the same slot alone, so that nothing
//! waits in a circle.
//!
//! Invariants:
//! 1. A head acts only while this node serves its slot, and is made of the book again when the slot's chain has changed.
//! 2. While a slot's book is not empty, this node answers no reads of it as a mere copy: the head may have prepared what
//!    has been applied elsewhere.
//! 3. Messages may be lost. Heads and origins send them again from time to time, as long as a transaction is not over.
//!
//! `own` has the transactions of the worker's clients, `entries` what the shard has of books, `losses` how slots that may have lost the
//! ends of their logs learn what others have of them, `starting` how heads begin, `synced` what waits until logs are synced, `watchers` keys that clients watch, `reads` those that only read, as a machine, and `reading` the
//! worker's part in them, `letter` the messages with their senders and receivers, `keys` how a slot executes its commands,
//! `typing` what these say of its keys, `together` how one slot executes commands on the keys of several, and `running` the
//! worker's part.

mod again;
mod entries;
mod figures;
mod keys;
mod letter;
mod losses;
mod own;
mod reading;
mod reads;
mod running;
mod starting;
mod synced;
#[cfg(test)]
mod tests;
mod together;
mod typing;
mod watchers;

pub(super) use entries::mark_loss;
pub use figures::LinearFigures;
pub use letter::{Letter, Place, Posted};
pub(super) use running::Heads;
pub(super) use starting::Starts;
pub(super) use together::are_of;

use crate::batch::Header;
use crate::body::Commands;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::shard::{Shard, WatchId};
use again::At;
use entries::{is_marked, read_entry};
use letter::worker_of;
use rufous_base::Now;
use rufous_base::slot::slot_of;
use rufous_linear::stored::Stored;
use rufous_linear::{Ahead, Book, Entry, Head, Origin, Record, Survey, Transaction, TxnId};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use typing::KeyOp;
use watchers::Watcher;

/// Messages about entries with more bytes are sent again this late for the first time: copies of them would keep nodes
/// from the messages themselves.
const LARGE: usize = 256 << 10;

/// The pause of a transaction that would have waited for one that visits slots in another order; then twice as long each
/// time, up to 64 times. After so many times, about eight seconds, it is given up.
const REORDER_US: u64 = 3_000;
const REORDERS: u32 = 45;

/// A slot that this node heads, with transactions.
#[derive(Debug)]
struct Seat {
    /// The epoch since which its chain is unchanged.
    since: u64,
    head: Head<KeyOp>,
    /// What the shard has of its book.
    stored: Stored<KeyOp>,
    /// It has served, and gone on from its book.
    is_started: bool,
}

impl Seat {
    /// Whether what it sends again would keep others from answering: they have much to do.
    fn is_patient(&self) -> bool {
        let entries = self.head.book().iter();
        entries.map(|(_, entry)| entry.bytes()).sum::<usize>() > LARGE
    }
}

/// A client of this worker whose transaction has no outcome yet.
#[derive(Debug)]
struct Client {
    /// `None`: no client waits for the outcome.
    header: Option<Header>,
    /// The body has more than [`LARGE`] bytes.
    is_large: bool,
    /// How often it was begun again.
    tries: u32,
}

/// A transaction that is begun again after a pause.
#[derive(Debug)]
struct Again {
    header: Option<Header>,
    tries: u32,
    txn: Arc<Transaction<KeyOp>>,
}

/// How a transaction of a client has ended.
#[derive(Clone, Debug)]
pub struct Transacted {
    pub header: Header,
    /// `None`: it is not known.
    pub is_committed: Option<bool>,
    /// What its slots have told ([`crate::body::told`]), or the client's reply where it was aborted.
    pub told: Arc<[u8]>,
    /// When that was known; zero: the node stops.
    pub at: Now,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Linear {
    seats: BTreeMap<u16, Seat>,
    /// Slots whose books are not empty and have no head here: this node has mere copies of them, or does not answer for
    /// them yet.
    open: BTreeSet<u16>,
    /// Slots that this node heads, with books, whose heads have not begun and do not wait for a survey.
    pending: BTreeSet<u16>,
    looks: starting::Looks,
    /// Slots that this node heads, and whose books say that they may have lost something.
    lossy: BTreeSet<u16>,
    survey: Survey<KeyOp>,
    /// Nodes with earlier programs, which have no part in transactions over slots.
    without: BTreeSet<NodeNo>,
    /// Slots with transactions that wait for keys.
    queued: BTreeSet<u16>,
    /// The node's number and start.
    own: Option<(NodeNo, u64)>,
    origin: Option<Origin<KeyOp>>,
    clients: BTreeMap<TxnId, Client>,
    /// Transactions that would have waited for ones of another order, by when they are begun again.
    again: BTreeMap<(u64, TxnId), Again>,
    /// Those that only read, and take no keys.
    reads: reads::Reads,
    /// Letters for heads and origins of this worker.
    inbox: VecDeque<(NodeNo, Letter)>,
    /// What heads have put out for the heads of other slots, if these are here.
    beside: VecDeque<(u16, Ahead<KeyOp>)>,
    /// The commands of the transaction that a slot has looked at last.
    read: Option<(TxnId, Arc<Commands>)>,
    posted: Vec<Posted>,
    /// Letters that wait until the log is synced.
    unsynced: synced::Unsynced,
    /// Commands over several workers have let go of keys.
    is_freed: bool,
    /// When messages are sent again, and when of transactions that wait for nothing but synced logs.
    sending: again::Again,
    ending: again::Again,
    /// Watchers of keys here, of clients of nodes that had to ask for that.
    watchers: BTreeMap<WatchId, Watcher>,
    figures: LinearFigures,
}

impl Linear {
    /// Whether there is nothing to do, now or at a later time.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        let has_all = self.seats.is_empty() && self.lossy.is_empty();
        let is_quiet = has_all && self.clients.is_empty();
        is_quiet && self.open.is_empty() && self.again.is_empty() && self.reads.is_empty()
    }

    /// Whether a request for a key has to wait for a transaction.
    #[inline]
    pub(super) fn takes(&self, key: &[u8]) -> bool {
        !(self.seats.is_empty() && self.open.is_empty()) && self.has_prepared(key)
    }

    #[cold]
    fn has_prepared(&self, key: &[u8]) -> bool {
        let slot = slot_of(key);
        let seat = self.seats.get(&slot);
        let holds = seat.is_some_and(|seat| seat.head.holds(key));
        let is_open = self.open.contains(&slot);
        holds && !planted::is(Planted::KeysNotTaken)
            || is_open && !planted::is(Planted::CopiesNotClosed)
    }

    /// A letter of a worker, to be read when everything before it has had its effects.
    pub(super) fn on_letter(&mut self, from: NodeNo, letter: Letter) {
        self.inbox.push_back((from, letter));
    }

    /// Commands over several workers have let go of keys, or requests wait no more.
    #[inline]
    pub(super) fn on_freed(&mut self) {
        self.is_freed |= !self.queued.is_empty();
    }

    /// A chain has brought something of a slot: whether its book is empty decides which node answers.
    pub(super) fn on_copied(&mut self, slot: u16, is_head: bool, shard: &Shard) {
        if shard.books_in(slot) == 0 {
            self.open.remove(&slot);
            self.pending.remove(&slot);
        } else if !self.seats.contains_key(&slot) {
            self.open.insert(slot);
            let may_begin = is_head && !self.awaits_survey(slot);
            self.pending.extend(may_begin.then_some(slot));
        }
    }

    /// A mapping was applied. `is_head`: whether this node, which has this number and this start, heads a slot in it.
    /// Returns the clients whose transactions will have no answer.
    pub(super) fn on_mapping(
        &mut self,
        mapping: &Mapping,
        (own, incarnation): (NodeNo, u64),
        is_head: impl Fn(u16) -> bool,
        shard: &Shard,
    ) -> Vec<Transacted> {
        self.on_change();
        let since = |slot| mapping.chains.of(slot).since;
        let headed = |slot| is_head(slot).then(|| since(slot));
        self.survey.on_mapping(losses::lost_in(mapping), &is_head);
        self.seats
            .retain(|slot, seat| headed(*slot) == Some(seat.since));
        self.queued.retain(|slot| self.seats.contains_key(slot));
        let with_books = shard.slots_with_books();
        let lossy = with_books.iter().copied();
        let lossy = lossy.filter(|slot| is_head(*slot) && is_marked(*slot, shard));
        self.lossy = lossy.collect();
        self.open = with_books;
        self.open.retain(|slot| !self.seats.contains_key(slot));
        let made = self.seats.iter().filter(|(_, seat)| !seat.is_started);
        let made = made.map(|(slot, _)| *slot);
        let open = self.open.iter().copied();
        let may_begin = |slot: &u16| is_head(*slot) && !self.awaits_survey(*slot);
        self.pending = open.filter(may_begin).chain(made).collect();
        if self.own == Some((own, incarnation)) {
            return Vec::new();
        }
        self.own = Some((own, incarnation));
        let origin = Origin::new(own.0, incarnation);
        self.origin = Some(origin);
        self.give_up()
    }

    /// A transaction is begun again after a while, by when the other one may be over. False if that was done too often, and
    /// a client waits.
    fn begin_later(&mut self, now: Now, client: &Client, txn: &Arc<Transaction<KeyOp>>) -> bool {
        let tries = client.tries + 1;
        if tries > REORDERS && client.header.is_some() {
            return false;
        }
        self.figures.reordered += 1;
        let due_us = now.mono_us + (REORDER_US << client.tries.min(6));
        let again = Again {
            header: client.header,
            tries,
            txn: Arc::clone(txn),
        };
        self.again.insert((due_us, txn.id), again);
        true
    }

    fn next_again(&mut self, now: Now) -> Option<Again> {
        let next = self.again.first_entry()?;
        let (due_us, _) = *next.key();
        (due_us <= now.mono_us).then(|| next.remove())
    }

    /// The outcome of all that waits is unknown.
    pub(super) fn give_up(&mut self) -> Vec<Transacted> {
        let clients = std::mem::take(&mut self.clients).into_values();
        let clients = clients.map(|client| client.header);
        let again = std::mem::take(&mut self.again).into_values();
        let again = again.map(|again| again.header);
        let reads = self.reads.take_all().into_iter();
        let reads = reads.map(|read| Some(read.header));
        let headers = clients.chain(again).chain(reads).flatten();
        headers.map(Self::lost).collect()
    }

    /// The end of a transaction whose outcome is not known.
    fn lost(header: Header) -> Transacted {
        Transacted {
            header,
            is_committed: None,
            told: Arc::default(),
            at: Now::default(),
        }
    }

    /// This node answers for these slots now: their heads are made of their books, in one walk over all entries. They have not
    /// begun yet.
    fn load<P: Program>(&mut self, now: Now, slots: &BTreeMap<u16, u64>, shard: &Shard) {
        let mut books = BTreeMap::<u16, Vec<(TxnId, Entry<KeyOp>)>>::new();
        for (slot, id, bytes) in shard.books() {
            if slots.contains_key(&slot) && !planted::is(Planted::BookNotRead) {
                let entries = books.entry(slot).or_default();
                entries.extend(read_entry(&id, bytes));
            }
        }
        for (slot, since) in slots {
            self.open.remove(slot);
            let entries = books.remove(slot).unwrap_or_default().into_iter();
            let entries = entries.map(|(id, entry)| (id, self.typed_entry::<P>(now, entry)));
            let mut book = Book::restore(*slot, entries);
            if self.lossy.contains(slot) {
                book.on_record(Record::Lost);
            }
            let seat = Seat {
                since: *since,
                stored: Stored::of(&book),
                head: head(book),
                is_started: false,
            };
            self.seats.insert(*slot, seat);
        }
    }

    /// Takes out the head of a slot that this node serves, to act.
    fn take_seat(&mut self, slot: u16, since: u64) -> Seat {
        let seat = self.seats.remove(&slot);
        seat.unwrap_or_else(|| Seat {
            since,
            head: head(Book::new(slot)),
            stored: Stored::of(&Book::new(slot)),
            is_started: true,
        })
    }

    /// The head of a slot has acted.
    fn put_seat(&mut self, slot: u16, seat: Seat) {
        if seat.head.waiting() > 0 {
            self.queued.insert(slot);
        } else if !self.queued.is_empty() {
            self.queued.remove(&slot);
        }
        if !seat.head.is_idle() {
            self.seats.insert(slot, seat);
        }
    }

    /// Slots that are closed until they have what they may have lost.
    pub(super) fn recovering(&self) -> impl Iterator<Item = u16> {
        let is_closed = |slot: &u16| !self.seats.contains_key(slot);
        self.lossy.iter().copied().filter(is_closed)
    }

    /// Whether a slot may have lost something, and others have not told yet what they have.
    #[inline]
    fn awaits_survey(&self, slot: u16) -> bool {
        let is_closed = self.lossy.contains(&slot) && !self.seats.contains_key(&slot);
        is_closed && !self.survey.knows(slot)
    }

    /// The commands of a transaction; `None`: they cannot be read. Those that were looked at last are kept.
    fn commands(&mut self, id: TxnId, body: &[u8]) -> Option<Arc<Commands>> {
        if let Some((_, commands)) = self.read.as_ref().filter(|(of, _)| *of == id) {
            return Some(Arc::clone(commands));
        }
        let commands = Arc::new(Commands::read(body)?);
        self.read = Some((id, Arc::clone(&commands)));
        Some(commands)
    }

    /// Whether a transaction came from this start of the node.
    fn is_own(&self, txn: TxnId) -> bool {
        self.own == Some((NodeNo(txn.node), txn.start))
    }

    /// Messages for workers of other nodes.
    pub(super) fn take_posted(&mut self) -> Vec<Posted> {
        std::mem::take(&mut self.posted)
    }

    /// Transactions of this worker's clients without an outcome.
    pub(super) fn waiting(&self) -> usize {
        self.clients.len() + self.again.len() + self.reads.len()
    }

    /// These nodes have earlier programs, without transactions over slots.
    pub(super) fn on_without(&mut self, nodes: BTreeSet<NodeNo>) {
        self.without = nodes;
    }

    /// When there is something to do.
    pub(super) fn wake_us(&self) -> Option<u64> {
        if !self.inbox.is_empty() || self.is_freed {
            return Some(0);
        }
        let looks = !(self.seats.is_empty() && self.clients.is_empty() && self.lossy.is_empty());
        let again = self.again.keys().next().map(|(due_us, _)| *due_us);
        again
            .into_iter()
            .chain(looks.then_some(self.sending.look_us()))
            .chain(self.looks.wake_us())
            .chain(self.reads.wake_us())
            .min()
    }

    /// Chains or sessions have changed: something may be lost.
    pub(super) fn on_change(&mut self) {
        self.sending.on_change();
        self.ending.on_change();
    }

    /// What is to send again. `awaits_sync`: what has ended is open until logs are synced.
    fn due(&mut self, now: Now, awaits_sync: bool) -> Vec<At> {
        let (seats, clients) = (&self.seats, &self.clients);
        let at_slots = |ended: bool| {
            let seats = seats.iter();
            seats.flat_map(move |(slot, seat)| {
                let open = seat.head.open();
                let all = open.filter(move |(_, over)| (*over && awaits_sync) == ended);
                all.map(|(id, _)| (At::Slot(*slot), id))
            })
        };
        let is_large = |at| match at {
            At::Slot(slot) => seats.get(&slot).is_some_and(Seat::is_patient),
            At::Client(id) => clients.get(&id).is_some_and(|client| client.is_large),
        };
        let of_clients = clients.keys().map(|id| (At::Client(*id), *id));
        let open = at_slots(false).chain(of_clients).collect();
        let mut due = self.sending.due(now, open, is_large);
        if self.ending.is_due_after(now, again::AGAIN_LAST_US) {
            let ended = at_slots(true).collect();
            due.extend(self.ending.due(now, ended, is_large));
        }
        due
    }

    pub(super) fn on_joined(&mut self, writes: usize) {
        self.figures.joined += writes as u64;
    }

    /// The counters.
    pub(super) fn figures(&self) -> LinearFigures {
        let open = self
            .seats
            .values()
            .map(|seat| seat.head.book().iter().count());
        LinearFigures {
            waiting: self.waiting() as u64,
            prepared: open.sum::<usize>() as u64,
            recovering: self.recovering().count() as u64,
            ..self.figures
        }
    }
}

/// Whether a transaction came from this worker of its node.
fn is_from(txn: TxnId, worker: u16) -> bool {
    worker_of(txn) == worker
}

/// Requests that are no transactions see keys, too.
fn head(book: Book<KeyOp>) -> Head<KeyOp> {
    if planted::is(Planted::DependentOrdered) {
        return Head::new(book);
    }
    Head::apart(book)
}
