//! The switch of the log, driven by hand beside a keeper whose manifests reach the disk on request.

use super::{LogState, Step, Switch};
use crate::durable::Manifest;
use crate::durable::keeper::{Keeper, Purpose};
use crate::durable::manifest::SnapshotFile;
use crate::worker::CutOf;
use rufous_base::Now;
use rufous_base::disk::{DiskDone, DiskReply, DiskRequest};

const WORKERS: usize = 2;

struct Rig {
    switch: Switch,
    keeper: Keeper,
    disk: Vec<DiskRequest>,
}

impl Rig {
    /// A node that logs nothing, or everything.
    fn new(logs: bool) -> Self {
        let manifest = Manifest {
            generation: 0,
            logs_from: 1,
            logs_until: (!logs).then_some(1),
            workers: WORKERS as u16,
            hash_seed: 7,
            run: 1,
            saved_ms: 0,
            snapshots: Vec::new(),
        };
        let mut keeper = Keeper::new(manifest, WORKERS, 1, Now::default());
        if logs {
            keeper.log_begins(1);
        }
        let mut switch = Switch::default();
        switch.on_settings(logs);
        switch.on_start(logs);
        Self {
            switch,
            keeper,
            disk: Vec::new(),
        }
    }

    fn step(&self) -> Step {
        self.switch.step(&self.keeper, false)
    }

    fn is(&self) -> LogState {
        self.switch.is(&self.keeper)
    }

    /// Begins a save as the worker does; returns its generation.
    fn begin(&mut self) -> u64 {
        let cut = self.switch.cut_of_save();
        let generation = self.keeper.next_generation();
        if cut == CutOf::Begin {
            self.keeper.log_begins(generation);
        }
        let now = Now::default();
        self.keeper.begin(generation, Purpose::Rewrite, now);
        self.switch.on_begin(generation, cut);
        generation
    }

    /// All workers have written their snapshots, or one could not.
    fn saved(&mut self, generation: u64, fails: bool) {
        for worker in 0..WORKERS as u16 {
            let file = SnapshotFile {
                worker,
                file: format!("snap-{generation:010}-{worker:05}").as_str().into(),
                bytes: 0,
                next_seq: 0,
                keys: 0,
                crc: 0,
            };
            let saved = if fails { Err("full".into()) } else { Ok(file) };
            let now = Now::default();
            (self.keeper).on_saved(generation, saved, now, &mut self.disk);
        }
    }

    fn serve_disk(&mut self) {
        while !self.disk.is_empty() {
            for request in std::mem::take(&mut self.disk) {
                let done = DiskDone {
                    id: request.id,
                    result: Ok(DiskReply::Files(Vec::new())),
                };
                self.keeper.on_disk(done, Now::default(), &mut self.disk);
            }
        }
    }

    fn end(&mut self) {
        assert_eq!(self.step(), Step::End);
        self.switch.on_end(WORKERS);
        self.keeper.log_ends(&mut self.disk);
    }
}

#[test]
fn a_log_is_on_only_once_the_manifest_says_so() {
    let mut rig = Rig::new(false);
    assert_eq!((rig.step(), rig.is()), (Step::Nothing, LogState::Off));
    rig.switch.on_settings(true);
    assert_eq!((rig.step(), rig.is()), (Step::Save, LogState::Starting));
    assert_eq!(rig.switch.cut_of_save(), CutOf::Begin);
    let generation = rig.begin();
    assert_eq!(rig.switch.cut_of_save(), CutOf::Save, "it begins once");
    rig.switch.on_cut(generation);
    rig.saved(generation, false);
    assert_eq!((rig.step(), rig.is()), (Step::Nothing, LogState::Starting));
    rig.serve_disk();
    assert_eq!((rig.step(), rig.is()), (Step::Nothing, LogState::On));
}

#[test]
fn a_save_that_fails_is_followed_by_another() {
    let mut rig = Rig::new(false);
    rig.switch.on_settings(true);
    for _ in 0..2 {
        let generation = rig.begin();
        rig.switch.on_cut(generation);
        rig.saved(generation, true);
        assert_eq!((rig.step(), rig.is()), (Step::Save, LogState::Starting));
    }
    let generation = rig.begin();
    rig.switch.on_cut(generation);
    rig.saved(generation, false);
    rig.serve_disk();
    assert_eq!(rig.is(), LogState::On);
}

#[test]
fn logs_begin_again_only_after_all_have_ended_and_the_manifest_says_so() {
    let mut rig = Rig::new(true);
    rig.switch.on_settings(false);
    assert_eq!(rig.is(), LogState::Ending);
    rig.end();
    rig.switch.on_settings(true);
    rig.switch.on_ended();
    rig.serve_disk();
    assert_eq!(rig.step(), Step::Nothing, "a worker still has its log");
    assert_eq!(rig.switch.cut_of_save(), CutOf::Save);
    rig.switch.on_ended();
    assert_eq!((rig.step(), rig.is()), (Step::Save, LogState::Starting));

    // Now the manifest is late.
    let mut rig = Rig::new(true);
    rig.switch.on_settings(false);
    rig.end();
    (0..WORKERS).for_each(|_| rig.switch.on_ended());
    rig.switch.on_settings(true);
    assert_eq!((rig.step(), rig.is()), (Step::Nothing, LogState::Starting));
    rig.serve_disk();
    assert_eq!(rig.step(), Step::Save);
}

#[test]
fn a_log_that_begins_with_a_cut_ends_after_it() {
    let mut rig = Rig::new(false);
    rig.switch.on_settings(true);
    let generation = rig.begin();
    rig.switch.on_settings(false);
    assert_eq!(rig.step(), Step::Nothing, "workers would begin it later");
    rig.switch.on_cut(generation);
    rig.end();
    (0..WORKERS).for_each(|_| rig.switch.on_ended());
    rig.saved(generation, false);
    rig.serve_disk();
    assert_eq!((rig.step(), rig.is()), (Step::Nothing, LogState::Off));

    // The cut of a later save waits for commands that wait for the log, which is stuck.
    let mut rig = Rig::new(true);
    rig.begin();
    rig.switch.on_settings(false);
    assert_eq!(rig.step(), Step::Nothing);
    assert_eq!(rig.switch.step(&rig.keeper, true), Step::End);
}
