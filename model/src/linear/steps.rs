//! What each action does.

use super::ops;
use super::world::{Action, Client, End, Seen, World};
use rufous_base::rng::Rng;
use rufous_linear::{Message, Origin, Outcome, Output, State, To, Transaction};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Outputs = Vec<Output<ops::Op>>;

impl World {
    pub fn act(&mut self, action: Action) -> Result<(), String> {
        self.steps += 1;
        match action {
            Action::Submit => self.submit(),
            Action::Deliver(from, to) => return self.deliver(from, to),
            Action::Copy(no) => {
                let always = self.bounds.always;
                let slot = self.slot(no);
                slot.copy();
                if always {
                    slot.sync();
                }
                self.leave(no);
            }
            Action::Sync(no) => {
                self.slot(no).sync();
                self.leave(no);
            }
            Action::Head(no, lost) => {
                self.left.heads -= 1;
                self.begin(no, lost, false);
            }
            Action::Break(a, b) => {
                self.left.links -= 1;
                self.links.remove(&(a, b));
                self.links.remove(&(b, a));
                self.join(a, b);
            }
            Action::Origin(no) => {
                self.left.ends -= 1;
                self.end(no);
            }
            Action::Stop(seed) => {
                self.left.stops -= 1;
                self.stop(seed);
            }
            Action::Loss(no, lost) => {
                self.left.losses -= 1;
                self.has_lost |= lost > 0 && !self.bounds.always;
                self.begin(no, lost, true);
            }
            Action::Resend(here, there) => {
                self.left.resends -= 1;
                self.resend(here, there);
            }
            Action::Miss(from, to, at) => {
                self.left.misses -= 1;
                if let Some(queue) = self.links.get_mut(&(from, to)) {
                    queue.remove(at);
                }
            }
            Action::Take(no, key) => {
                self.left.busy -= 1;
                self.take_key(no, key);
            }
            Action::Free(no) => {
                let slot = self.slot(no);
                slot.keys.busy.pop_first();
                let mut out = Vec::new();
                if !slot.closed {
                    slot.head.on_free(&mut slot.keys, &mut out);
                }
                self.put(no, out);
            }
            Action::Request(no, key) => self.request(no, key),
            Action::Round => self.round(),
        }
        self.run_requests();
        Ok(())
    }

    /// A request reads a key, or waits for it if transactions have it.
    fn request(&mut self, no: u16, key: u16) {
        self.left.requests -= 1;
        let name = ops::name(key, self.bounds.typed);
        let steps = self.steps;
        self.slot(no).keys.awaited.entry(name).or_insert(steps);
    }

    /// Requests run whose keys no transaction has any more. What they read is told when it is kept: so they run then.
    fn run_requests(&mut self) {
        for no in 0..self.bounds.slots {
            let ended = self.steps;
            let slot = self.slot(no);
            let may_run = slot.is_idle() && !slot.lacks_sync() && !slot.closed;
            let waits = |key: &[u8]| !may_run || slot.head.holds(key);
            let waiting = std::mem::take(&mut slot.keys.awaited).into_iter();
            let (stay, run): (BTreeMap<_, _>, BTreeMap<_, _>) =
                waiting.partition(|(key, _)| waits(key));
            slot.keys.awaited = stay;
            if run.is_empty() {
                continue;
            }
            let done = |key: &[u8]| slot.keys.all.get(key).map_or(0, |key| key.done.len());
            let seen = run.into_iter().map(|(key, began)| Seen {
                slot: no,
                after: done(&key),
                key,
                began,
                ended,
            });
            let seen: Vec<Seen> = seen.collect();
            let mut out = Vec::new();
            slot.head.on_free(&mut slot.keys, &mut out);
            self.seen.extend(seen);
            self.put(no, out);
        }
    }

    /// Something else takes a key, unless a transaction holds it.
    fn take_key(&mut self, no: u16, key: u16) {
        let name = ops::name(key, self.bounds.typed);
        let slot = self.slot(no);
        if !slot.head.holds(&name) && !slot.closed {
            slot.keys.busy.insert(name);
        }
    }

    /// What each may lack is sent again by all that know of something.
    fn round(&mut self) {
        self.rounds += 1;
        for no in 0..self.bounds.slots {
            let slot = &self.slots[usize::from(no)];
            let (mut peers, origins) = (slot.head.peers(), slot.head.origins());
            peers.extend(slot.survey.awaited());
            for peer in peers {
                self.resend(End::Slot(no), End::Slot(peer));
            }
            for (node, _) in origins {
                self.resend(End::Slot(no), End::Origin(node));
            }
        }
        for node in 0..self.bounds.origins {
            for slot in 0..self.bounds.slots {
                self.resend(End::Origin(node), End::Slot(slot));
            }
        }
    }

    pub(super) fn slot(&mut self, no: u16) -> &mut super::slot::Slot {
        &mut self.slots[usize::from(no)]
    }

