//! Saves of one worker, driven by hand: its inputs and its requests.

use super::super::commit::Settings;
use super::super::out::{Call, Out};
use super::super::store::Store;
use super::{CutOf, LIST_SEALED, SaveRefused, Saves, SnapshotStart, USAGE_PERIOD_US};
use crate::durable::keeper::{Keeper, Purpose, Usage};
use crate::durable::log::Identity;
use crate::durable::{Event, Manifest, Note};
use crate::placement::Placement;
use crate::shard::Shard;
use rufous_base::disk::{DiskDone, DiskReply};
use rufous_base::{Now, WorkerId};

const SNAPSHOT: (CutOf, Purpose) = (CutOf::Save, Purpose::Snapshot);

struct Rig {
    saves: Saves,
    shard: Shard,
    placement: Placement,
    out: Out,
}

impl Rig {
    fn new(workers: usize, settings: &Settings) -> Self {
        let mut rig = Self {
            saves: Saves::default(),
            shard: Shard::new(7),
            placement: Placement::new(workers).seen_by(WorkerId(0)),
            out: Out::default(),
        };
        rig.saves.configure(settings, &mut rig.out);
        rig
    }

    fn with_keeper(workers: usize, settings: &Settings) -> Self {
        let mut rig = Self::new(workers, settings);
        let manifest = Manifest {
            generation: 0,
            logs_from: 1,
            logs_until: None,
            workers: workers as u16,
            hash_seed: 7,
            run: 1,
            saved_ms: 0,
            snapshots: Vec::new(),
        };
        let keeper = Keeper::new(manifest, workers, 1, Now::default());
        rig.saves.on_keeper(keeper);
        rig
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Saves, &mut Store<'_>, &mut Out) -> R) -> R {
        let mut store = Store {
            id: WorkerId(0),
            shard: &mut self.shard,
            placement: &self.placement,
        };
        act(&mut self.saves, &mut store, &mut self.out)
    }

    fn calls(&mut self) -> Vec<Call> {
        std::iter::from_fn(|| self.out.next_call()).collect()
    }

    fn cut(&mut self, generation: u64) {
        let start = SnapshotStart {
            generation,
            identity: Identity {
                worker: 0,
                workers: 1,
                run: 1,
                salt: 3,
            },
            next_seq: 0,
            log_bytes: 0,
            head: Vec::new(),
        };
        self.with(|saves, store, _| saves.on_cut(start, store));
    }
}

fn at(mono_us: u64) -> Now {
    Now {
        mono_us,
        ..Now::default()
    }
}

#[test]
fn a_save_needs_a_folder_and_is_the_only_one() {
    let settings = Settings::default();
    let mut none = Rig::new(1, &settings);
    let refused = none.saves.begin(Now::default(), SNAPSHOT, &mut none.out);
    assert_eq!(refused, Err(SaveRefused::NoFolder));
    let mut rig = Rig::with_keeper(1, &settings);
    let begin = |rig: &mut Rig| rig.saves.begin(Now::default(), SNAPSHOT, &mut rig.out);
    assert_eq!(begin(&mut rig), Ok(2));
    assert_eq!(begin(&mut rig), Err(SaveRefused::InProgress));
    let calls = rig.calls();
    let cut = matches!(
        calls[..],
        [Call::Cut {
            generation: 2,
            cut: CutOf::Save
        }]
    );
    assert!(cut, "{calls:?}");
}

#[test]
fn a_snapshot_is_reported_once_it_is_written() {
    let mut rig = Rig::new(1, &Settings::default());
    rig.cut(2);
    assert!(rig.saves.is_under_way());
    while rig.with(|saves, store, out| saves.on_slice(1 << 20, store, out)) {}
    for _ in 0..100 {
        for request in std::mem::take(&mut rig.out.disk) {
            assert!(rig.calls().is_empty(), "reported before it is on disk");
            let done = DiskDone {
                id: request.id,
                result: Ok(DiskReply::Done),
            };
            rig.with(|saves, store, out| {
                saves.on_snapshot_disk(done, out);
                saves.on_progress(None, store, out);
            });
        }
    }
    let calls = rig.calls();
    let [Call::Tell(WorkerId(0), Note::Saved { saved, .. })] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert!(saved.is_ok() && !rig.saves.is_under_way());
}

#[test]
fn files_are_listed_once_every_log_is_synced() {
    let mut rig = Rig::with_keeper(2, &Settings::default());
    rig.saves.on_logs_cut(5, 10);
    // Without a log nothing has to be synced.
    rig.with(|saves, store, out| saves.on_progress(None, store, out));
    let calls = rig.calls();
    assert!(matches!(
        calls[..],
        [Call::Tell(WorkerId(0), Note::Sealed { generation: 5 })]
    ));
    rig.with(|saves, store, out| saves.on_sealed(5, store, out));
    assert!(rig.out.disk.is_empty(), "another worker has not sealed it");
    rig.with(|saves, store, out| saves.on_sealed(5, store, out));
    assert_eq!(rig.out.disk[0].id, LIST_SEALED | 5);
    let done = DiskDone {
        id: LIST_SEALED | 5,
        result: Ok(DiskReply::Files(Vec::new())),
    };
    rig.saves.on_keeper_disk(Now::default(), done, &mut rig.out);
    let sealed = |event: &Event| matches!(event, Event::Sealed { generation: 5, .. });
    assert!(rig.out.events.iter().any(sealed));
}

#[test]
fn a_failed_save_stops_writes_only_where_nothing_else_keeps_them() {
    for (log, stops) in [(false, true), (true, false)] {
        let mut settings = Settings {
            log,
            stop_on_save_error: true,
            ..Settings::default()
        };
        settings.schedule.points.push((1, 1));
        let mut rig = Rig::new(1, &settings);
        let out = &mut rig.out;
        rig.saves.on_ended(at(1), Err("full".into()), out);
        assert_eq!(rig.saves.error().is_some(), stops, "log: {log}");
        rig.saves.on_ended(at(2), Ok(2), out);
        assert!(rig.saves.error().is_none());
        assert_eq!(out.events.len(), 2);
    }
}

#[test]
fn usage_is_reported_once_a_period() {
    let mut rig = Rig::new(2, &Settings::default());
    let mut told = |now: u64| {
        rig.with(|saves, store, out| saves.on_tick(at(now), (None, false), store, out));
        let calls = rig.calls();
        let usage =
            |call: &Call| matches!(call, Call::Tell(WorkerId(0), Note::Usage(Usage { .. })));
        assert!(calls.iter().all(usage), "{calls:?}");
        calls.len()
    };
    let start = USAGE_PERIOD_US;
    let calls = [start, start + 1, 2 * start].map(&mut told);
    assert_eq!(calls, [1, 0, 1]);
}
