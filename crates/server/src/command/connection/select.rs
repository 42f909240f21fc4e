//! SELECT: which numbered database the connection works on.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Flags, options};

pub static SELECT: SessionCommand = SessionCommand {
    spec: spec(
        "select",
        "1.0.0",
        2,
        Flags::FAST.or(Flags::LOCAL).or(Flags::SELECT),
        "index",
        "Changes the database of the connection.",
    ),
    run: |session, args, reply| {
        session.connection()?.db = options::database(args.get(1))?;
        reply.ok();
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn databases_are_apart() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            rig.check("SET k zero", "+OK\r\n");
            rig.check("SELECT 15", "+OK\r\n");
            rig.check("GET k", "$-1\r\n");
            rig.check("SELECT 16", "-ERR DB index is out of range\r\n");
            rig.check("SELECT -1", "-ERR DB index is out of range\r\n");
            rig.check(
                "SELECT x",
                "-ERR value is not an integer or out of range\r\n",
            );
            rig.check("SELECT 0", "+OK\r\n");
            rig.check("GET k", "$4\r\nzero\r\n");
        }
    }

    #[test]
    fn requests_behind_it_in_a_pipeline_use_the_new_database() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let client = rig.connect(0);
            rig.send(
                client,
                b"SET k 0\r\nSELECT 1\r\nSET k 1\r\nGET k\r\nSELECT 0\r\nGET k\r\n",
            );
            assert_eq!(
                rig.take(client),
                "+OK\r\n+OK\r\n+OK\r\n$1\r\n1\r\n+OK\r\n$1\r\n0\r\n"
            );
        }
    }
}
