//! `everysec` while syncs take long: what is acknowledged and not synced stays within its bounds.

use super::*;
use rufous_base::disk::{DiskOp, DiskReply, DiskRequest};

/// A log whose syncs are answered by hand, all else at once.
struct Slow {
    log: LogWriter,
    now: Now,
    syncs: Vec<DiskRequest>,
}

impl Slow {
    fn new(bounds: Bounds) -> Self {
        let mut log = writer(Fsync::EverySec);
        log.set_fsync(Fsync::EverySec, bounds);
        log.start(1, 0, 0);
        let mut slow = Self {
            log,
            now: Now::default(),
            syncs: Vec::new(),
        };
        slow.serve();
        slow
    }

    fn done(&mut self, request: DiskRequest, fails: bool) -> Outcome {
        let reply = match request.op {
            DiskOp::Write { bytes, .. } => DiskReply::Wrote(bytes),
            _ => DiskReply::Done,
        };
        let error = DiskError {
            kind: DiskErrorKind::Sync,
            text: "it broke".into(),
            bytes: Vec::new(),
        };
        let done = DiskDone {
            id: request.id,
            result: if fails { Err(error) } else { Ok(reply) },
        };
        self.log.on_done(self.now, done)
    }

    fn serve(&mut self) {
        loop {
            let mut requests = Vec::new();
            self.log.poll(self.now, &mut requests);
            if requests.is_empty() {
                return;
            }
            for request in requests {
                if request.lane == Lane::Sync {
                    self.syncs.push(request);
                } else {
                    assert_eq!(self.done(request, false), Outcome::Fine);
                }
            }
        }
    }

    fn sync_ends(&mut self) {
        let sync = self.syncs.remove(0);
        assert_eq!(self.done(sync, false), Outcome::Fine);
        self.serve();
    }

    fn append(&mut self) -> u64 {
        self.log.append(&[7; 100]);
        self.serve();
        self.log.committed()
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now.mono_us += ms * 1000;
        self.serve();
    }
}

const NONE: u64 = u64::MAX;

#[test]
fn frames_wait_for_a_sync_that_takes_too_long() {
    let bounds = Bounds {
        bytes: NONE,
        us: 3 * SECOND_US,
    };
    let mut slow = Slow::new(bounds);
    assert_eq!(slow.append(), 1);
    slow.pass_ms(1000);
    assert_eq!((slow.syncs.len(), slow.append()), (1, 2));
    slow.pass_ms(1900);
    assert_eq!(slow.append(), 3);
    slow.pass_ms(200);
    // The oldest frame was acknowledged three seconds ago.
    assert_eq!((slow.append(), slow.append()), (3, 3));
    assert_eq!(slow.log.gauges().delayed, 1);
    slow.pass_ms(60_000);
    assert_eq!(slow.append(), 3);
    // The sync covers the first frame alone, and the others are written for long.
    slow.sync_ends();
    assert_eq!((slow.log.synced(), slow.log.committed()), (1, 3));
    assert_eq!(slow.syncs.len(), 1, "the next follows at once");
    slow.sync_ends();
    assert_eq!((slow.log.synced(), slow.log.committed()), (6, 6));
    assert_eq!(slow.append(), 7);
    assert_eq!(slow.log.gauges().delayed, 1);
}

#[test]
fn frames_wait_where_too_many_bytes_are_not_synced() {
    let bounds = Bounds {
        bytes: 400,
        us: NONE,
    };
    let mut slow = Slow::new(bounds);
    slow.pass_ms(1000);
    slow.append();
    slow.sync_ends();
    let committed: Vec<u64> = (0..6).map(|_| slow.append()).collect();
    // Each frame has 124 bytes.
    assert_eq!(committed, [2, 3, 4, 4, 4, 4]);
    assert!(slow.log.gauges().unsynced_bytes > 400);
    assert_eq!(slow.syncs.len(), 1, "it does not wait for the next second");
    assert!(!slow.log.is_far_behind());
    slow.append();
    assert!(slow.log.is_far_behind(), "twice the bound");
    // What was written since it began is within the bound.
    slow.sync_ends();
    assert_eq!((slow.log.committed(), slow.syncs.len()), (8, 0));
    slow.pass_ms(1000);
    slow.sync_ends();
    assert_eq!(slow.log.gauges().unsynced_bytes, 0);
}

#[test]
fn frames_that_wait_for_a_sync_that_fails_are_reported() {
    let bounds = Bounds {
        bytes: NONE,
        us: SECOND_US,
    };
    let mut slow = Slow::new(bounds);
    slow.append();
    slow.pass_ms(2000);
    assert_eq!(slow.append(), 1);
    let sync = slow.syncs.remove(0);
    assert_eq!(slow.done(sync, true), Outcome::Failed);
    assert!(slow.log.has_lost());
    // A snapshot has them.
    slow.log.begin_generation(2);
    slow.serve();
    slow.log.snapshot_installed(2);
    assert_eq!(slow.log.committed(), 2);
    assert_eq!(slow.append(), 3);
}

/// Other modes have no bounds: `no` promises nothing, `always` acknowledges nothing that is not
/// synced.
#[test]
fn only_everysec_has_bounds() {
    let mut slow = Slow::new(Bounds { bytes: 1, us: 1 });
    slow.log.set_fsync(Fsync::No, Bounds { bytes: 1, us: 1 });
    assert_eq!(slow.append(), 1);
    slow.pass_ms(10_000);
    assert_eq!(slow.append(), 2);
}
