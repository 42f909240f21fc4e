//! Requests that wait for data at the node that has their keys: how the node of the client ends them.

/// Ends requests that wait for data at the receiver. Each of them still gets a reply: of a timeout, an
/// error, or what it has got before. Sent in the class of requests, behind these requests.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EndWaits {
    #[prost(message, repeated, tag = "1")]
    pub ends: Vec<EndWait>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct EndWait {
    /// The request's number.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// How it ends: see [`How`].
    #[prost(uint32, tag = "2")]
    pub how: u32,
}

/// How the sender of a request ends its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum How {
    /// As by its timeout. Also if its client is gone.
    TimedOut = 0,
    /// With the error of `CLIENT UNBLOCK … ERROR`.
    Unblocked = 1,
    /// With the error that the node of the client stops.
    Stops = 2,
}

impl How {
    pub fn from_number(number: u32) -> Option<Self> {
        let all = [Self::TimedOut, Self::Unblocked, Self::Stops];
        all.into_iter().find(|how| *how as u32 == number)
    }
}
