//! Commands on keys, whatever they hold.

use crate::Command;

pub static COMMANDS: &[&Command] = &[];
