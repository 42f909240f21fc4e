//! CONFIG REWRITE: writes the settings back to the file they came from.

use super::{ADMIN, spec};
use crate::command::SessionCommand;
use rufous_command::Failure;

pub static REWRITE: SessionCommand = SessionCommand {
    spec: spec(
        "config|rewrite",
        2,
        ADMIN,
        "O(1)",
        "",
        "Refuses: settings are not written to files.",
    ),
    run: |_, _, _| {
        Err(Failure::from(
            "ERR The server is running without a config file",
        ))
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn there_is_no_file() {
        Rig::new(1).check(
            "CONFIG REWRITE",
            "-ERR The server is running without a config file\r\n",
        );
    }
}
