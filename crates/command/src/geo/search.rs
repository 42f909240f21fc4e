//! Searching for what is near, for all commands that do.

use super::place::{coordinates, distance, length, position, radius};
use crate::options::{integer, is};
use crate::sorted_set::rangeof::put;
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;
use rufous_datatype::geo::{Position, Search, Shape, Unit};
use rufous_datatype::sorted_set::{Builder, SortedSet, View, Zone};

/// The commands, which differ in their first arguments and in what may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `key longitude latitude radius unit`, and whether it may store.
    Radius { store: bool },
    /// `key member radius unit`, and whether it may store.
    ByMember { store: bool },
    /// `key`; all else are options.
    Search,
    /// `destination source`; all else are options.
    SearchStore,
}

impl Form {
    /// Where the key to search stands.
    fn source(self) -> usize {
        1 + usize::from(self == Form::SearchStore)
    }

    /// Where options begin.
    fn options(self) -> usize {
        match self {
            Form::Radius { .. } => 6,
            Form::ByMember { .. } => 5,
            Form::Search => 2,
            Form::SearchStore => 3,
        }
    }

    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }

    fn may_store(self) -> bool {
        matches!(
            self,
            Form::Radius { store: true } | Form::ByMember { store: true }
        )
    }
}

#[derive(Default)]
struct Plan {
    center: Option<Position>,
    /// The centre was named, though there may be no set to find it in.
    from_member: bool,
    shape: Option<(Shape, Unit)>,
    with_distance: bool,
    with_score: bool,
    with_position: bool,
    /// Any matches will do, up to the count.
    any: bool,
    /// 0 for no limit.
    count: usize,
    /// Ascending if not descending.
    descending: Option<bool>,
    /// The argument that names the key to store to.
    store: Option<usize>,
    store_distance: bool,
}

/// The position of a member, which must be there if the set is.
fn member_position(view: Option<View<'_>>, member: &[u8]) -> Result<Option<Position>, Failure> {
    let Some(view) = view else {
        return Ok(None);
    };
    match view.score(member) {
        Some(score) => Ok(Some(Position::from_score(score))),
        None => Err(Failure::from("ERR could not decode requested zset member")),
    }
}

impl Plan {
    fn parse(args: &Args<'_>, form: Form, view: Option<View<'_>>) -> Result<Plan, Failure> {
        let mut plan = Plan {
            store: (form == Form::SearchStore).then_some(1),
            ..Plan::default()
        };
        let circle = |at| -> Result<Option<(Shape, Unit)>, Failure> {
            let (radius, unit) = radius(args, at)?;
            Ok(Some((Shape::Circle { radius }, unit)))
        };
        match form {
            Form::Radius { .. } => {
                plan.center = Some(position(args, 2)?);
                plan.shape = circle(4)?;
            }
            Form::ByMember { .. } if view.is_some() => {
                plan.center = member_position(view, args.get(2))?;
                plan.shape = circle(3)?;
            }
            _ => {}
        }
        let mut at = form.options();
        while at < args.len() {
            let taken = plan.option(args, at, form, view)?;
            at += taken;
        }
        plan.check(args, form)?;
        Ok(plan)
    }

    /// Reads one option, and answers how many arguments that took.
    fn option(
        &mut self,
        args: &Args<'_>,
        at: usize,
        form: Form,
        view: Option<View<'_>>,
    ) -> Result<usize, Failure> {
        let word = args.get(at);
        let left = args.len() - at - 1;
        if let Some(taken) = self.switch(word, form) {
            return Ok(taken);
        }
        if is(word, "COUNT") && left >= 1 {
            let count = integer(args.get(at + 1))?;
            let count = usize::try_from(count).ok().filter(|n| *n > 0);
            self.count = count.ok_or(Failure::from("ERR COUNT must be > 0"))?;
            return Ok(2);
        }
        if form.may_store() && left >= 1 && (is(word, "STORE") || is(word, "STOREDIST")) {
            self.store = Some(at + 1);
            self.store_distance = is(word, "STOREDIST");
            return Ok(2);
        }
        if !form.is_search() {
            return Err(Failure::SYNTAX);
        }
        let round = matches!(self.shape, Some((Shape::Circle { .. }, _)));
        if is(word, "FROMMEMBER") && left >= 1 && (self.from_member || self.center.is_none()) {
            self.center = member_position(view, args.get(at + 1))?;
            self.from_member = true;
            return Ok(2);
        }
        if is(word, "FROMLONLAT") && left >= 2 && !self.from_member {
            self.center = Some(position(args, at + 1)?);
            return Ok(3);
        }
        if is(word, "BYRADIUS") && left >= 2 && (round || self.shape.is_none()) {
            let (radius, unit) = radius(args, at + 1)?;
            self.shape = Some((Shape::Circle { radius }, unit));
            return Ok(3);
        }
        if is(word, "BYBOX") && left >= 3 && !round {
            let width = length(args.get(at + 1), "ERR need numeric width")?;
            let height = length(args.get(at + 2), "ERR need numeric height")?;
            if width < 0.0 || height < 0.0 {
                return Err(Failure::from("ERR height or width cannot be negative"));
            }
            let unit = Unit::parse(args.get(at + 3))?;
            self.shape = Some((Shape::Rectangle { width, height }, unit));
            return Ok(4);
        }
        Err(Failure::SYNTAX)
    }

