//! A node among others, as state machines without clock, thread, socket or file.
//!
//! The server gathers what they observe, calls them and carries out what they answer; the
//! simulator drives the same machines with virtual time.
//!
//! | module | what it has |
//! |---|---|
//! | [`control`] | which mapping is in force, which worker still has to be told, the proposal of the next epoch |
//! | [`links`] | sessions of one worker with other nodes |
//! | [`peer`] | what workers tell one another of sessions, and what links pass on |
//! | [`common`] | what all workers of a node share: [`rooms`], bytes that wait for each node; [`reports`], progress of learners |
//! | [`way`] | which nodes a request goes to |
//! | [`damage`] | slots that need the operator |
//! | [`figures`] | what is counted |
#![forbid(unsafe_code)]

pub mod common;
pub mod control;
pub mod damage;
pub mod figures;
pub mod links;
pub mod peer;
pub mod reports;
pub mod rooms;
pub mod way;
