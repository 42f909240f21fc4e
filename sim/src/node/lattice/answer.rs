//! What replies to clients of lattice keyspaces say.

use super::act::Deed;
use super::session::Noticed;
use super::{Ask, Asked, Kind, Lattice, Thing, View};
use crate::node::client::refusal;
use rufous_resp::Reply;
use std::collections::BTreeSet;

fn thing(text: &[u8]) -> Result<Thing, String> {
    let digits = text.strip_prefix(b"m").unwrap_or(text);
    let digits = digits.split(|b| *b == b'.').next().unwrap_or_default();
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|d| d.parse().ok());
    number.ok_or_else(|| format!("nobody made {}", String::from_utf8_lossy(text)))
}

/// A sum in quarters.
fn quarters(text: &[u8]) -> Result<i64, String> {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.parse::<f64>().ok());
    let exact = number.map(|n| n * 4.0).filter(|n| n.fract() == 0.0);
    exact
        .map(|n| n as i64)
        .ok_or_else(|| format!("no sum: {}", String::from_utf8_lossy(text)))
}

/// Whether the reply to a removal says that something was there.
fn was_there(reply: &Reply) -> bool {
    matches!(reply, Reply::Integer(n) if *n > 0)
}

impl Lattice {
    /// What was asked for was answered.
    pub fn answer(&mut self, client: usize, asked: Asked, now_us: u64) -> Result<(), String> {
        let Some(last) = asked.got.last() else {
            return Ok(());
        };
        self.now_us = now_us;
        if self.is_given_up(client, &asked) {
            return Ok(());
        }
        if let Some(_why) = asked.got.iter().find_map(refusal) {
            match asked.ask {
                Ask::Act(act) => self.acts[act].refused = matches!(last, Reply::Error(_)),
                Ask::Commit(act) => self.refuse_commit(act, last),
                Ask::Begin => self.clients[client].open = None,
                Ask::Inside => self.written_inside(client, last),
                _ => {}
            }
            self.clients[client].ready &=
                !matches!(asked.ask, Ask::Ready | Ask::Look(_) | Ask::List);
            return Ok(());
        }
        match asked.ask {
            Ask::Ready => {
                let there = |reply: &Reply| match reply {
                    Reply::Simple(_) => true,
                    Reply::Error(text) => text.ends_with(b"with this name exists"),
                    _ => false,
                };
                self.clients[client].ready = asked.got.iter().all(there);
            }
            Ask::Table | Ask::Rollback => {}
            Ask::List => self.listed(client, last)?,
            Ask::Begin => self.begun(client, last)?,
            Ask::Inside => self.written_inside(client, last),
            Ask::Commit(act) => {
                self.refuse_commit(act, last);
                if !self.acts[act].refused {
                    self.committed(act, last)?;
                    self.acknowledge(client, act, last, 2, now_us)?;
                }
            }
            Ask::Impossible => {
                let says =
                    |text: &[u8]| String::from_utf8_lossy(text).contains("coordination-free");
                if !matches!(last, Reply::Error(text) if says(text)) {
                    return Err(format!("what cannot be done was done: {last:?}"));
                }
            }
            Ask::Act(act) => {
                self.judge_clock(&asked, act, now_us)?;
                self.acknowledge(client, act, last, asked.got.len(), now_us)?;
            }
            Ask::Look(keys) => match last {
                Reply::Array(all) if asked.got.len() == keys.len() + 2 => {
                    for (key, reply) in keys.iter().zip(all) {
                        self.shown(client, *key, reply)?;
                    }
                }
                reply => self.shown(client, keys[0], reply)?,
            },
        }
        Ok(())
    }

    /// An act was acknowledged that writes: clocks have allowed that.
    fn judge_clock(&mut self, asked: &Asked, number: usize, now_us: u64) -> Result<(), String> {
        let is_error = |reply: &Reply| matches!(reply, Reply::Error(_));
        let act = &self.acts[number];
        let writes = |deed: &Deed| {
            let key = deed.key().filter(|_| !matches!(deed, Deed::Nothing { .. }));
            key.is_some_and(|key| self.is_everywhere(key))
        };
        let is_done = match asked.got.last() {
            Some(Reply::Array(parts)) if asked.got.len() > 1 => {
                !parts.is_empty() && !parts.iter().any(is_error)
            }
            last => last.is_some_and(|last| !is_error(last)),
        };
        if !is_done || !act.deeds.iter().any(writes) {
            return Ok(());
        }
        if let Some(by_us) = self.clocks.jumped(act, &self.clock, now_us) {
            return Err(format!(
                "written while the wall clock had jumped by {} s",
                by_us / 1_000_000
            ));
        }
        let reading_ms = self.clock.followed_ms(act.asked_us, now_us).0;
        let act = &self.acts[number];
        self.clocks.note(act, now_us, reading_ms);
        Ok(())
    }

    fn shown(&mut self, client: usize, key: usize, reply: &Reply) -> Result<(), String> {
        let view = self.view(key, reply)?;
        self.note_token(client, key, reply, &view);
        let Some(worker) = self.auditor(client) else {
            return self.look(client, key, &view);
        };
        self.audit.remove(&(worker, key));
        self.seen.insert((worker, key), view);
        Ok(())
    }

