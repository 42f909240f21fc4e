//! A node: what runs, and what its folder has.

use crate::bounds::Sync;
use rufous_chain::{Envelope, Peer, Replica, Store};
use rufous_mapping::planner::Copy;
use rufous_mapping::{Member, NodeId, NodeNo};
use std::collections::VecDeque;

/// The slot that everything is about.
pub const SLOT: u16 = 0;
pub const LEASE_US: u64 = 1_000_000;

/// A write is a number; a slot's content is the writes in their order.
pub type Content = Vec<u8>;

/// What a log says of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Nothing,
    Part,
    Whole(Copy),
}

/// What a log's replay gives, up to one of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub content: Content,
    pub mark: Mark,
}

/// The slot's data of a running node.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub content: Content,
    copied: bool,
}

impl Store for Data {
    fn apply(&mut self, _slot: u16, effect: &[u8]) {
        self.content.extend_from_slice(effect);
    }

    fn clear(&mut self, _slot: u16) -> bool {
        self.content.clear();
        true
    }

    fn begin_copy(&mut self, _slot: u16) {
        self.copied = false;
    }

    fn end_copy(&mut self, _slot: u16) {}

    fn note(&mut self, _slot: u16, _effect: &[u8]) {}

    fn copy(&mut self, _slot: u16) -> Option<Vec<u8>> {
        let is_first = !std::mem::replace(&mut self.copied, true);
        (is_first && !self.content.is_empty()).then(|| self.content.clone())
    }

    fn load(&mut self, _slot: u16, chunk: &[u8]) {
        self.content.extend_from_slice(chunk);
    }
}

/// A write whose client waits.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub write: u8,
    pub position: u64,
    /// The record of the log that has it.
    pub record: usize,
}

/// A node that runs.
#[derive(Clone, Debug)]
pub struct Run {
    pub replica: Replica,
    pub data: Data,
    /// Messages, with the records that they wait for.
    pub held: VecDeque<(usize, Peer, Envelope)>,
    pub pending: Vec<Pending>,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Node {
    pub no: NodeNo,
    pub incarnation: u64,
    pub run: Option<Run>,
    /// Records of the log, as what their replay gives.
    pub log: Vec<Image>,
    /// So many of them are synced.
    pub synced: usize,
    /// Its folder was emptied or is of the past, and it has not copied the slot since.
    pub spoilt: bool,
    /// Its folder has all that it has logged.
    pub keeps_all: bool,
}

impl Node {
    pub fn new(no: u16) -> Self {
        Self {
            no: NodeNo(no),
            incarnation: 0,
            run: None,
            log: Vec::new(),
            synced: 0,
            spoilt: false,
            keeps_all: true,
        }
    }

    pub fn id(&self) -> NodeId {
        NodeId([self.no.0 as u8 + 1; 20])
    }

    pub fn member(&self, incarnation: u64) -> Member {
        Member {
            id: self.id(),
            incarnation,
            peer: String::new(),
            plain: String::new(),
            cluster: String::new(),
            zone: String::new(),
            weight: 1,
            workers: 1,
            drains: false,
            folder: Default::default(),
        }
    }

    pub fn start(&mut self, incarnation: u64, now_us: u64) {
        let last = self.log.last();
        let mut replica = Replica::new(self.no, 0, 1, incarnation, LEASE_US, Some(now_us));
        replica.set_keeps_all(self.keeps_all);
        match last.map_or(Mark::Nothing, |image| image.mark) {
            Mark::Nothing => {}
            Mark::Part => replica.found_incomplete(SLOT),
            Mark::Whole(copy) => replica.restore(SLOT, copy),
        }
        let content = last.map(|image| image.content.clone());
        self.incarnation = incarnation;
        self.synced = self.log.len();
        self.run = Some(Run {
            replica,
            data: Data {
                content: content.unwrap_or_default(),
                copied: false,
            },
            held: VecDeque::new(),
            pending: Vec::new(),
        });
    }

    /// Appends a record, if something has changed.
    pub fn record(&mut self) {
        let Some(run) = &self.run else {
            return;
        };
        let mark = match run.replica.copy_of(SLOT) {
            Some(copy) => Mark::Whole(copy),
            None if run.replica.has_part(SLOT) => Mark::Part,
            None => Mark::Nothing,
        };
        let content = run.data.content.clone();
        let image = Image { content, mark };
        if self.log.last() != Some(&image) {
            self.log.push(image);
        }
    }

    /// The records that are as durable as an acknowledgement needs.
    pub fn committed(&self, sync: Sync) -> usize {
        match sync {
            Sync::Always => self.synced,
            Sync::Later => self.log.len(),
        }
    }

    /// What the slot has here, running or not.
    pub fn content(&self) -> &[u8] {
        match &self.run {
            Some(run) => &run.data.content,
            None => self.log.last().map_or(&[], |image| &image.content),
        }
    }
}
