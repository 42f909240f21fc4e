//! Mistakes, planted one at a time, each of which the checker must find within
//! the rounds that tests give to every type.

use super::shelf::{Kind, Op, Reply, Shelf, State, View, rules, set};
use super::{TEST_ROUNDS, data_type};
use crate::algebra::{Algebra, Applied, Corrupt, DataType, Held, Merge, Rule, Tuning};
use rufous_base::rng::Rng;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// What may be wrong about a [`Planted`]; what is not given is right.
trait Mistake: 'static {
    fn admits(held: &[Held<Op>], new: &Held<Op>, view: View<'_>) -> bool {
        Shelf::admits(held, new, view)
    }
    fn documents(a: &Held<Op>, b: &Held<Op>, view: View<'_>) -> bool {
        Self::admits(&[*a], b, view)
    }
    fn execute(view: View<'_>, _asked: Option<&AtomicU64>, op: &Op) -> Reply {
        Shelf::execute(view, op)
    }
    fn commit(state: &mut State, op: &Op, tuning: &Tuning) {
        Shelf::commit(state, op, tuning);
    }
    fn apply(state: &mut State, op: &Op, tuning: &Tuning) -> Applied<Reply> {
        let before = Shelf::canonical(Shelf::view(state));
        let reply = Self::execute(Shelf::view(state), None, op);
        Self::commit(state, op, tuning);
        let changed = Shelf::canonical(Shelf::view(state)) != before;
        Applied { reply, changed }
    }
    fn combine(pending: &Op, new: &Op) -> Option<Op> {
        Shelf::combine(pending, new)
    }
    fn share(pending: &Op, new: &Op, combined: &Reply) -> (Reply, Reply) {
        Shelf::share(pending, new, combined)
    }
    fn merge(into: &mut State, from: View<'_>, tuning: &Tuning) -> bool {
        // The shelf has one.
        Shelf::MERGE.is_some_and(|merge| merge(into, from, tuning))
    }
    fn encode(op: &Op, out: &mut Vec<u8>) {
        Shelf::encode(op, out);
    }
    fn decode(from: &mut &[u8]) -> Result<Op, Corrupt> {
        Shelf::decode(from)
    }
    fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        Shelf::chunk(view, at, budget, out)
    }
}

/// A [`Shelf`] with a mistake.
struct Planted<M>(PhantomData<M>);

/// Counts its calls, for callers that must not call it.
#[derive(Debug)]
struct Asked {
    shelf: State,
    times: AtomicU64,
}

impl Asked {
    fn new(shelf: State) -> Self {
        Asked {
            shelf,
            times: AtomicU64::new(0),
        }
    }
}

impl Clone for Asked {
    fn clone(&self) -> Self {
        Asked {
            shelf: self.shelf.clone(),
            times: AtomicU64::new(self.times.load(Ordering::Relaxed)),
        }
    }
}

type Seen<'a> = (View<'a>, Option<&'a AtomicU64>);

impl<M: Mistake> Algebra for Planted<M> {
    type State = Asked;
    type View<'a> = Seen<'a>;
    type Op<'a> = Op;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "planted";
    const ABOUT: &'static str = Shelf::ABOUT;
    const MERGE: Option<Merge<Self>> =
        Some(|into, from, tuning| M::merge(&mut into.shelf, from.0, tuning));

    fn empty() -> Asked {
        Asked::new(Shelf::empty())
    }
    fn view(state: &Asked) -> Seen<'_> {
        (Shelf::view(&state.shelf), Some(&state.times))
    }
    fn execute(view: Seen<'_>, op: &Op) -> Reply {
        M::execute(view.0, view.1, op)
    }
    fn commit(state: &mut Asked, op: &Op, tuning: &Tuning) {
        M::commit(&mut state.shelf, op, tuning);
    }
    fn apply(state: &mut Asked, op: &Op, tuning: &Tuning) -> Applied<Reply> {
        M::apply(&mut state.shelf, op, tuning)
    }
    fn rules() -> &'static [Rule<Self>] {
        const { &rules::<Self>(|a, b, view| M::documents(a, b, view.0)) }
    }
    fn admits(held: &[Held<Op>], new: &Held<Op>, view: Seen<'_>) -> bool {
        M::admits(held, new, view.0)
    }
    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        M::combine(pending, new)
    }
    fn share(pending: &Op, new: &Op, combined: &Reply) -> (Reply, Reply) {
        M::share(pending, new, combined)
    }
    fn sample_state(rng: &mut Rng) -> Asked {
        Asked::new(Shelf::sample_state(rng))
    }
    fn sample_op(rng: &mut Rng) -> Op {
        Shelf::sample_op(rng)
    }
    fn canonical(view: Seen<'_>) -> Vec<u8> {
        let mut bytes = Shelf::canonical(view.0);
        let times = view.1.map_or(0, |times| times.load(Ordering::Relaxed));
        bytes.extend_from_slice(&times.to_le_bytes());
        bytes
    }
}

