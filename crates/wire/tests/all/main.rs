//! Messages between nodes. One binary, so that the package is linked once.

mod check;
mod common;
mod end;
mod golden;
mod proof;
mod random;
mod session;
mod versions;
