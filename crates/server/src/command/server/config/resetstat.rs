//! CONFIG RESETSTAT: begins to count anew.

use super::{ADMIN, spec};
use crate::command::SessionCommand;

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
        session.ask_all(
            reply,
            |local, _| local.reset_statistics(),
            |_, _, reply| reply.ok(),
        );
        Ok(())
    },
};

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
