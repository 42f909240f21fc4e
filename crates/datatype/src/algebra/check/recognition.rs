//! How much of what is independent a type recognises: a type that always says
//! no would be right, and of no use.
//!
//! Pairs are drawn evenly from all pairs of kinds, with replies wanted or not;
//! triples as [`Algebra::sample_op`] gives them. What is truly independent is
//! found by running every order.

use super::{group, sample_tuning};
use crate::algebra::{Algebra, Held, Kind, Operation, Phase};
use rufous_base::rng::Rng;

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    pub seed: u64,
    pub per_pair: u64,
    pub triples: u64,
}

impl Draws {
    /// What pages of documentation show.
    pub const PAGES: Draws = Draws {
        seed: 1,
        per_pair: 200,
        triples: 2_000,
    };
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub sampled: u64,
    /// Of these, truly independent.
    pub independent: u64,
    /// Of these, recognised by [`Algebra::admits`].
    pub recognised: u64,
    /// Recognised and not independent: a mistake.
    pub mistaken: u64,
}

impl Share {
    fn count(&mut self, independent: bool, recognised: bool) {
        self.sampled += 1;
        self.independent += u64::from(independent);
        self.recognised += u64::from(independent && recognised);
        self.mistaken += u64::from(!independent && recognised);
    }

    pub fn add(&mut self, other: &Share) {
        self.sampled += other.sampled;
        self.independent += other.independent;
        self.recognised += other.recognised;
        self.mistaken += other.mistaken;
    }
}

/// What was found of a type. Kinds are positions in [`Algebra::KINDS`].
#[derive(Clone, Debug)]
pub struct Recognition {
    /// Every pair of kinds, the later one first.
    pub pairs: Vec<Pair>,
    pub triples: Share,
    /// Three that are independent and not recognised.
    pub missed: Option<String>,
    /// By kind.
    pub phases: Vec<Vec<Phase>>,
}

#[derive(Clone, Debug)]
pub struct Pair {
    pub first: usize,
    pub second: usize,
    pub share: Share,
    /// How many of the sampled pairs combine, in either order.
    pub combine: u64,
    /// Two that are independent and not recognised.
    pub missed: Option<String>,
}

/// How many operations are drawn to choose from.
const POOL: usize = 20_000;
/// How many operations of each kind are kept.
const OF_EACH: usize = 500;

pub fn recognise<T: Algebra>(draws: Draws) -> Recognition {
    let mut rng = Rng::new(draws.seed);
    let mut pool: Vec<Vec<T::Op<'static>>> = vec![Vec::new(); <T::Kind>::ALL.len()];
    for _ in 0..POOL {
        let op = T::sample_op(&mut rng);
        let kind = <T::Kind>::ALL
            .iter()
            .position(|(kind, _)| *kind == op.kind());
        if let Some(ops) = kind.map(|kind| &mut pool[kind])
            && ops.len() < OF_EACH
        {
            ops.push(op);
        }
    }
    let mut pairs = Vec::new();
    for first in 0..pool.len() {
        for second in 0..=first {
            pairs.push(pair::<T>([first, second], &pool, draws.per_pair, &mut rng));
        }
    }
    let phases = pool.iter().map(|ops| {
        let mut phases: Vec<Phase> = ops.iter().map(T::phase).collect();
        phases.sort();
        phases.dedup();
        phases
    });
    let (triples, missed) = triples::<T>(draws.triples, &mut rng);
    Recognition {
        pairs,
        triples,
        missed,
        phases: phases.collect(),
    }
}

fn pair<T: Algebra>(
    [first, second]: [usize; 2],
    pool: &[Vec<T::Op<'static>>],
    draws: u64,
    rng: &mut Rng,
) -> Pair {
    let (mut share, mut missed, mut combine) = (Share::default(), None, 0);
    for _ in 0..draws {
        let mut draw = |kind: usize| {
            let ops = &pool[kind];
            let op = ops.get(rng.below(ops.len().max(1) as u64) as usize)?;
            let wanted = rng.below(2) == 0;
            Some(Held { op: *op, wanted })
        };
        let (Some(a), Some(b)) = (draw(first), draw(second)) else {
            break;
        };
        tried::<T>(&[a, b], &mut share, &mut missed, rng);
        let combines = T::combine(&a.op, &b.op).or_else(|| T::combine(&b.op, &a.op));
        combine += u64::from(combines.is_some());
    }
    Pair {
        first,
        second,
        share,
        combine,
        missed,
    }
}

fn triples<T: Algebra>(draws: u64, rng: &mut Rng) -> (Share, Option<String>) {
    let (mut share, mut missed) = (Share::default(), None);
    for _ in 0..draws {
        let group = [(); 3].map(|()| group::sample_held::<T>(rng));
        tried::<T>(&group, &mut share, &mut missed, rng);
    }
    (share, missed)
}

fn tried<T: Algebra>(
    group: &[Held<T::Op<'static>>],
    share: &mut Share,
    missed: &mut Option<String>,
    rng: &mut Rng,
) {
    let state = T::sample_state(rng);
    let independent = group::difference::<T>(&state, group, &sample_tuning(rng)).is_none();
    let recognised =
        (0..group.len()).all(|at| T::admits(&group[..at], &group[at], T::view(&state)));
    share.count(independent, recognised);
    if independent && !recognised && missed.is_none() {
        *missed = Some(format!("{state:?}: {group:?}"));
    }
}
