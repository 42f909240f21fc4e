//! What a worker hands to its embedder: outcomes of requests whose replies did
//! not exist yet when they were submitted.

use crate::batch::{Batch, Header};

/// What became of requests after [`super::Submitted::Pending`] or
/// [`super::Submitted::Barrier`]. The embedder takes outcomes in order with
/// [`super::Worker::next_outcome`], after every call that may run requests and
/// before it takes messages.
#[derive(Debug)]
pub enum Outcome {
    /// The replies to these requests, except where [`crate::batch::ReplyRange::later`]
    /// is set. Where [`crate::batch::Request::moved`] is set the request was not
    /// executed: its keys have moved to another node, and the embedder may ask
    /// there instead. Give the batch to [`super::Worker::recycle`] afterwards.
    Replies(Box<Batch>),
    /// The request was executed, but the log that should hold it cannot be
    /// written: its outcome is unknown.
    Lost(Header),
    /// The client of this request begins to wait for data. Where the client is
    /// gone, the embedder ends the wait with [`super::WaitEnd::Gone`].
    Waits(Header),
}
