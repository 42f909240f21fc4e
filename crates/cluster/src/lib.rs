//! A node among others, as state machines without clock, thread, socket or file.
//!
//! The server gathers what they observe, calls them and carries out what they answer; the
//! simulator drives the same machines with virtual time.
//!
//! | module | what it has |
//! |---|---|
//! | [`control`] | which mapping is in force, which worker still has to be told, the proposal of the next epoch |
#![forbid(unsafe_code)]

pub mod control;
