//! Files and folders that are moved away while they are in use.

use super::*;

/// Written bytes would be found by no start: the write that would be acknowledged fails.
#[test]
fn a_file_or_folder_that_was_moved_away_is_noticed_with_the_sync() {
    let parent = folder();
    let (path, elsewhere) = (parent.path().join("data"), parent.path().join("elsewhere"));
    let log = path.join("log");
    type Away = fn(&Path, &Path);
    let ways: [(Away, Option<Away>); 4] = [
        (
            |log, elsewhere| fs::rename(log, elsewhere).expect("moved"),
            None,
        ),
        (|log, _| fs::remove_file(log).expect("removed"), None),
        (
            |log, elsewhere| fs::rename(log.parent().expect("one"), elsewhere).expect("moved"),
            Some(|log, elsewhere| fs::rename(elsewhere, log.parent().expect("one")).expect("back")),
        ),
        (
            |log, _| {
                let folder = log.parent().expect("one");
                fs::remove_dir_all(folder).expect("removed");
                fs::create_dir(folder).expect("another one");
            },
            None,
        ),
    ];
    for (away, back) in ways {
        fs::create_dir_all(&path).expect("made");
        let mut disk = asking(Some(&path));
        disk.done(Lane::Bulk, create("log", 4096));
        disk.done(Lane::Log, write("log", 0, b"there"));
        disk.done(Lane::Log, unsynced("log", 5));
        away(&log, &elsewhere);
        disk.fails(Lane::Sync, sync("log"), DiskErrorKind::NotFound);
        disk.fails(Lane::Log, write("log", 0, b"gone"), DiskErrorKind::NotFound);
        std::thread::sleep(std::time::Duration::from_millis(150));
        disk.fails(Lane::Log, unsynced("log", 5), DiskErrorKind::NotFound);
        let folder_is_same = path.join("log").parent().is_some_and(Path::exists);
        if !folder_is_same {
            disk.fails(Lane::Bulk, create("new", 10), DiskErrorKind::NotFound);
            let Err(error) = disk.once(Lane::Bulk, DiskOp::SyncNames) else {
                panic!("names in no folder");
            };
            assert!(error.text.contains("removed or renamed"), "{error}");
        }
        if let Some(back) = back {
            back(&log, &elsewhere);
            disk.done(Lane::Log, write("log", 0, b"back"));
            disk.done(Lane::Bulk, create("new", 10));
        }
        drop(disk);
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_dir_all(&elsewhere);
        let _ = fs::remove_file(&elsewhere);
    }
}