    /// All keys were listed: each once, and all whose elements the client has to be shown.
    fn listed(&self, client: usize, reply: &Reply) -> Result<(), String> {
        let all = match reply {
            Reply::Array(all) => all,
            Reply::Error(text) if text.starts_with(b"TRYAGAIN The keyspaces") => {
                return Ok(());
            }
            other => return Err(format!("no list of keys: {other:?}")),
        };
        let mut names = BTreeSet::new();
        for element in all {
            let Reply::Bulk(name) = element else {
                return Err(format!("no name: {element:?}"));
            };
            if !names.insert(&name[..]) {
                let name = String::from_utf8_lossy(name);
                return Err(format!("{name} is listed twice"));
            }
        }
        let (db, view) = (self.clients[client].db, &View::default());
        for key in (0..self.keys.len()).filter(|key| self.keys[*key].db == db) {
            let kind = self.kind(key);
            let is_plain = !kind.is_register() && kind != Kind::Sketch;
            if is_plain && !names.contains(&self.keys[key].name[..]) {
                self.is_lasting(Noticed { client, key, view }, |_| false)
                    .map_err(|why| format!("not listed: {why}"))?;
            }
        }
        Ok(())
    }

    fn view(&self, key: usize, reply: &Reply) -> Result<View, String> {
        let mut view = View::default();
        match reply {
            Reply::Null => {}
            Reply::Integer(count) if self.kind(key) == Kind::Sketch => view.sum = *count,
            Reply::Bulk(text) if self.keys[key].kind.counts() => view.sum = quarters(text)?,
            Reply::Bulk(text) => {
                view.things.insert(thing(text)?);
            }
            Reply::Array(all) => {
                // Before concurrent values there is a token.
                let skipped = usize::from(self.keys[key].kind == Kind::Note);
                for element in &all[skipped.min(all.len())..] {
                    let Reply::Bulk(text) = element else {
                        return Err(format!("no element: {element:?}"));
                    };
                    if !view.things.insert(thing(text)?) {
                        return Err(format!("an element that is there twice: {all:?}"));
                    }
                }
            }
            other => return Err(format!("no reply to a read: {other:?}")),
        }
        Ok(view)
    }

    fn acknowledge(
        &mut self,
        client: usize,
        number: usize,
        reply: &Reply,
        replies: usize,
        now_us: u64,
    ) -> Result<(), String> {
        let mut deeds = std::mem::take(&mut self.acts[number].deeds);
        let parts = match reply {
            Reply::Array(parts) if replies > 1 => &parts[..],
            reply => std::slice::from_ref(reply),
        };
        // At most a part of it was done; which one is unknown.
        let failed = parts.iter().find(|part| matches!(part, Reply::Error(_)));
        match failed {
            Some(error) if refusal(error).is_none() => {
                return Err(format!("an act failed: {error:?}, {deeds:?}"));
            }
            Some(_) => {}
            // A transaction of nothing.
            None if parts.is_empty() => {}
            None => {
                // One command may add several things.
                let last = parts.len() - 1;
                for (at, deed) in deeds.iter_mut().enumerate() {
                    self.learn(client, deed, was_there(&parts[at.min(last)]));
                }
                self.acts[number].answered_us = now_us;
            }
        }
        self.acts[number].deeds = deeds;
        Ok(())
    }

    /// Whether a transaction was given up: it can only be ended, and what was
    /// asked for is not done.
    fn is_given_up(&mut self, client: usize, asked: &Asked) -> bool {
        const SAYS: &str = "the transaction is aborted";
        let says = |text: &[u8]| String::from_utf8_lossy(text).contains(SAYS);
        if !matches!(asked.got.last(), Some(Reply::Error(text)) if says(text)) {
            return false;
        }
        if let Ask::Act(act) = asked.ask {
            self.acts[act].refused = true;
        }
        if let Some(open) = &mut self.clients[client].open {
            open.is_over = true;
        }
        true
    }

    fn begun(&mut self, client: usize, reply: &Reply) -> Result<(), String> {
        if !matches!(reply, Reply::Simple(_)) {
            return Err(format!("client {client} could not begin: {reply:?}"));
        }
        if let Some(open) = &mut self.clients[client].open {
            open.has_begun = true;
        }
        Ok(())
    }

    /// Of a transaction that could not be committed nothing is done.
    fn refuse_commit(&mut self, number: usize, reply: &Reply) {
        if matches!(reply, Reply::Error(_)) {
            let things = self.acts[number].deeds.iter().flat_map(Deed::makes);
            self.uncommitted.extend(things);
            self.acts[number].refused = true;
        }
    }

    /// Each command that wrote is done once more.
    fn committed(&self, number: usize, reply: &Reply) -> Result<(), String> {
        let wrote = self.acts[number].deeds.len();
        match reply {
            Reply::Array(all) if all.len() == wrote => Ok(()),
            reply => Err(format!(
                "a transaction wrote by {wrote} commands, and commits {reply:?}"
            )),
        }
    }
}
