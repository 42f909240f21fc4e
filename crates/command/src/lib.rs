//! command
#![forbid(unsafe_code)]
