//! Varieties of plans that few seeds have: some remainders of the seed by 16 stand for them, which no saved seed has, so
//! that all other plans are what they were before. A plan itself does not name its variety, for the same reason.

use super::{Crash, Ending, Limits, Mode, Plan};
use crate::engine::random::Random;

/// Unsynced frames may be this old with `everysec`, in plans with long syncs: the smallest setting that there is.
pub const BOUND_MS: u64 = 1_000;
/// Or so many bytes of them may be acknowledged, in some of these plans, however old they are.
pub const BOUND_BYTES: u64 = 1_000;

impl Plan {
    /// The log is off at each start, and switched on while the node runs.
    pub fn switches_log(&self) -> bool {
        self.seed % 16 == 3 && self.is_plain() && self.mode != Mode::Off
    }

    /// The bit that changes while the node is down is one of the last frames of a log.
    pub fn flips_last_frames(&self) -> bool {
        self.seed % 16 == 8 && self.is_plain() && self.mode == Mode::Always
    }

    /// Syncs take longer than unsynced frames may be old.
    pub fn has_long_syncs(&self) -> bool {
        self.seed % 16 == 10 && self.is_plain() && self.mode == Mode::Everysec && self.workers == 1
    }

    /// Their bound is one of bytes.
    pub fn bounds_bytes(&self) -> bool {
        self.has_long_syncs() && self.seed % 32 == 26
    }

    /// What these varieties need of all else: the promise of the log follows from the settings of the start alone.
    fn is_plain(&self) -> bool {
        !self.lattice && !self.mode_changes && self.disk.write_error + self.disk.sync_error == 0.0
    }

    /// Makes the plan one of its variety. Tests that narrow plans want other things.
    pub(super) fn vary(&mut self, limits: &Limits) {
        if limits.mode.is_some() || limits.lattice.is_some() || limits.only.is_some() {
            return;
        }
        let mut r = Random::new(self.seed, "varieties");
        match self.seed % 16 {
            3 => self.switch_log(&mut r),
            8 => self.flip_last_frames(&mut r),
            10 => self.sync_long(&mut r),
            _ => {}
        }
    }

    fn make_plain(&mut self, mode: Mode) {
        (self.mode, self.mode_changes, self.lattice) = (mode, false, false);
        (self.disk.write_error, self.disk.sync_error) = (0.0, 0.0);
        self.disk.full.clear();
        (self.maxmemory, self.policy) = (None, "noeviction");
    }

    /// That many ends, spread over the run, of which none is in a start.
    fn end_often(&mut self, r: &mut Random, ends: &[Ending]) {
        let count = ends.len() as u64;
        let total = self.commands_per_client * self.clients as u64;
        let crash = |(n, ending): (u64, &Ending)| Crash {
            ending: *ending,
            during_load_us: None,
            ..Self::crash(r, total * n / count, total / count, self.workers, false)
        };
        self.crashes = (0..).zip(ends).map(crash).collect();
    }

    fn switch_log(&mut self, r: &mut Random) {
        self.make_plain(r.weighted(&[(3, Mode::Always), (1, Mode::Everysec), (1, Mode::No)]));
        self.operator_us = r.skewed(3_000, 60_000);
        self.think_us = r.skewed(20_000, 200_000);
        self.ballast = r.weighted(&[(1, 0), (1, 30), (1, 100)]);
        let all = [
            Ending::Clean,
            Ending::Clean,
            Ending::Kill,
            Ending::PowerLoss,
        ];
        let ends: Vec<Ending> = (0..4).map(|_| *r.pick(&all)).collect();
        self.end_often(r, &ends);
    }

    fn flip_last_frames(&mut self, r: &mut Random) {
        self.make_plain(Mode::Always);
        let all = [Ending::Kill, Ending::PowerLoss];
        let ends: Vec<Ending> = (0..2).map(|_| *r.pick(&all)).collect();
        self.end_often(r, &ends);
        // A second one might meet the first one's frame, which is damaged then and not flipped.
        if let Some(last) = self.crashes.last_mut() {
            last.flips = 1;
        }
    }

    fn sync_long(&mut self, r: &mut Random) {
        self.make_plain(Mode::Everysec);
        (self.workers, self.last_workers) = (1, 1);
        (self.clients, self.commands_per_client) = (2, 120);
        (self.texts, self.think_us) = (3, 1_000_000);
        if self.seed % 32 == 26 {
            (self.commands_per_client, self.think_us) = (400, 50_000);
        }
        self.end_often(r, &[Ending::PowerLoss; 4]);
        self.crashes.iter_mut().for_each(|crash| crash.workers = 1);
    }
}