    fn submit(&mut self) {
        let Some((node, plans)) = self.plans.pop_front() else {
            return;
        };
        let count = self.bounds.slots;
        let mut shown = BTreeMap::new();
        let parts = plans.into_iter().map(|plan| {
            let (slot, name) = (plan.slot(count), plan.name());
            let keys = &self.slots[usize::from(slot)].keys;
            let observes = plan.observes && plan.typed;
            let part = plan.part(slot, keys.version(&name));
            if observes {
                let replies = ops::execute(&mut keys.typed(&name), &part);
                shown.insert(name, replies);
            }
            part
        });
        let parts = parts.collect();
        let (_, origin) = &mut self.origins[usize::from(node)];
        let Some(txn) = Transaction::new(origin.next_id(), parts, Arc::default()) else {
            return;
        };
        let txn = match txn.id.number % 4 {
            // By now another order may be in use.
            0 if self.bounds.orders => txn.ordered(1, |slot| u16::MAX - slot),
            _ => txn,
        };
        let txn = Arc::new(txn);
        let client = Client {
            txn: Arc::clone(&txn),
            began: self.steps,
            ended: None,
            shown,
            told: Arc::default(),
        };
        self.clients.insert(txn.id, client);
        let mut out = Vec::new();
        origin.on_submit(txn, &mut out);
        self.send_of(node, out);
    }

    /// Messages of an origin are sent at once.
    fn send_of(&mut self, node: u16, out: Outputs) {
        for output in out {
            if let Output::Send(To::Slot(slot), message) = output {
                self.send(End::Origin(node), End::Slot(slot), message);
            }
        }
    }

    pub(super) fn send(&mut self, from: End, to: End, message: Message<ops::Op>) {
        self.links.entry((from, to)).or_default().push_back(message);
    }

    /// Takes what the head of a slot has put out.
    pub(super) fn put(&mut self, no: u16, out: Outputs) {
        let beside = self.slot(no).take(out);
        self.leave(no);
        for (other, ahead) in beside {
            if self.workers[usize::from(no)] == self.workers[usize::from(other)] {
                let mut out = Vec::new();
                let slot = self.slot(other);
                if !slot.closed {
                    slot.head.on_ahead(ahead, &mut slot.keys, &mut out);
                }
                self.put(other, out);
            }
        }
    }

    fn leave(&mut self, no: u16) {
        for (to, message) in self.slot(no).leaving() {
            let to = match to {
                To::Slot(slot) => End::Slot(slot),
                To::Origin { node, start } => {
                    if self.origins[usize::from(node)].0 != start {
                        continue;
                    }
                    End::Origin(node)
                }
            };
            self.send(End::Slot(no), to, message);
        }
    }

    fn deliver(&mut self, from: End, to: End) -> Result<(), String> {
        let queue = self.links.get_mut(&(from, to));
        let Some(message) = queue.and_then(std::collections::VecDeque::pop_front) else {
            return Ok(());
        };
        match (to, from) {
            (End::Slot(no), from) => {
                let from = match from {
                    End::Slot(from) => Some(from),
                    End::Origin(_) => None,
                };
                self.receive(no, from, message);
                Ok(())
            }
            (End::Origin(node), End::Slot(slot)) => {
                let Message::Outcome { txn, outcome, told } = message else {
                    return Err("an origin was sent something else than an outcome".into());
                };
                let mut out = Vec::new();
                let (_, origin) = &mut self.origins[usize::from(node)];
                let ended = origin.on_outcome((txn, outcome, told), slot, &mut out);
                self.send_of(node, out);
                self.tell(txn, ended.map(|ended| (ended.outcome, ended.told)))
            }
            (End::Origin(_), End::Origin(_)) => Ok(()),
        }
    }

    fn tell(
        &mut self,
        txn: rufous_linear::TxnId,
        told: Option<(Outcome, Arc<[u8]>)>,
    ) -> Result<(), String> {
        let steps = self.steps;
        let Some(client) = self.clients.get_mut(&txn) else {
            return Err(format!("the outcome of no transaction: {txn:?}"));
        };
        match (told, client.ended) {
            (Some((outcome, told)), None) => {
                client.ended = Some((steps, outcome));
                client.told = told;
            }
            (Some(_), Some(_)) => return Err(format!("told twice: {txn:?}")),
            (None, _) => {}
        }
        Ok(())
    }

    /// A head takes over, without the last records.
    fn begin(&mut self, no: u16, lost: usize, lossy: bool) {
        self.slot(no).lose(lost);
        if self.bounds.beside {
            self.workers[usize::from(no)] = lost as u64 % 2;
        }
        if self.bounds.unnoticed && !lossy {
            self.cut(End::Slot(no));
            return self.start(no, lossy);
        }
        self.links
            .retain(|(from, to), _| *from != End::Slot(no) && *to != End::Slot(no));
        self.lost += u64::from(lossy);
        self.start(no, lossy);
        self.survey_again(no);
        let others: Vec<End> = self.ends().filter(|end| *end != End::Slot(no)).collect();
        for other in others {
            self.join(End::Slot(no), other);
        }
    }