impl<M: Mistake> DataType for Planted<M> {
    const REDIS_NAME: &'static str = Shelf::REDIS_NAME;

    fn packed_view(bytes: &[u8]) -> Seen<'_> {
        (Shelf::packed_view(bytes), None)
    }
    fn from_packed(bytes: Vec<u8>) -> Asked {
        Asked::new(Shelf::from_packed(bytes))
    }
    fn packed(state: &Asked) -> Option<&[u8]> {
        Shelf::packed(&state.shelf)
    }
    fn into_buffer(state: Asked) -> Option<Vec<u8>> {
        Shelf::into_buffer(state.shelf)
    }
    fn is_empty(view: Seen<'_>) -> bool {
        Shelf::is_empty(view.0)
    }
    fn len(view: Seen<'_>) -> usize {
        Shelf::len(view.0)
    }
    fn heap_bytes(state: &Asked) -> usize {
        Shelf::heap_bytes(&state.shelf)
    }
    fn encoding(view: Seen<'_>, tuning: &Tuning) -> &'static str {
        Shelf::encoding(view.0, tuning)
    }
    fn encode(op: &Op, out: &mut Vec<u8>) {
        M::encode(op, out);
    }
    fn decode(from: &mut &[u8]) -> Result<Op, Corrupt> {
        M::decode(from)
    }
    fn chunk(view: Seen<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        M::chunk(view.0, at, budget, out)
    }
    fn extend(state: &mut Asked, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        Shelf::extend(&mut state.shelf, chunk, tuning)
    }
}

/// The checker finds the mistake, and its report says this.
#[track_caller]
fn found<M: Mistake>(says: &str) {
    for seed in [1, 1_000_000] {
        let failure = data_type::<Planted<M>>(seed, TEST_ROUNDS)
            .expect_err(says)
            .to_string();
        assert!(failure.contains(says), "{failure}");
    }
}

/// One mistake: its name, the methods that are wrong, and what the report says.
macro_rules! planted {
    ($($test:ident: $says:literal { $($wrong:item)* })+) => {$(
        #[test]
        fn $test() {
            struct Wrong;
            impl Mistake for Wrong { $($wrong)* }
            found::<Wrong>($says);
        }
    )+};
}

#[test]
fn without_a_mistake_nothing_is_found() {
    struct None;
    impl Mistake for None {}
    if let Err(failure) = data_type::<Planted<None>>(1, TEST_ROUNDS) {
        panic!("{failure}");
    }
}

