//! Membership of a node in a cluster, as state machines without clock, thread, socket or file.
//!
//! The server collects their inputs, calls them and carries out their outputs; the simulator drives
//! the same machines with virtual time.
//!
//! | module | what it has |
//! |---|---|
//! | [`control`] | which mapping is in force, which worker still has to be told, the proposal of the next epoch |
//! | [`forward`] | requests for other nodes: in flight, sent again, given up |
//! | [`serving`] | requests of other nodes: their sessions, their order, replies on the way |
//! | [`splitting`] | requests that several nodes execute: their parts, and one reply of theirs |
//! | [`composing`] | transactions over slots: what slots execute, and the client's reply |
//! | [`links`] | sessions of one worker with other nodes |
//! | [`peer`] | messages between workers about sessions, and what links pass on |
//! | [`common`] | what all workers of a node share: [`rooms`], bytes that wait for each node; [`reports`], progress of learners; [`health`], the nodes that it hears, disks that fail, and (`standing`) workers that stand still |
//! | [`way`] | which nodes a request goes to |
//! | [`damage`] | slots that need the operator |
//! | [`alike`] | writes of several slots as one message |
//! | [`figures`] | counters |
#![forbid(unsafe_code)]

pub mod alike;
pub mod common;
pub mod composing;
pub mod control;
pub mod damage;
pub mod figures;
pub mod forward;
pub mod health;
pub mod links;
pub mod peer;
pub mod reports;
pub mod rooms;
pub mod serving;
pub mod splitting;
mod standing;
pub mod way;
