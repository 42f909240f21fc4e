//! Mutual proof of a node and the coordinator of its machine that they know the cluster's secret, before either of them
//! tells the other anything.
//!
//! ```text
//!   the node                                the coordinator
//!     Challenge(nonce) ─────────────────────▶
//!            ◀───────────────────── Challenge(nonce)
//!     Proof(code) ──────────────────────────▶ checks
//!     checks ◀─────────────────────────── Proof(code)
//! ```
//!
//! Codes are HMAC-SHA256 (`ring`), with the secret as the key, of the sender's role and both nonces: a code is valid for one
//! connection and one direction. They are compared in constant time. Only the kernel of this machine carries what
//! follows, so that it needs no codes.

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::io;

/// Bytes of a nonce, and of a code.
pub const CODE: usize = 32;
pub type Code = [u8; CODE];

/// What nodes and the coordinator have to know to belong to the cluster.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl Secret {
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Which side a code is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Node = 1,
    Coordinator = 2,
}

/// The nonces of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nonces {
    pub(super) node: Code,
    pub(super) coordinator: Code,
}

/// So that no code of another protocol with the same key is one of this.
const LABEL: [u8; 16] = *b"rufous meeting 1";

pub(super) fn nonce() -> io::Result<Code> {
    let mut nonce = [0; CODE];
    let filled = SystemRandom::new().fill(&mut nonce);
    filled.map_err(|_| io::Error::other("the operating system gave no random numbers"))?;
    Ok(nonce)
}

pub(super) fn code(secret: &Secret, role: Role, nonces: &Nonces) -> Code {
    let signed = hmac::sign(&secret.0, &text(role, nonces));
    let mut code = [0; CODE];
    code.copy_from_slice(signed.as_ref());
    code
}

pub(super) fn is_code(secret: &Secret, role: Role, nonces: &Nonces, code: &Code) -> bool {
    hmac::verify(&secret.0, &text(role, nonces), code).is_ok()
}

fn text(role: Role, nonces: &Nonces) -> Vec<u8> {
    [&LABEL[..], &[role as u8], &nonces.node, &nonces.coordinator].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_of_one_secret_one_side_and_one_connection() {
        let (secret, other) = (Secret::new(b"birds"), Secret::new(b"fish"));
        let (node, coordinator) = (nonce().expect("random"), nonce().expect("random"));
        let nonces = Nonces { node, coordinator };
        let valid = code(&secret, Role::Node, &nonces);
        assert!(is_code(&secret, Role::Node, &nonces, &valid));
        assert!(!is_code(&other, Role::Node, &nonces, &valid));
        assert!(!is_code(&secret, Role::Coordinator, &nonces, &valid));
        let later = Nonces {
            coordinator: nonce().expect("random"),
            ..nonces
        };
        assert!(!is_code(&secret, Role::Node, &later, &valid));
        let swapped = Nonces {
            node: coordinator,
            coordinator: node,
        };
        assert!(!is_code(&secret, Role::Node, &swapped, &valid));
    }
}
