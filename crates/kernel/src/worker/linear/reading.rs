//! The worker's part in transactions that only read ([`super::reads`]): questions are sent and answered.

use super::keys::{Keys, bytes_of, is_free};
use super::letter::{Letter, Place};
use super::reads::{Next, Question, Read};
use super::running::Heads;
use super::typing::KeyOp;
use super::{Linear, Transacted};
use crate::batch::Header;
use crate::body::{self, Command, Commands, Deed};
use crate::program::Program;
use crate::worker::{Message as Between, Outcome as Result};
use rufous_base::slot::{slot_of, worker_of_slot};
use rufous_base::{Args, Now, Output, Until};
use rufous_linear::{Message, To, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The limit of what one worker tells. It is not kept, as what slots tell of transactions is.
const MOST_TOLD: usize = 64 << 20;

/// What a worker answers: see [`Message::Values`].
type Values = (Vec<u64>, Arc<[u8]>);

impl<P: Program> Heads<'_, P> {
    /// Begins a transaction of a client that only reads these keys; otherwise as [`Heads::begin`].
    pub(in crate::worker) fn begin_read<'k>(
        &mut self,
        now: Now,
        header: &Header,
        keys: impl Iterator<Item = &'k [u8]>,
        body: Vec<u8>,
    ) -> bool {
        let keys: BTreeSet<&[u8]> = keys.collect();
        let commands = Commands::read(&body).unwrap_or_default();
        let is_run = |command: &Command| matches!(command.deed, Deed::Run { .. });
        let asked = self.by_worker(&keys);
        let (Some(asked), true) = (asked, commands.all.iter().all(is_run)) else {
            return self.begin(Some(header), keys.into_iter().map(|key| (key, false)), body);
        };
        let Some(id) = self.member_id() else {
            return false;
        };
        let slots: BTreeSet<u16> = keys.iter().map(|key| slot_of(key)).collect();
        let linear = &mut self.worker.linear;
        linear.figures.begun += 1;
        linear.figures.slots += slots.len() as u64;
        let next = linear.reads.on_read(now, (id, *header), asked, body.into());
        self.go_on(now, next);
        true
    }

    /// The keys of each worker, by the first of its slots among them. `None`: a slot has no head now.
    fn by_worker(&self, keys: &BTreeSet<&[u8]>) -> Option<BTreeMap<u16, Vec<Arc<[u8]>>>> {
        let mapping = self.mapping()?;
        let mut firsts = BTreeMap::new();
        let mut asked = BTreeMap::<u16, Vec<Arc<[u8]>>>::new();
        for key in keys {
            let slot = slot_of(key);
            let head = mapping.chains.of(slot).head()?;
            let worker = mapping.members.get(&head)?.worker_of(slot);
            let first = *firsts.entry((head, worker)).or_insert(slot);
            asked.entry(first).or_default().push((*key).into());
        }
        Some(asked)
    }

    /// A worker has answered.
    pub(super) fn on_values(&mut self, now: Now, place: (TxnId, u16), values: Values) {
        let (seen, told) = values;
        let reads = &mut self.worker.linear.reads;
        if let Some(next) = reads.on_values(now, place, seen, told) {
            self.go_on(now, next);
        }
    }

    /// Reads go on that have paused, or have no answer.
    pub(super) fn look_after_reads(&mut self, now: Now) {
        while let Some(next) = self.worker.linear.reads.next_due(now) {
            self.go_on(now, next);
        }
    }

    /// Chains have changed: what is being read becomes transactions that take their keys.
    pub(super) fn take_all_read(&mut self) {
        for read in self.worker.linear.reads.take_all() {
            self.take_read(read);
        }
    }

    fn go_on(&mut self, now: Now, next: Next) {
        match next {
            Next::Ask(txn, body, questions) => {
                self.worker.linear.figures.read_rounds += 1;
                for question in questions {
                    self.ask(txn, &body, question);
                }
            }
            Next::Done(header, told) => {
                self.worker.linear.figures.committed += 1;
                self.worker.linear.figures.read += 1;
                let transacted = Transacted {
                    header,
                    is_committed: Some(true),
                    told,
                    at: now,
                };
                let result = Result::Transacted(Box::new(transacted));
                self.worker.out.outcomes.push_back(result);
            }
            Next::Take(read) => self.take_read(read),
        }
    }

    fn ask(&mut self, txn: TxnId, body: &Arc<[u8]>, question: Question) {
        let Question { slot, keys, known } = question;
        let body = Arc::clone(body);
        let message = Message::Read {
            txn,
            keys,
            known,
            body,
        };
        if let Some(letter) = self.letter(Place::Origin, To::Slot(slot), message) {
            self.post(letter);
        }
    }

    fn take_read(&mut self, read: Read) {
        self.worker.linear.figures.read_taken += 1;
        let keys = read.parts.values().flat_map(|part| part.keys.iter());
        let keys = keys.map(|key| (&**key, false));
        match self.transaction(keys, read.body) {
            Some(txn) => self.submit((Some(read.header), 0), txn),
            None => {
                // This node has left the cluster.
                let lost = Linear::lost(read.header);
                let lost = Result::Transacted(Box::new(lost));
                self.worker.out.outcomes.push_back(lost);
            }
        }
    }

    /// Answers a question for keys of this worker, the first of them in this slot.
    pub(super) fn on_read(&mut self, now: Now, from: Place, question: Message<KeyOp>) {
        let Message::Read {
            txn,
            keys,
            known,
            body,
        } = question
        else {
            return;
        };
        let values = self.values(now, (txn, &body), &keys, &known);
        let is_busy = values.is_none();
        let (seen, told) = values.unwrap_or_default();
        let message = Message::Values { txn, seen, told };
        let to = Place::Origin;
        let letter = Letter { from, to, message };
        if is_busy {
            return self.post(letter);
        }
        let slots: BTreeSet<u16> = keys.iter().map(|key| slot_of(key)).collect();
        let slots: Vec<u16> = slots.into_iter().collect();
        let post = Between::Post(Box::new(letter));
        self.worker
            .send_after(now, &slots, self.worker.id, (Until::Logged, post));
    }

    /// The epoch since which the chain of a key's slot is unchanged, if the key may be read now as a transaction would.
    fn since_of_read(&self, now: Now, slot: u16, key: &[u8]) -> Option<u64> {
        let worker = &self.worker;
        let is_here = worker_of_slot(slot, worker.placement.workers()) == worker.id;
        let is_strict = worker.placement.lattice(key).is_none();
        let since = worker.chains.as_ref()?.takes_since(now, slot)?;
        let is_free = is_free(worker, key) && !worker.linear.takes(key);
        (is_here && is_strict && is_free).then_some(since)
    }

    /// The values of keys, all at this instant, unless they are those that are known. `None`: they cannot be read now.
    fn values(
        &mut self,
        now: Now,
        (txn, body): (TxnId, &[u8]),
        keys: &[Arc<[u8]>],
        known: &[u64],
    ) -> Option<Values> {
        let mut slots = BTreeMap::new();
        for key in keys {
            let slot = slot_of(key);
            slots.insert(slot, self.since_of_read(now, slot, key)?);
        }
        let commands = self.worker.linear.commands(txn, body)?;
        let here = commands.all.iter();
        let here: Vec<&Command> = here.filter(|one| slots.contains_key(&one.slot)).collect();
        self.expire(now, keys, &here);
        let mut seen = vec![self.worker.chains.as_ref()?.incarnation()];
        seen.extend(slots.values());
        for key in keys {
            let key = self.worker.shard.key(key);
            seen.push(self.worker.shard.observers_mut().version(key));
        }
        let told = if seen == known {
            Arc::default()
        } else {
            self.tell(now, body, &slots, &here)?
        };
        Some((seen, told))
    }

    /// Removes those of the keys that have expired: without that, they would not be seen to have changed.
    fn expire(&mut self, now: Now, keys: &[Arc<[u8]>], commands: &[&Command]) {
        let dbs: BTreeSet<(u16, u8)> = commands.iter().map(|one| (one.slot, one.db)).collect();
        for key in keys {
            let slot = slot_of(key);
            for (_, db) in dbs.range((slot, 0)..=(slot, u8::MAX)) {
                let key = self.worker.shard.key(key);
                let _exists = self.worker.shard.contains(usize::from(*db), key, now);
            }
        }
    }

    /// Executes commands that read, and tells their replies. `None`: one does something else, or may not run now, or its
    /// reply is too long.
    fn tell(
        &mut self,
        now: Now,
        body: &[u8],
        slots: &BTreeMap<u16, u64>,
        commands: &[&Command],
    ) -> Option<Arc<[u8]>> {
        let mut replies: BTreeMap<u16, Vec<Vec<u8>>> =
            slots.keys().map(|slot| (*slot, Vec::new())).collect();
        let mut room = MOST_TOLD;
        for command in commands {
            let since = *slots.get(&command.slot)?;
            let keys = Keys {
                worker: self.worker,
                now,
                since,
            };
            let reply = keys.read(body, command, room)?;
            room -= reply.len();
            replies.entry(command.slot).or_default().push(reply);
        }
        let each = replies.iter();
        let each = each.map(|(slot, replies)| body::tell(*slot, replies, &BTreeMap::new()));
        Some(each.flatten().collect())
    }
}

impl<P: Program> Keys<'_, P> {
    /// The reply to a command that reads; `None`: it does something else, may not run now, or the reply has more than that.
    fn read(self, body: &[u8], command: &Command, most: usize) -> Option<Vec<u8>> {
        let header = self
            .header(body, command)
            .filter(|header| !P::is_write(header.command))?;
        let mut out = Output::default();
        if !self.worker.may_run(self.now, &header, &mut out) {
            return None;
        }
        let args = Args::new(body, command.words.get(1..)?, &mut []);
        self.worker.run_through(self.now, &header, args, &mut out);
        bytes_of(&out, most)
    }
}