    /// Another one stands at this end: what was sent to the one before is refused, and of what that one had sent, a part
    /// arrives.
    fn cut(&mut self, end: End) {
        self.links.retain(|(_, to), _| *to != end);
        let part = self.steps % 3;
        for ((from, _), queue) in &mut self.links {
            if *from == end {
                queue.truncate(queue.len() * part / 2);
            }
        }
    }

    pub(super) fn ends(&self) -> impl Iterator<Item = End> + use<> {
        let slots = (0..self.slots.len()).map(|no| End::Slot(no as u16));
        slots.chain((0..self.origins.len()).map(|no| End::Origin(no as u16)))
    }

    fn start(&mut self, no: u16, lossy: bool) {
        self.has_restarted_lossy |= lossy;
        let slot = self.slot(no);
        if lossy {
            let mut out = Vec::new();
            // Each copy knows of its own start that it is one.
            slot.head.on_loss(&mut out);
            slot.take(out);
            slot.copy();
        }
        slot.closed = slot.head.book().is_lost();
        if slot.closed {
            let is_same = !lossy && self.steps.is_multiple_of(2);
            return self.survey(no, is_same);
        }
        let mut out = Vec::new();
        slot.head.on_start(&mut slot.keys, &mut out);
        self.tell_starts(no, &mut out);
        self.put(no, out);
    }

    /// A head that begins hears which starts nodes run.
    pub(super) fn tell_starts(&mut self, no: u16, out: &mut Outputs) {
        let starts: Vec<u64> = self.origins.iter().map(|(start, _)| *start).collect();
        for (node, start) in (0u16..).zip(starts) {
            self.slot(no).head.on_origin_start((node, start), out);
        }
    }

    /// Another link begins.
    fn join(&mut self, a: End, b: End) {
        self.resend(a, b);
        self.resend(b, a);
    }

    /// One end sends what the other one may lack.
    fn resend(&mut self, here: End, there: End) {
        let mut out = Vec::new();
        match (here, there) {
            (End::Slot(no), End::Slot(peer)) if self.slot(no).closed => self.ask(no, Some(peer)),
            (End::Slot(no), End::Origin(_)) if self.slot(no).closed => {}
            (End::Slot(no), End::Slot(peer)) => {
                self.slot(no).head.on_link(peer, &mut out);
                self.put(no, out);
            }
            (End::Slot(no), End::Origin(node)) => {
                let start = self.origins[usize::from(node)].0;
                if self.bounds.unnoticed {
                    self.notice(no, (node, start));
                }
                self.slot(no).head.on_origin_link((node, start), &mut out);
                self.put(no, out);
            }
            (End::Origin(node), End::Slot(slot)) => {
                self.origins[usize::from(node)].1.on_link(slot, &mut out);
                self.send_of(node, out);
            }
            (End::Origin(_), End::Origin(_)) => {}
        }
    }

    /// An origin ends, and starts again without what it knew.
    fn end(&mut self, no: u16) {
        let (start, origin) = &mut self.origins[usize::from(no)];
        *start += 1;
        *origin = Origin::new(no, *start);
        let start = *start;
        if self.bounds.unnoticed {
            return self.cut(End::Origin(no));
        }
        self.links
            .retain(|(from, to), _| *from != End::Origin(no) && *to != End::Origin(no));
        for slot in 0..self.bounds.slots {
            let mut out = Vec::new();
            if !self.slot(slot).closed {
                self.slot(slot).head.on_origin_start((no, start), &mut out);
            }
            self.put(slot, out);
        }
    }

    /// A slot hears which start a node runs: it refuses what an earlier one has sent.
    fn notice(&mut self, slot: u16, (node, start): (u16, u64)) {
        let ends = (End::Origin(node), End::Slot(slot));
        if let Some(queue) = self.links.get_mut(&ends) {
            queue.retain(|message| match message {
                Message::Forward { txn, .. } => txn.id.start == start,
                Message::Heard { txn } => txn.start == start,
                _ => true,
            });
        }
        let mut out = Vec::new();
        self.slot(slot)
            .head
            .on_origin_start((node, start), &mut out);
        self.put(slot, out);
    }

    /// Everything stops, and each slot loses what its logs had not synced, or a part of it.
    fn stop(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.links.clear();
        for (no, (start, origin)) in (0u16..).zip(&mut self.origins) {
            *start += 1;
            *origin = Origin::new(no, *start);
        }
        let always = self.bounds.always;
        for no in 0..self.bounds.slots {
            let slot = self.slot(no);
            let lost = rng.below(slot.unkept(!always) as u64 + 1) as usize;
            slot.lose(lost);
            self.has_lost |= lost > 0 && !always;
        }
        self.lost += u64::from(!always);
        for no in 0..self.bounds.slots {
            self.start(no, !always);
        }
        // Links between all begin.
        let ends: Vec<End> = self.ends().collect();
        for (at, a) in ends.iter().enumerate() {
            for b in &ends[at + 1..] {
                self.join(*a, *b);
            }
        }
    }
}