    /// Reads an option of a single word.
    fn switch(&mut self, word: &[u8], form: Form) -> Option<usize> {
        match word {
            word if is(word, "WITHDIST") => self.with_distance = true,
            word if is(word, "WITHHASH") => self.with_score = true,
            word if is(word, "WITHCOORD") => self.with_position = true,
            word if is(word, "ANY") => self.any = true,
            word if is(word, "ASC") => self.descending = Some(false),
            word if is(word, "DESC") => self.descending = Some(true),
            word if form == Form::SearchStore && is(word, "STOREDIST") => {
                self.store_distance = true;
            }
            _ => return None,
        }
        Some(1)
    }

    fn check(&mut self, args: &Args<'_>, form: Form) -> Result<(), Failure> {
        let refuse = |text: String| Err(Failure(format!("ERR {text}").into()));
        let name = String::from_utf8_lossy(args.get(0));
        if self.store.is_some() && (self.with_distance || self.with_score || self.with_position) {
            let what = match form {
                Form::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return refuse(format!(
                "{what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            ));
        }
        if form.is_search() && !self.from_member && self.center.is_none() {
            return refuse(format!(
                "exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            ));
        }
        if form.is_search() && self.shape.is_none() {
            return refuse(format!(
                "exactly one of BYRADIUS and BYBOX can be specified for {name}"
            ));
        }
        if self.any && self.count == 0 {
            return refuse("the ANY argument requires COUNT argument".to_owned());
        }
        // The nearest are meant where nothing else is said.
        if self.count > 0 && !self.any && self.descending.is_none() {
            self.descending = Some(false);
        }
        Ok(())
    }
}

/// What was found.
struct Point<'a> {
    member: &'a [u8],
    score: f64,
    position: Position,
    /// In the unit asked for.
    distance: f64,
}

fn points<'a>(view: View<'a>, search: &Search, plan: &Plan) -> Vec<Point<'a>> {
    let limit = if plan.any { plan.count } else { usize::MAX };
    let mut found = Vec::new();
    for range in search.ranges() {
        if found.len() >= limit {
            break;
        }
        let span = view.span(&Zone::scores(range.min, false, range.max, true));
        view.each(span, false, |member, score| {
            let position = Position::from_score(score);
            if found.len() < limit
                && let Some(meters) = search.distance_m(position)
            {
                found.push(Point {
                    member,
                    score,
                    position,
                    distance: meters / search.unit.meters(),
                });
            }
        });
    }
    if let Some(descending) = plan.descending {
        found.sort_by(|a, b| match descending {
            true => b.distance.total_cmp(&a.distance),
            false => a.distance.total_cmp(&b.distance),
        });
    }
    if plan.count > 0 {
        found.truncate(plan.count);
    }
    found
}

fn show(reply: &mut Reply<'_>, found: &[Point<'_>], plan: &Plan) {
    let extras = [plan.with_distance, plan.with_score, plan.with_position];
    let extras: usize = extras.into_iter().map(usize::from).sum();
    reply.array(found.len());
    for point in found {
        if extras > 0 {
            reply.array(extras + 1);
        }
        reply.bulk(point.member);
        if plan.with_distance {
            distance(reply, point.distance);
        }
        if plan.with_score {
            reply.integer(point.score as i64);
        }
        if plan.with_position {
            coordinates(reply, point.position);
        }
    }
}

pub(super) fn run(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    form: Form,
) -> Result<(), Failure> {
    let source = ctx.key(args.get(form.source()));
    let tuning = *ctx.shard.tuning();
    let view = ctx.shard.collection::<SortedSet>(ctx.db, source, ctx.now)?;
    let plan = Plan::parse(args, form, view)?;
    let search = match (plan.center, plan.shape) {
        (Some(center), Some((shape, unit))) => Some(Search {
            center,
            shape,
            unit,
        }),
        _ => None,
    };
    let found = match (view, &search) {
        (Some(view), Some(search)) => points(view, search, &plan),
        _ => Vec::new(),
    };
    let Some(target) = plan.store else {
        show(reply, &found, &plan);
        return Ok(());
    };
    let mut builder = Builder::new(&tuning);
    for point in &found {
        let score = match plan.store_distance {
            true => point.distance,
            false => point.score,
        };
        builder.set(point.member, score);
    }
    let target = ctx.key(args.get(target));
    reply.count(put(ctx, target, builder));
    Ok(())
}

/// Pushes the key to search and the one to store to, of a command whose options
/// begin at `from`.
pub(super) fn keys(args: &Args<'_>, from: usize, db: u8, keys: &mut Vec<(u8, u32)>) {
    keys.push((db, 1));
    let names_key = |at: &usize| {
        let word = args.get(*at);
        is(word, "STORE") || is(word, "STOREDIST")
    };
    let store = (from..args.len().saturating_sub(1)).rev().find(names_key);
    keys.extend(store.map(|at| (db, at as u32 + 1)));
}
