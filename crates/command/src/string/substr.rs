//! SUBSTR: the old name of GETRANGE.

use super::getrange;
use crate::{Keys, command};

command! {
    /// Reads a part of the string at a key: an older name of GETRANGE.
    SUBSTR = getrange::run: "substr", syntax "key start end", arity 4, group String, since "1.0.0",
    flags READONLY, complexity "O(N) with N bytes in the reply", keys Keys::FIRST,
}

#[cfg(test)]
crate::testing::transcripts! {
    answers_as_getrange_does: "
        SET k hello => +OK
        SUBSTR k 1 -2 => 'ell'
        SUBSTR none 1 -2 => ''
    "
}
