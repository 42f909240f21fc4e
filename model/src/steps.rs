//! What each action does.

use crate::bounds::Sync;
use crate::node::{Node, Pending, Run, SLOT};
use crate::rules::Own;
use crate::world::{Action, World};
use rufous_chain::{Envelope, Peer, Replica};
use rufous_mapping::{Mapping, Phase};
use std::sync::Arc;

impl World {
    /// Carries an action out. It has to be one of those that may happen.
    pub fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Write(at) => self.write(at),
            Action::Sync(at) => {
                self.nodes[at].synced = self.nodes[at].log.len();
                self.follow(at);
            }
            Action::Deliver(from, to) => {
                let link = self.links.entry((from, to)).or_default();
                if let Some(envelope) = link.pop_front() {
                    self.receive(from, to, envelope);
                }
            }
            Action::Plan => return self.plan(),
            Action::TakeUp(at) => return self.take_up(at),
            Action::End(at, kept) => self.end(at, kept),
            Action::Spoil(at, to) => {
                self.left.spoils -= 1;
                let node = &mut self.nodes[at];
                node.log.truncate(to);
                (node.synced, node.spoilt, node.keeps_all) = (to, true, false);
            }
            Action::Start(at) => self.start(at),
            Action::Miss(at) => {
                if self.nodes[at].run.is_some() {
                    self.left.suspicions -= 1;
                }
                self.alive.remove(&at);
            }
            Action::Meet(at) => {
                self.alive.insert(at, self.nodes[at].incarnation);
            }
            Action::Break(one, two) => {
                self.left.breaks -= 1;
                self.connect(one, two);
                self.follow(one);
                self.follow(two);
            }
            Action::Pass => {
                self.left.leases -= 1;
                self.pass();
            }
        }
        Ok(())
    }

    pub(crate) fn pass(&mut self) {
        self.now_us += crate::node::LEASE_US;
        (0..self.nodes.len()).for_each(|at| self.follow(at));
        // What the first have waited for, the last have said meanwhile.
        (0..self.nodes.len()).for_each(|at| self.follow(at));
    }

    fn write(&mut self, at: usize) {
        self.left.writes -= 1;
        self.writes += 1;
        let (write, node) = (self.writes, &mut self.nodes[at]);
        let Some(run) = &mut node.run else {
            return;
        };
        run.data.content.push(write);
        let position = run.replica.append(SLOT, Arc::from([write]), &mut run.data);
        node.record();
        let record = node.log.len();
        if let Some(run) = &mut node.run {
            run.pending.push(Pending {
                write,
                position,
                record,
            });
        }
        self.follow(at);
    }

    fn receive(&mut self, from: usize, to: usize, envelope: Envelope) {
        let (from, now) = (peer(&self.nodes[from]), self.now_us);
        if let Some(run) = &mut self.nodes[to].run {
            run.replica.receive(from, envelope, &mut run.data, now);
            self.follow(to);
        }
    }

    fn plan(&mut self) -> Result<(), String> {
        let Some(next) = self.planned() else {
            return Ok(());
        };
        next.check()
            .and(next.follows(&self.mapping))
            .map_err(|wrong| format!("the planner plans what may not be: {wrong}"))?;
        let before = Arc::clone(&self.mapping);
        self.set_mapping(next);
        if before.chains.of(SLOT).is_halted() && !self.chain().is_halted() {
            self.forgive(&before)?;
        }
        self.learned.clear();
        (0..self.nodes.len()).for_each(|at| self.look_at_learned(at));
        Ok(())
    }

    /// Where all copies are from the past, or less was durable than acknowledged, the best copy
    /// continues; what it lacks is lost. A member of the chain before may show that as long as it has leases.
    fn forgive(&mut self, before: &Mapping) -> Result<(), String> {
        let before = before.chains.of(SLOT);
        let members = before
            .members
            .iter()
            .map(|no| &self.nodes[usize::from(no.0)]);
        let members: Vec<&Node> = members.collect();
        if self.bounds.sync == Sync::Always && !members.iter().all(|node| node.spoilt) {
            return Ok(());
        }
        let head = self.chain().head();
        let Some(best) = members.iter().find(|node| Some(node.no) == head) else {
            return Err("a node that was no member continues".to_owned());
        };
        if best.keeps_all {
            // It has every acknowledged write. It may continue without members that are away, which
            // may have others.
            return Ok(());
        }
        let rank = |node: &&Node| node.run.as_ref()?.replica.copy_of(SLOT);
        if members.iter().any(|node| rank(node) > rank(best)) {
            return Err(format!(
                "{} continues, and another member has more",
                best.no
            ));
        }
        let left = best.content();
        let lost = (1..=self.writes).filter(|write| !left.contains(write));
        self.lost = lost.collect();
        self.owe(&[]);
        Ok(())
    }

    fn owe(&mut self, writes: &[u8]) {
        self.owed.extend(writes);
        self.owed.retain(|write| !self.lost.contains(write));
    }

    fn take_up(&mut self, at: usize) -> Result<(), String> {
        let (mapping, now) = (Arc::clone(&self.mapping), self.now_us);
        if let Some(run) = &mut self.nodes[at].run {
            run.replica
                .take_up(&mapping, &mut run.data, now)
                .map_err(|wrong| format!("node {at} refuses an epoch: {wrong}"))?;
            // Nodes have nothing here that depends on lost writes, and equal states stay equal.
            run.replica.take_lossy();
            self.follow(at);
        }
        Ok(())
    }

    fn end(&mut self, at: usize, kept: usize) {
        self.left.ends -= 1;
        let node = &mut self.nodes[at];
        node.run = None;
        node.keeps_all &= kept == node.log.len();
        node.log.truncate(kept);
        node.synced = kept;
        self.links.retain(|(from, to), _| *from != at && *to != at);
    }

    pub(crate) fn start(&mut self, at: usize) {
        self.starts += 1;
        let node = &mut self.nodes[at];
        let incarnation = match self.off {
            // The number of records stands for the starts that the folder has seen.
            Some(Own::StartsCounted) => 1 + u64::from(!node.log.is_empty()),
            _ => self.starts,
        };
        node.start(incarnation, self.now_us);
        self.alive.insert(at, incarnation);
        let others = (0..self.nodes.len()).filter(|other| *other != at);
        let up: Vec<usize> = others.filter(|at| self.nodes[*at].run.is_some()).collect();
        for other in up {
            self.connect(at, other);
            self.follow(other);
        }
        self.follow(at);
    }

    /// Two nodes begin another session: what was on the way is lost.
    fn connect(&mut self, at: usize, other: usize) {
        for (one, two) in [(at, other), (other, at)] {
            self.links.remove(&(one, two));
            let no = self.nodes[two].no;
            if let Some(run) = &mut self.nodes[one].run {
                run.replica.peer_up(no);
            }
        }
    }

    /// What follows at a node from what has happened there.
    pub(crate) fn follow(&mut self, at: usize) {
        loop {
            let now = self.now_us;
            let Some(run) = &mut self.nodes[at].run else {
                return;
            };
            while run.replica.work(&mut run.data, 1, |_| true) {}
            let is_due = run.replica.wake_at() <= now && run.replica.epoch() > 0;
            if is_due {
                run.replica.tick(now);
            }
            self.nodes[at].record();
            let sent = self.send(at);
            if !is_due && !sent {
                break;
            }
        }
        self.acknowledge(at);
        self.look_at_learned(at);
        self.look_at_shown(at);
    }

    /// Sends what may leave. True if a lease was asked for, and so may have been granted.
    fn send(&mut self, at: usize) -> bool {
        let sync = self.bounds.sync;
        let early = self.off == Some(Own::SentBeforeLogged);
        let node = &mut self.nodes[at];
        let (record, committed) = (node.log.len(), node.committed(sync));
        let Some(run) = &mut node.run else {
            return false;
        };
        let (mut leases, mut ready) = (Vec::new(), Vec::new());
        for (to, envelope) in run.replica.take_messages() {
            match envelope.message.chain() {
                None => leases.push((to, envelope)),
                Some(_) => run.held.push_back((record, to, envelope)),
            }
        }
        while let Some((_, to, envelope)) = run
            .held
            .pop_front_if(|(record, ..)| *record <= committed || early)
        {
            ready.push((to, envelope));
        }
        for (to, envelope) in ready {
            let to = usize::from(to.node.0);
            if self.nodes[to].run.is_some() {
                self.links.entry((at, to)).or_default().push_back(envelope);
            }
        }
        // A lease is asked for and granted in no time: nothing that the model looks for needs more.
        let asks = !leases.is_empty();
        for (to, envelope) in leases {
            self.receive(at, usize::from(to.node.0), envelope);
        }
        asks
    }

    fn acknowledge(&mut self, at: usize) {
        let committed = self.nodes[at].committed(self.bounds.sync);
        let Some(run) = &mut self.nodes[at].run else {
            return;
        };
        let settled = run.replica.settled();
        let lost = run.replica.take_lost();
        if lost {
            // Their clients are told that the outcome is unknown.
            run.pending.clear();
        }
        let is_done =
            |pending: &Pending| pending.position <= settled && pending.record <= committed;
        let done = run.pending.iter().filter(|pending| is_done(pending));
        let done: Vec<u8> = done.map(|pending| pending.write).collect();
        run.pending.retain(|pending| !is_done(pending));
        self.owe(&done);
    }

    fn look_at_learned(&mut self, at: usize) {
        if let Some(run) = &self.nodes[at].run {
            let reports = run.replica.synced().map(|(_, no, since)| (no, since));
            self.learned.extend(reports);
        }
    }

    /// What a member shows to readers is owed to all later ones. Replies wait for the log, those of
    /// the head for its own writes too.
    fn look_at_shown(&mut self, at: usize) {
        let (now, sync) = (self.now_us, self.bounds.sync);
        let is_logged = self.nodes[at].committed(sync) == self.nodes[at].log.len();
        if let Some(run) = &self.nodes[at].run
            && is_logged
            && (run.replica.may_read(SLOT, now) || shows_as_head(&run.replica, now))
        {
            let shown = run.data.content.clone();
            self.owe(&shown);
        }
        let chain = *self.chain();
        let node = &mut self.nodes[at];
        let acts = |run: &&Run| run.replica.epoch() == self.mapping.epoch;
        let run = node.run.as_ref().filter(acts);
        let copy = run.and_then(|run| run.replica.copy_of(SLOT));
        if copy.is_some_and(|copy| copy.since == chain.since) && chain.phase == Phase::Acts {
            node.spoilt = false;
        }
    }
}

fn shows_as_head(replica: &Replica, now: u64) -> bool {
    replica.settled() == replica.position() && replica.serves(SLOT, now).is_ok()
}

fn peer(node: &Node) -> Peer {
    Peer {
        node: node.no,
        worker: 0,
    }
}
