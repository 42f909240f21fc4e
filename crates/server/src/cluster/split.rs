//! Requests for several nodes: the parts that [`Splitting`] has of them are run and forwarded.
//!
//! Commands that read, count or remove each key independently are split; commands on all keys go to
//! all nodes that have slots. All others are refused before any part runs.

use super::jobs::Job;
use super::way::Way;
use crate::front::request::Request;
use crate::front::{Front, Message};
use rufous_base::{Args, Effects, Now, Span};
use rufous_cluster::splitting::{Joins, Plan, find};
use rufous_command::{Failure, Flags, Joined, Reply, Spec};
use rufous_datatype::integer;
use rufous_kernel::{Header, Submitted};
use rufous_mapping::NodeNo;
use std::collections::BTreeSet;

/// The words of a request, and the node that they are for, unless it is this one.
type Words = (Option<NodeNo>, Vec<u8>, Vec<Span>);

pub(super) fn can_split(spec: &Spec) -> bool {
    spec.flags.has(Flags::PER_KEY)
}

impl Front {
    /// Sends a request to all nodes that have its keys, if there are others.
    #[cold]
    pub(crate) fn submit_elsewhere(
        &mut self,
        now: Now,
        way: &Way,
        request: &Request<'_>,
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let spec = self.table.spec(header.command);
        let reads = spec.flags.has(Flags::READONLY);
        self.connections.note_deadline(now, header.conn, spec, args);
        if let Some(connection) = self.connection(header.conn) {
            connection.is_far = reads;
        }
        match way {
            way if self.apart(now).takes(request, way, args) => {
                let out = &mut fx.output;
                self.apart(now).submit(request, header, args, out)
            }
            Way::There(no) => self.forward(*no, header, args),
            Way::Apart(heads) => self.submit_split(now, request, heads, header, args, fx),
            Way::All(others) => self.submit_wide(now, others, header, args, fx),
            Way::Here | Way::None(_) => {
                debug_assert!(false, "run here, or refused");
                Submitted::Done
            }
        }
    }

    /// Runs a request at all nodes that have its keys.
    fn submit_split(
        &mut self,
        now: Now,
        request: &Request<'_>,
        heads: &[Option<NodeNo>],
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let spec = self.table.spec(header.command);
        debug_assert!(can_split(spec), "such a request was refused");
        let how = match spec.flags.joined() {
            _ if header.quiet => Joins::Quiet,
            Joined::Sum => Joins::Sum,
            Joined::List => Joins::Elements,
            Joined::Ok | Joined::Any | Joined::Walk => Joins::Quiet,
        };
        let plan = Plan::new(heads);
        let parts = plan.parts.iter().map(|(head, keys)| {
            let keys = keys
                .iter()
                .map(|key| args.get(request.keys[*key].arg as usize));
            words_of(*head, [args.get(0)].into_iter().chain(keys))
        });
        let parts: Vec<Words> = parts.collect();
        self.submit_parts(now, header, (how, plan.places), &parts, fx)
    }

    fn submit_wide(
        &mut self,
        now: Now,
        others: &[NodeNo],
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let how = match self.table.spec(header.command).flags.joined() {
            Joined::Walk => return self.submit_walk(now, others, header, args, fx),
            Joined::Sum => Joins::Sum,
            Joined::List => Joins::Lists,
            Joined::Any => Joins::One(self.kernel.rng().next_u64()),
            Joined::Ok => Joins::Quiet,
        };
        let nodes = [None].into_iter().chain(others.iter().copied().map(Some));
        let parts = nodes.map(|node| words_of(node, args.iter_from(0)));
        let parts: Vec<Words> = parts.collect();
        self.submit_parts(now, header, (how, Vec::new()), &parts, fx)
    }

    fn submit_walk(
        &mut self,
        now: Now,
        others: &[NodeNo],
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let own = self.links().and_then(|links| links.own());
        let nodes: BTreeSet<NodeNo> = others.iter().copied().chain(own).collect();
        let text = args.get(1);
        let cursor = if text.is_empty() {
            Some(0)
        } else {
            integer::parse_u64_lenient(text)
        };
        let Some(cursor) = cursor else {
            Reply::new(&mut fx.output, header.resp3).error(&Failure::INVALID_CURSOR);
            return Submitted::Done;
        };
        let Some((step, cursor)) = find(&nodes, cursor) else {
            // The cursor is invalid: nothing follows it.
            let mut reply = Reply::new(&mut fx.output, header.resp3);
            reply.array(2);
            reply.bulk(b"0");
            reply.array(0);
            return Submitted::Done;
        };
        let cursor = cursor.to_string();
        let mut words: Vec<&[u8]> = args.iter_from(0).collect();
        words[1] = cursor.as_bytes();
        let node = Some(step.at).filter(|no| Some(*no) != own);
        let parts = [words_of(node, words.into_iter())];
        self.submit_parts(now, header, (Joins::Walk(step), Vec::new()), &parts, fx)
    }

    /// Runs the parts of a request.
    fn submit_parts(
        &mut self,
        now: Now,
        header: &Header,
        (how, places): (Joins, Vec<u32>),
        parts: &[Words],
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let begun = self
            .peers
            .splitting
            .on_request(header, how, places, parts.len());
        for (part, (node, bytes, spans)) in begun.zip(parts) {
            let args = Args::new(bytes, spans, &mut []);
            let header = Header {
                conn: self
                    .peers
                    .jobs
                    .begin(Job::Part(part), header.db, header.resp3),
                key: 1,
                hash: self.kernel.shard.key(args.get(1)).hash,
                ..*header
            };
            match node {
                Some(no) => {
                    self.forward(*no, &header, &args);
                }
                None => self.run_words(now, &header, args, fx),
            }
        }
        Submitted::Barrier
    }
}

/// A request of these words.
fn words_of<'a>(node: Option<NodeNo>, words: impl Iterator<Item = &'a [u8]>) -> Words {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    (node, bytes, spans)
}
