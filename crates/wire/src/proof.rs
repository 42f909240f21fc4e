//! Mutual proof of two nodes that they know the cluster's secret: the part of the handshake before
//! either of them tells the other anything.
//!
//! ```text
//!   the node that dials                         the node that accepts
//!     Challenge(nonce) ───────────╮   ╭─────────── Challenge(nonce)
//!                     ◀───────────┼───╯
//!                                 ╰──────────────▶
//!     Proof(mac) ────────────────────────────────▶ checks
//!     checks ◀──────────────────────────────────── Sealed(Hello, mac)
//!     Sealed(Hello, mac) ────────────────────────▶ checks
//! ```
//!
//! Codes are HMAC-SHA256 (`ring`), with the secret as the key, of the sender's role and step, both
//! nonces, and in [`Sealed`] the epoch and the bytes of the `Hello`. So:
//!
//! 1. Before a peer's proof is checked, it has received a nonce and, if this node dialled, one code.
//! 2. A code is valid for one connection, one direction and one step: it can be neither replayed nor
//!    reflected, and the id in a `Hello` cannot be exchanged.
//! 3. Codes are compared in constant time.
//!
//! It protects the beginning of a session alone: a process that can alter packets on the way between
//! two nodes can take over a session without TLS.

use crate::message::{Challenge, Hello, Proof, Sealed};
use crate::planted::{self, Planted};
use crate::refused::Refused;
use crate::scan;
use prost::Message;
use ring::hmac;
use std::fmt;

/// Bytes of a challenge, and of a code.
pub const NONCE: usize = 32;
pub const MAC: usize = 32;

/// Limits on the bytes of a secret. A peer that was dialled can try secrets against the code that it
/// received, so a short one would not hold.
pub const MIN_SECRET: usize = 16;
pub const MAX_SECRET: usize = 1024;

pub type Nonce = [u8; NONCE];

/// What a node has to know to belong to the cluster.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl Secret {
    /// `None` if it is too short or too long.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let fits = (MIN_SECRET..=MAX_SECRET).contains(&bytes.len());
        fits.then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    fn code(&self, text: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, text).as_ref().to_vec()
    }

    fn check(&self, text: &[u8], code: &[u8]) -> Result<(), Refused> {
        if planted::is(Planted::ProofNotChecked) {
            return Ok(());
        }
        hmac::verify(&self.0, text, code).map_err(|_| Refused::Unproven)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Which side of a connection a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Dialler,
    Acceptor,
}

/// Which peers a node with a secret accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demand {
    /// Those that prove that they know it.
    #[default]
    Required,
    /// All of them: it proves its own knowledge to those that ask. For the time in which the nodes
    /// of a running cluster get their secret, one after the other.
    Optional,
}

/// The secret of a node, and its source of nonces.
#[derive(Clone, Debug)]
pub struct Auth {
    secret: Secret,
    demand: Demand,
    nonces: Secret,
}

impl Auth {
    /// `entropy` is random and new with every start of the node.
    pub fn new(secret: Secret, demand: Demand, entropy: [u8; NONCE]) -> Self {
        Self {
            secret,
            demand,
            nonces: Secret(hmac::Key::new(hmac::HMAC_SHA256, &entropy)),
        }
    }

    /// For one connection: the `count`th of a worker.
    pub fn connection(&self, role: Role, worker: u16, count: u64) -> Proving {
        let which = [&worker.to_le_bytes()[..], &count.to_le_bytes()].concat();
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&self.nonces.code(&which));
        Proving {
            secret: self.secret.clone(),
            demand: self.demand,
            role,
            nonce,
        }
    }
}

/// What one connection needs. A nonce is used once.
#[derive(Clone, Debug)]
pub struct Proving {
    pub secret: Secret,
    pub demand: Demand,
    pub role: Role,
    pub nonce: Nonce,
}

impl Sealed {
    pub fn new(hello: &Hello, mac: Vec<u8>) -> Self {
        let hello = hello.encode_to_vec().into();
        Self { hello, mac }
    }
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The peer's nonce is not known.
    Met,
    /// Waits for the peer's proof: of the dialler a `Proof`, then of both a `Sealed`.
    Challenged,
    /// The dialler has proved itself, and was told this node's name.
    Proved,
    Done,
}

/// The handshake of one connection. See the module's description.
#[derive(Debug)]
pub(crate) struct Handshake {
    proving: Proving,
    theirs: Nonce,
    stage: Stage,
}

impl Handshake {
    pub(crate) fn new(proving: Proving) -> Self {
        Self {
            proving,
            theirs: [0; NONCE],
            stage: Stage::Met,
        }
    }

