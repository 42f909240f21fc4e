//! SUBSTR: the old name of GETRANGE.

use super::getrange;
use crate::{Command, Flags, Group, Keys, Spec};

pub static SUBSTR: Command = Command {
    spec: Spec {
        name: "substr",
        summary: "Reads a part of the string at a key: an older name of GETRANGE.",
        since: "1.0.0",
        group: Group::String,
        complexity: "O(N) with N bytes in the reply",
        arity: 4,
        flags: Flags::READONLY,
        keys: Keys::FIRST,
        syntax: "key start end",
    },
    run: getrange::run,
};

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn answers_as_getrange_does() {
        let mut rig = Rig::new();
        rig.check("SET k hello", "+OK\r\n");
        rig.check("SUBSTR k 1 -2", "$3\r\nell\r\n");
        rig.check("SUBSTR none 1 -2", "$0\r\n\r\n");
    }
}
