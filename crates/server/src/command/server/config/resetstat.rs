//! CONFIG RESETSTAT: begins to count anew.

use super::{ADMIN, spec};
use crate::command::SessionCommand;
use crate::front::Front;
use crate::front::shared::Counters;
use rufous_kernel::stats::CommandStats;

pub static RESETSTAT: SessionCommand = SessionCommand {
    spec: spec(
        "config|resetstat",
        2,
        ADMIN,
        "O(1)",
        "",
        "Sets the statistics that INFO and LATENCY HISTOGRAM show to zero.",
    ),
    run: |session, _, reply| {
        session.ask_all(reply, |front, _| reset(front), |_, _, reply| reply.ok());
        Ok(())
    },
};

fn reset(front: &mut Front) {
    front
        .kernel
        .stats_mut()
        .iter_mut()
        .for_each(|stats| *stats = CommandStats::default());
    // Who is suspended is bookkeeping, not a statistic.
    front.counters = Counters {
        suspended: front.counters.suspended,
        ..Counters::default()
    };
    front.shard_base = front.kernel.shard.counters();
    front.evict_base = front.kernel.evictions();
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn counts_begin_anew() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            for key in ["a", "b", "c", "d"] {
                rig.run(&format!("GET {key}"));
            }
            rig.run("NOSUCH");
            let before = rig.run("INFO everything");
            assert!(
                before.contains("cmdstat_get:calls=4,")
                    && before.contains("errorstat_ERR:count=1\r\n"),
                "{before}"
            );
            rig.check("CONFIG RESETSTAT", "+OK\r\n");
            let after = rig.run("INFO everything");
            assert!(
                !after.contains("cmdstat_get") && !after.contains("errorstat_"),
                "{after}"
            );
            assert!(after.contains("\r\ntotal_error_replies:0\r\n"), "{after}");
        }
    }
}
