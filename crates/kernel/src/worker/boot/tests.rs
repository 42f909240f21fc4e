//! The start of one worker, driven by hand: its inputs and its requests.

use super::super::commit::Settings;
use super::super::out::{Call, Out};
use super::super::store::Store;
use super::plan::plan;
use super::{Boot, LIST_FILES, READ_MANIFEST};
use crate::durable::{Event, LoadPlan, Manifest, Note};
use crate::placement::Placement;
use crate::shard::Shard;
use rufous_base::disk::{DiskDone, DiskError, DiskErrorKind, DiskReply};
use rufous_base::{Now, WorkerId};
use std::sync::Arc;

struct Rig {
    boot: Boot,
    id: WorkerId,
    shard: Shard,
    placement: Placement,
    out: Out,
}

impl Rig {
    fn new(id: u16, workers: usize) -> Self {
        let mut rig = Self {
            boot: Boot::new(7),
            id: WorkerId(id),
            shard: Shard::new(7),
            placement: Placement::new(workers).seen_by(WorkerId(id)),
            out: Out::default(),
        };
        let settings = Settings {
            log: true,
            ..Settings::default()
        };
        rig.boot.begin(&settings, rig.id, &mut rig.out);
        rig
    }

    fn with(&mut self, act: impl FnOnce(&mut Boot, &mut Store<'_>, &mut Out)) {
        let mut store = Store {
            id: self.id,
            shard: &mut self.shard,
            placement: &self.placement,
        };
        act(&mut self.boot, &mut store, &mut self.out);
    }

    fn find(&mut self, id: u64, result: Result<DiskReply, DiskErrorKind>) {
        let result = result.map_err(|kind| DiskError {
            kind,
            text: "broken".to_owned(),
            bytes: Vec::new(),
        });
        self.with(|boot, store, out| boot.on_found(DiskDone { id, result }, store, out));
    }

    /// Executes calls that concern only loading. Returns the others.
    fn calls(&mut self) -> Vec<Call> {
        let mut others = Vec::new();
        while let Some(call) = self.out.next_call() {
            match call {
                Call::Load(next) => {
                    self.with(|boot, store, out| boot.on_next(Now::default(), next, store, out));
                }
                call => others.push(call),
            }
        }
        others
    }

    fn load(&mut self, plan: Arc<LoadPlan>) -> Vec<Call> {
        self.with(|boot, store, out| boot.on_plan(plan, store, out));
        self.calls()
    }
}

fn plan_of(calls: &[Call]) -> Arc<LoadPlan> {
    match calls {
        [.., Call::Tell(_, Note::Plan(plan))] => Arc::clone(plan),
        _ => panic!("no plan: {calls:?}"),
    }
}

/// The loading plan of two workers where one worker had stored a manifest.
fn plan_of_fewer_workers() -> Arc<LoadPlan> {
    let manifest = Manifest {
        generation: 0,
        logs_from: 3,
        logs_until: None,
        workers: 1,
        hash_seed: 5,
        run: 4,
        saved_ms: 0,
        snapshots: Vec::new(),
    };
    Arc::new(plan(Some(&manifest.encode()), &[], 2).unwrap())
}

#[test]
fn a_node_without_files_begins_its_first_log_and_serves() {
    let mut rig = Rig::new(0, 1);
    let asked: Vec<u64> = rig.out.disk.drain(..).map(|request| request.id).collect();
    assert_eq!(asked, [READ_MANIFEST, LIST_FILES]);
    rig.find(LIST_FILES, Ok(DiskReply::Files(Vec::new())));
    assert!(rig.calls().is_empty(), "it does not know the manifest yet");
    rig.find(READ_MANIFEST, Err(DiskErrorKind::NotFound));
    let plan = plan_of(&rig.calls());
    // The manifest must exist before anything is logged.
    let calls = rig.load(plan);
    assert!(matches!(calls[..], [Call::Keep(_)]), "{calls:?}");
    assert!(!rig.out.disk.is_empty());
    rig.with(|boot, store, out| boot.on_first_manifest(Ok(None), store, out));
    let calls = rig.calls();
    let [Call::Tell(_, Note::Resolved { verdicts, run: 1 })] = &calls[..] else {
        panic!("{calls:?}");
    };
    let verdicts = Arc::clone(verdicts);
    rig.with(|boot, _, out| boot.on_resolved(verdicts, out));
    let calls = rig.calls();
    let [Call::StartLog(start)] = calls[..] else {
        panic!("{calls:?}");
    };
    assert_eq!((start.generation, start.index, start.seq), (1, 0, 0));
    for told in [1, 0] {
        rig.with(|boot, _, out| boot.on_log_ready(out));
        assert_eq!(rig.calls().len(), told, "it is ready once");
    }
    rig.with(|boot, store, out| boot.on_loaded(store, out));
    assert!(matches!(rig.calls()[..], [Call::Exchange]));
    rig.boot.on_exchange();
    assert!(rig.boot.is_exchanging() && !rig.boot.is_serving());
    rig.with(|boot, store, out| boot.on_replicas_equal(Now::default(), store, out));
    let calls = rig.calls();
    let exchanged = [
        matches!(calls[0], Call::CountsRestored { count: 0, .. }),
        matches!(calls[1], Call::Tell(WorkerId(0), Note::Exchanged)),
    ];
    assert_eq!(exchanged, [true; 2], "{calls:?}");
    rig.with(|boot, store, out| boot.on_exchanged(store, out));
    assert!(matches!(
        rig.calls()[..],
        [Call::Tell(WorkerId(0), Note::Serve)]
    ));
    rig.boot.on_serve(&mut rig.out);
    assert!(rig.boot.is_serving());
    assert!(matches!(rig.out.events.last(), Some(Event::Serving)));
}

#[test]
fn a_folder_that_cannot_be_read_stops_every_worker() {
    let mut rig = Rig::new(0, 2);
    rig.find(LIST_FILES, Err(DiskErrorKind::Io));
    let calls = rig.calls();
    let told: Vec<u16> = calls
        .iter()
        .map(|call| match call {
            Call::Tell(to, Note::Unloadable(text)) if text.contains("data folder") => to.0,
            call => panic!("{call:?}"),
        })
        .collect();
    assert_eq!(told, [1, 0], "this worker is told last");
    rig.boot.on_unloadable("why".into(), &mut rig.out);
    assert!(matches!(rig.out.events[..], [Event::Unloadable(_)]));
    assert!(!rig.boot.is_serving());
}

#[test]
fn workers_other_than_the_first_wait_for_a_plan() {
    let rig = Rig::new(1, 2);
    assert!(rig.out.disk.is_empty() && !rig.boot.is_finding() && !rig.boot.is_serving());
}

#[test]
fn a_new_layout_is_saved_once_every_sender_has_sent_its_keys() {
    let mut rig = Rig::new(1, 2);
    // Worker 0 loads the only partition.
    assert!(rig.load(plan_of_fewer_workers()).is_empty());
    // Worker 0 has finished before this one.
    rig.with(|boot, store, out| boot.on_no_more_keys(store, out));
    assert!(rig.calls().is_empty());
    rig.with(|boot, _, out| boot.on_resolved(Arc::default(), out));
    let calls = rig.calls();
    let ends = calls
        .iter()
        .filter(|call| matches!(call, Call::Tell(_, Note::NoMoreKeys)));
    assert_eq!((ends.count(), calls.len()), (2, 2), "its own is to come");
    rig.with(|boot, store, out| boot.on_no_more_keys(store, out));
    let calls = rig.calls();
    let [
        Call::CountsRestored { .. },
        Call::StartLog(start),
        Call::Snapshot { generation: 4 },
    ] = calls[..]
    else {
        panic!("{calls:?}");
    };
    assert_eq!(start.generation, 4);
    // The log is ready before the snapshot, but only the manifest counts here.
    rig.with(|boot, _, out| boot.on_log_ready(out));
    assert!(rig.calls().is_empty());
}