    pub(crate) fn demand(&self) -> Demand {
        self.proving.demand
    }

    pub(crate) fn role(&self) -> Role {
        self.proving.role
    }

    pub(crate) fn nonce(&self) -> Vec<u8> {
        self.proving.nonce.to_vec()
    }

    /// Whether an unproven name is accepted: the peer has not asked for proof either.
    pub(crate) fn takes_names(&self) -> bool {
        self.proving.demand == Demand::Optional && self.stage == Stage::Met
    }

    /// A peer that proves itself to those that ask sends its nonce in its unproven name.
    pub(crate) fn on_name(&mut self, hello: &Hello) -> Result<Option<Proof>, Refused> {
        if self.stage != Stage::Met || hello.nonce.is_empty() {
            return Err(Refused::Unproven);
        }
        self.on_nonce(&hello.nonce)
    }

    /// What the dialler answers.
    pub(crate) fn on_challenge(&mut self, challenge: &Challenge) -> Result<Option<Proof>, Refused> {
        if self.stage != Stage::Met {
            return Err(Refused::Misplaced("a second challenge"));
        }
        self.on_nonce(&challenge.nonce)
    }

    fn on_nonce(&mut self, nonce: &[u8]) -> Result<Option<Proof>, Refused> {
        let wrong = |_| Refused::Garbage("a challenge of the wrong length");
        self.theirs = nonce.try_into().map_err(wrong)?;
        self.stage = Stage::Challenged;
        let proof = || Proof {
            mac: self.code(Step::Proof, Role::Dialler, &[]),
        };
        Ok((self.proving.role == Role::Dialler).then(proof))
    }

    /// The dialler has proved itself: the acceptor may tell its name.
    pub(crate) fn on_proof(&mut self, proof: &Proof) -> Result<(), Refused> {
        if (self.stage, self.proving.role) != (Stage::Challenged, Role::Acceptor) {
            return Err(Refused::Misplaced("a proof that was not asked for"));
        }
        self.check(Step::Proof, Role::Dialler, &[], &proof.mac)?;
        self.stage = Stage::Proved;
        Ok(())
    }

    /// The peer's name, proved to be that of a node that knows the secret.
    pub(crate) fn on_sealed(&mut self, epoch: u64, sealed: &Sealed) -> Result<Hello, Refused> {
        let (expected, sender) = match self.proving.role {
            Role::Dialler => (Stage::Challenged, Role::Acceptor),
            Role::Acceptor => (Stage::Proved, Role::Dialler),
        };
        if self.stage != expected {
            return Err(Refused::Misplaced("a proof that was not asked for"));
        }
        let text = [&epoch.to_le_bytes()[..], &sealed.hello].concat();
        self.check(Step::Name, sender, &text, &sealed.mac)?;
        self.stage = Stage::Done;
        if !scan::has_few(&sealed.hello) {
            return Err(Refused::Garbage("not a message, or too many fields"));
        }
        let hello = Hello::decode(&sealed.hello[..]);
        let hello = hello.map_err(|_| Refused::Garbage("not a message"))?;
        hello.check().map_err(Refused::Garbage)?;
        Ok(hello)
    }

    /// This node's name for the peer.
    pub(crate) fn seal(&self, epoch: u64, hello: &Hello) -> Sealed {
        let hello = hello.encode_to_vec();
        let text = [&epoch.to_le_bytes()[..], &hello].concat();
        Sealed {
            mac: self.code(Step::Name, self.proving.role, &text),
            hello: hello.into(),
        }
    }

    fn code(&self, step: Step, sender: Role, text: &[u8]) -> Vec<u8> {
        self.proving.secret.code(&self.text(step, sender, text))
    }

    fn check(&self, step: Step, sender: Role, text: &[u8], code: &[u8]) -> Result<(), Refused> {
        self.proving
            .secret
            .check(&self.text(step, sender, text), code)
    }

    /// What a code is made of. All parts but the last have a fixed length.
    fn text(&self, step: Step, sender: Role, text: &[u8]) -> Vec<u8> {
        let (ours, theirs) = (&self.proving.nonce, &self.theirs);
        let (dialler, acceptor) = match self.proving.role {
            Role::Dialler => (ours, theirs),
            Role::Acceptor => (theirs, ours),
        };
        let which = [step as u8, sender as u8];
        [&LABEL[..], &which, dialler, acceptor, text].concat()
    }
}

/// So that no code of another protocol with the same key is one of this.
const LABEL: [u8; 16] = *b"rufous session 1";

#[derive(Clone, Copy)]
enum Step {
    Proof,
    Name,
}
