//! Commands on the bits of strings.

use crate::Command;

pub static COMMANDS: &[&Command] = &[];
