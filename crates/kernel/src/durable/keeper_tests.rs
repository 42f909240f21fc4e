//! The keeper, answered by a disk that does all it is asked.

use super::*;

fn keeper() -> Keeper {
    let manifest = Manifest {
        generation: 0,
        logs_from: 1,
        logs_until: None,
        workers: 1,
        hash_seed: 1,
        run: 1,
        saved_ms: 0,
        snapshots: Vec::new(),
    };
    let mut keeper = Keeper::new(manifest, 1, 1, Now::default());
    keeper.logs = true;
    keeper
}

/// Answers everything that was asked, until nothing more is.
fn serve(keeper: &mut Keeper, asked: &mut Vec<DiskRequest>) -> Vec<Event> {
    let mut events = Vec::new();
    while !asked.is_empty() {
        let request = asked.remove(0);
        let reply = match request.op {
            DiskOp::List => DiskReply::Files(Vec::new()),
            _ => DiskReply::Done,
        };
        let done = DiskDone {
            id: request.id,
            result: Ok(reply),
        };
        events.extend(keeper.on_disk(done, Now::default(), asked));
    }
    events
}

#[test]
fn a_save_ends_although_logging_is_switched_off_while_its_manifest_is_written() {
    let (mut keeper, mut asked) = (keeper(), Vec::new());
    let generation = keeper.next_generation();
    keeper.begin(generation, Now::default());
    let file = SnapshotFile {
        worker: 0,
        file: DataFile::Snapshot {
            generation,
            worker: 0,
        }
        .name(),
        bytes: 100,
        keys: 1,
        crc: 7,
        next_seq: 3,
    };
    let saved = keeper.on_saved(generation, Ok(file.clone()), Now::default(), &mut asked);
    assert_eq!(saved, None);
    keeper.install_logs_until(Some(generation), &mut asked);
    let events = serve(&mut keeper, &mut asked);
    assert_eq!(events, [Event::Installed { generation }]);
    assert!(!keeper.is_saving());
    assert_eq!(keeper.manifest().snapshots, [file]);
    assert_eq!(keeper.manifest().logs_until, Some(generation));
}
