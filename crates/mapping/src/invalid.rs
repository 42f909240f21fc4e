//! What is wrong with a mapping that came from elsewhere.

use std::fmt;

/// Says what is wrong, for the log: whoever sent it is not to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid(pub &'static str);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Invalid {}
