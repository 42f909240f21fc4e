//! PFSELFTEST: checks the arithmetic of HyperLogLogs.

use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};
use rufous_datatype::hll;

pub static PFSELFTEST: SessionCommand = SessionCommand {
    spec: Spec {
        name: "pfselftest",
        summary: "Checks that registers and estimates of HyperLogLogs are right on this machine.",
        since: "2.8.9",
        group: Group::HyperLogLog,
        complexity: "O(1), with a large constant",
        arity: 1,
        flags: Flags::ADMIN,
        keys: Keys::None,
        syntax: "",
    },
    run,
};

fn run(_: &mut Session<'_>, _: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    hll::self_test().map_err(|what| Failure::from(format!("ERR TESTFAILED {what}")))?;
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn passes() {
        Rig::new(1).check("PFSELFTEST", "+OK\r\n");
    }
}
