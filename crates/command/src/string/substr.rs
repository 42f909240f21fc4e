//! SUBSTR: the old name of GETRANGE.

use super::getrange;
use crate::{Keys, command};

command! {
    /// Reads a part of the string at a key: an older name of GETRANGE.
    SUBSTR = getrange::run: "substr", syntax "key start end", arity 4, group String, since "1.0.0",
    flags READONLY, complexity "O(N) with N bytes in the reply", keys Keys::FIRST,
}

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
