//! One end of a connection, by hand.

use crate::common::envelope;
use rufous_wire::frame;
use rufous_wire::message::ID;
use rufous_wire::{Body, Class, Envelope, Event, Local, Peers, Refused, Session};

/// A node that speaks version 1 alone.
pub(crate) fn local(id: u8) -> Local {
    Local {
        cluster: "birds".to_owned(),
        id: [id; ID],
        incarnation: 1,
        start: u64::from(id),
        oldest: 1,
        newest: 1,
        program: format!("{id}.0.0"),
    }
}

/// A node with a session: one end of a connection.
pub(crate) struct End {
    pub(crate) session: Session,
    pub(crate) peers: Peers,
    pub(crate) events: Vec<Event>,
}

impl End {
    pub(crate) fn new(local: Local, expected: Option<u8>) -> Self {
        let expected = expected.map(|id| [id; ID]);
        Self {
            session: Session::new(local, expected, 300),
            peers: Peers::default(),
            events: Vec::new(),
        }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(bytes, &self.peers, &mut self.events);
    }

    pub(crate) fn out(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while self.session.transmit(&mut out, 1 << 20) {}
        out
    }

    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.events.iter().find_map(|event| match event {
            Event::Closed(refused) => Some(refused),
            _ => None,
        })
    }

    pub(crate) fn messages<'a>(&'a self) -> Vec<&'a Envelope> {
        let message = |event: &'a Event| match event {
            Event::Message { envelope, .. } => Some(envelope),
            _ => None,
        };
        self.events.iter().filter_map(message).collect()
    }
}

/// Carries bytes between both until there are none.
pub(crate) fn settle(a: &mut End, b: &mut End) {
    loop {
        let (to_b, to_a) = (a.out(), b.out());
        if to_a.is_empty() && to_b.is_empty() {
            return;
        }
        a.receive(&to_a);
        b.receive(&to_b);
    }
}

/// Both up, with these versions.
pub(crate) fn pair_of(ours: (u16, u16), theirs: (u16, u16)) -> (End, End) {
    let end = |id, (oldest, newest)| {
        let local = Local {
            oldest,
            newest,
            ..local(id)
        };
        End::new(local, None)
    };
    let (mut a, mut b) = (end(1, ours), end(2, theirs));
    settle(&mut a, &mut b);
    assert!(a.session.is_up() && b.session.is_up());
    (a, b)
}

pub(crate) fn raw(version: u16, class: Class, body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode(version, class, &envelope(body), &mut bytes).expect("small");
    bytes
}
