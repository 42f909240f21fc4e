//! The messages by which two nodes prove the secret of their cluster.

use bytes::Bytes;

/// The first message of a node that asks for proof: `crates/wire/src/proof.rs` describes it and the
/// following two.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Challenge {
    #[prost(bytes = "vec", tag = "1")]
    pub nonce: Vec<u8>,
}

/// The dialler's proof that it knows the secret.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Proof {
    #[prost(bytes = "vec", tag = "1")]
    pub mac: Vec<u8>,
}

/// A `Hello` and the proof that a node which knows the secret has sent it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sealed {
    #[prost(bytes = "bytes", tag = "1")]
    pub hello: Bytes,
    #[prost(bytes = "vec", tag = "2")]
    pub mac: Vec<u8>,
}
