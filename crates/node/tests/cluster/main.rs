//! Nodes of one cluster: that they find each other, by real sockets, through
//! joins, ends and a coordinator that is away; and what is refused of who
//! is none of them.

mod alone;
mod apart;
mod begun;
mod blocking;
mod deleting;
mod doubt;
mod drained;
mod fake;
mod gossip;
mod groups;
mod hostile;
mod large;
mod listing;
mod lost;
mod meeting;
mod node;
mod options;
mod plain;
mod processes;
mod redirected;
mod restored;
mod returning;
mod secret;
mod serving;
mod sessions;
mod several;
mod sick;
mod strangers;
mod together;
mod versions;
mod wide;
