//! The wall clocks of other nodes.

/// Asks for the other node's wall clock; the time is that of the asker's clock.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AskClock {
    #[prost(uint64, tag = "1")]
    pub asked_us: u64,
}

/// The wall clock, in microseconds since the Unix epoch.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Clock {
    #[prost(uint64, tag = "1")]
    pub asked_us: u64,
    #[prost(uint64, tag = "2")]
    pub unix_us: u64,
}
