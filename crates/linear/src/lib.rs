//! Linear transactions [Warp §3]: operations on keys of any slots, applied in one order, with one pass along the slots
//! and one back. No manager, no consensus, no trust in clocks.
//!
//! A slot is a replicated state machine: its head orders [`Record`]s, which its chain copies and its logs keep, and a
//! message leaves only when the records before it are kept. So a slot never forgets what it has said, whichever of its
//! copies fails; what is left is messages that are lost and heads that change. A transaction visits its slots in their
//! order:
//!
//! 1. *Forward*: each slot compares it with the transactions that it holds. It waits for those that conflict, checks
//!    its conditions, and proposes a time above all that it has proposed or learned.
//! 2. The last slot knows the maximum. With the identity of the transaction, that is its final [`Stamp`].
//! 3. *Backward*: each slot applies transactions that depend on one another in the order of final stamps, and passes
//!    on only what it has applied. So what reaches the first slot is applied everywhere.
//! 4. The first slot *settles* a transaction when all that came before it are settled: then its outcome is told.
//!    Without that, a reply could show a write whose predecessor another client does not see yet.
//! 5. The slots forget it, in order, once the node that it came from has its outcome and every log has it.
//!
//! Where one worker heads slots that follow one another, each of these steps is taken at all of them at once, *ahead* of
//! the message that orders it, so that they wait for copies and logs once ([`message::Ahead`]).
//!
//! | module | what it has |
//! |---|---|
//! | [`txn`] | transactions, their parts, and which of them depend on one another |
//! | [`message`] | messages between heads, records, and what a handler puts out |
//! | [`typed`] | commands on keys of any type, as operations |
//! | [`access`] | keys that are read or written, as operations |
//! | [`book`] | the replicated state of a slot: the transactions that it has not forgotten |
//! | [`head`] | what the head of a slot does, as a machine |
//! | [`survey`], [`fact`] | what others have of the transactions of slots that may have lost something |
//! | [`origin`] | the transactions of a node's clients |
//! | [`codec`] | messages as bytes |
//! | [`stored`] | entries as bytes: each transaction once |
//! | [`told`] | what slots tell clients, and add for later slots |
//! | [`planted`] | rules that can be switched off, to see that the model notices |
#![forbid(unsafe_code)]

pub mod access;
pub mod book;
pub mod codec;
pub mod fact;
pub mod head;
pub mod message;
pub mod origin;
pub mod planted;
pub mod stored;
pub mod survey;
pub mod told;
pub mod txn;
pub mod typed;

pub use access::Access;
pub use book::{Book, Entry};
pub use codec::Coded;
pub use fact::{At, Ending, Fact, Stage};
pub use head::{Head, Later, OTHER_ORDER, Others, State};
pub use message::{Ahead, Found, Message, Outcome, Output, Predecessor, Record, To};
pub use origin::Origin;
pub use survey::Survey;
pub use txn::{Holders, Operation, Pairs, Part, Relation, Stamp, Standing, Transaction, TxnId};
pub use typed::Typed;