planted! {
    a_pair_called_independent: "not independent" {
        fn admits(held: &[Held<Op>], new: &Held<Op>, view: View<'_>) -> bool {
            let puts = |held: &Held<Op>| matches!(held.op, Op::Put { .. } | Op::Count { .. });
            Shelf::admits(held, new, view) || held.iter().chain([new]).all(puts)
        }
    }
    pairs_right_and_triples_wrong: "not independent" {
        fn admits(held: &[Held<Op>], new: &Held<Op>, view: View<'_>) -> bool {
            held.iter().all(|held| Shelf::admits(&[*held], new, view))
        }
    }
    admitted_without_a_rule: "no rule lets" {
        fn documents(a: &Held<Op>, b: &Held<Op>, view: View<'_>) -> bool {
            let takes = |held: &Held<Op>| matches!(held.op, Op::Take { .. });
            Shelf::admits(&[*a], b, view) && !(takes(a) && takes(b))
        }
    }
    nothing_admitted_at_all: "alone is not admitted" {
        fn admits(_: &[Held<Op>], _: &Held<Op>, _: View<'_>) -> bool {
            false
        }
    }
    execute_that_changes: "execute changes the state" {
        fn execute(view: View<'_>, asked: Option<&AtomicU64>, op: &Op) -> Reply {
            if let (Some(times), Op::Total) = (asked, op) {
                times.fetch_add(1, Ordering::Relaxed);
            }
            Shelf::execute(view, op)
        }
    }
    a_shape_read_wrong: "on another shape" {
        fn admits(held: &[Held<Op>], _: &Held<Op>, _: View<'_>) -> bool {
            held.is_empty()
        }
        fn execute(view: View<'_>, _: Option<&AtomicU64>, op: &Op) -> Reply {
            match (view, op) {
                (View::Large(all), Op::Count { thing: 3 }) if all.len() == 4 => Reply::Number(0),
                _ => Shelf::execute(view, op),
            }
        }
    }
    commit_that_differs_from_apply: "that commit leaves" {
        fn commit(state: &mut State, op: &Op, tuning: &Tuning) {
            Shelf::commit(state, op, tuning);
            if let Op::Put { thing: 1, .. } = op {
                set(state, 0, 0, tuning);
            }
        }
        fn apply(state: &mut State, op: &Op, tuning: &Tuning) -> Applied<Reply> {
            Shelf::apply(state, op, tuning)
        }
    }
    commit_and_apply_that_do_more_than_execute_foresaw: "not independent" {
        fn commit(state: &mut State, op: &Op, tuning: &Tuning) {
            let refused = Shelf::execute(Shelf::view(state), op) == Reply::Took(false);
            Shelf::commit(state, op, tuning);
            if let (true, Op::Take { thing, .. }) = (refused, *op) {
                set(state, thing, 0, tuning);
            }
        }
    }
    a_read_that_changes: "a read changes the state" {
        fn commit(state: &mut State, op: &Op, tuning: &Tuning) {
            Shelf::commit(state, op, tuning);
            if let Op::Count { thing } = *op {
                set(state, thing, 0, tuning);
            }
        }
    }
    apply_that_calls_everything_a_change: "whether it changed anything" {
        fn apply(state: &mut State, op: &Op, tuning: &Tuning) -> Applied<Reply> {
            Applied { changed: true, ..Shelf::apply(state, op, tuning) }
        }
    }
    combine_that_loses_one: "does not leave what both leave" {
        fn combine(pending: &Op, new: &Op) -> Option<Op> {
            Shelf::combine(pending, new).map(|_| *new)
        }
    }
    share_that_answers_wrong: "does not give those of both" {
        fn share(_: &Op, _: &Op, combined: &Reply) -> (Reply, Reply) {
            (combined.clone(), Reply::Done)
        }
        fn combine(pending: &Op, new: &Op) -> Option<Op> {
            Shelf::combine(pending, new).filter(|op| *op == Op::Total)
        }
    }
    merge_that_adds: "not idempotent" {
        fn merge(into: &mut State, from: View<'_>, tuning: &Tuning) -> bool {
            for (thing, number) in from.all() {
                Shelf::commit(into, &Op::Put { thing, number }, tuning);
            }
            !from.all().is_empty()
        }
    }
    merge_that_takes_the_other: "not commutative" {
        fn merge(into: &mut State, from: View<'_>, tuning: &Tuning) -> bool {
            let before = Shelf::view(into).all();
            for (thing, number) in from.all() {
                set(into, thing, number, tuning);
            }
            Shelf::view(into).all() != before
        }
    }
    encode_that_drops_a_field: "another when decoded" {
        fn encode(op: &Op, out: &mut Vec<u8>) {
            match *op {
                Op::Take { thing, .. } => Shelf::encode(&Op::Take { thing, number: 1 }, out),
                _ => Shelf::encode(op, out),
            }
        }
    }
    decode_that_trusts_lengths: "panicked" {
        fn decode(from: &mut &[u8]) -> Result<Op, Corrupt> {
            let (op, rest) = from.split_at(6);
            *from = rest;
            Shelf::decode(&mut &*op)
        }
    }
    chunk_that_loses_where_it_is_cut: "chunks give another state" {
        fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
            let next = Shelf::chunk(view, at, budget, out);
            next.map(|next| next + u64::from(view.all().len() == 4 && budget < 20))
        }
    }
}
