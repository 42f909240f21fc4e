//! Tests of the simulator itself: its runs repeat, saved seeds pass, and each fault that is
//! planted is caught.

mod chains;
mod cluster;
mod common;
mod gossip;
mod planted;
mod seeds;
mod traces;
