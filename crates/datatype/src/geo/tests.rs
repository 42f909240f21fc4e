//! Geo arithmetic against answers of redis-server 7.0.15, and searches against measuring every
//! point.

use super::*;
use proptest::prelude::*;

/// See its first lines for the format.
const ANSWERS: &str = include_str!("redis.txt");

fn lines(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    ANSWERS
        .lines()
        .filter_map(move |line| line.strip_prefix(kind))
        .map(|line| line.split_whitespace().collect())
}

fn position(longitude: &str, latitude: &str) -> Position {
    Position::new(longitude.parse().unwrap(), latitude.parse().unwrap()).unwrap()
}

fn coordinate(degrees: f64) -> String {
    let mut out = Vec::new();
    write_coordinate(&mut out, degrees);
    String::from_utf8(out).unwrap()
}

fn distance(distance: f64) -> String {
    let mut out = Vec::new();
    write_distance(&mut out, distance);
    String::from_utf8(out).unwrap()
}

/// The points as they are stored.
fn stored() -> Vec<(f64, Position)> {
    let points = lines("point ").map(|words| {
        let score = position(words[0], words[1]).score();
        (score, Position::from_score(score))
    });
    points.collect()
}

#[test]
fn points_are_those_of_redis() {
    let first = stored()[0].1;
    let mut points = 0;
    for words in lines("point ") {
        let score = position(words[0], words[1]).score();
        assert_eq!(score.to_string(), words[2], "{words:?}");
        let point = Position::from_score(score);
        assert_eq!(point.geohash(), words[3].as_bytes(), "{words:?}");
        assert_eq!(coordinate(point.longitude), words[4]);
        assert_eq!(coordinate(point.latitude), words[5]);
        assert_eq!(distance(point.distance_m(first)), words[6], "{words:?}");
        points += 1;
    }
    assert_eq!(points, 60);
}

#[test]
fn searches_find_what_redis_finds_in_its_order() {
    let points = stored();
    let mut searches = 0;
    for words in lines("search ") {
        let shape = match words[3] {
            "circle" => Shape::Circle {
                radius: words[4].parse().unwrap(),
            },
            _ => Shape::Rectangle {
                width: words[4].parse().unwrap(),
                height: words[5].parse().unwrap(),
            },
        };
        let search = Search {
            center: position(words[0], words[1]),
            shape,
            unit: Unit::parse(words[2].as_bytes()).unwrap(),
        };
        let colon = words.iter().position(|w| *w == ":").unwrap();
        let expected: Vec<usize> = words[colon + 1..]
            .iter()
            .map(|w| w.parse().unwrap())
            .collect();
        assert_eq!(found(&points, &search), expected, "{words:?}");
        searches += 1;
    }
    assert_eq!(searches, 40);
}

/// What a sorted set of the points would give, range by range.
fn found(points: &[(f64, Position)], search: &Search) -> Vec<usize> {
    let mut all = Vec::new();
    for range in search.ranges() {
        let mut within: Vec<_> = points
            .iter()
            .enumerate()
            .filter(|(_, (score, _))| (range.min..range.max).contains(score))
            .filter(|(_, (_, point))| search.distance_m(*point).is_some())
            .map(|(number, (score, _))| (*score, format!("p{number}"), number))
            .collect();
        within.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        all.extend(within.into_iter().map(|(_, _, number)| number));
    }
    all
}

#[test]
fn positions_have_limits() {
    let refused = |x, y| Position::new(x, y).unwrap_err().to_string();
    assert_eq!(
        refused(200.0, 10.0),
        "invalid longitude,latitude pair 200.000000,10.000000"
    );
    assert_eq!(
        refused(-180.1, 10.0),
        "invalid longitude,latitude pair -180.100000,10.000000"
    );
    assert_eq!(
        refused(1.0, 85.06),
        "invalid longitude,latitude pair 1.000000,85.060000"
    );
    assert!(Position::new(f64::NAN, 0.0).is_err());
    assert!(Position::new(-MAX_LONGITUDE, MAX_LATITUDE).is_ok());
}

#[test]
fn units_in_any_case() {
    assert_eq!(Unit::parse(b"KM"), Ok(Unit::Kilometer));
    assert_eq!(Unit::parse(b"mI"), Ok(Unit::Mile));
    assert_eq!(Unit::parse(b"ft").map(Unit::meters), Ok(0.3048));
    for bad in [b"".as_slice(), b"mm", b"k"] {
        assert_eq!(Unit::parse(bad), Err(GeoError::Unit));
    }
}

#[test]
fn numbers_as_redis_prints_them() {
    assert_eq!(distance(0.0), "0.0000");
    assert_eq!(distance(166_274.151_56), "166274.1516");
    assert_eq!(distance(0.00004), "0.0000");
    assert_eq!(distance(0.775), "0.7750");
    assert_eq!(coordinate(0.0), "0");
    assert_eq!(coordinate(-1e-20), "0");
    assert_eq!(coordinate(-120.5), "-120.5");
}

#[test]
fn scores_that_no_position_has_are_read() {
    for score in [-1.0, -1e300, 1e300, f64::INFINITY, f64::NEG_INFINITY, 0.5] {
        let point = Position::from_score(score);
        assert!(Position::new(point.longitude, point.latitude).is_ok());
    }
}

fn positions() -> impl Strategy<Value = Position> {
    (-180.0..=180.0f64, -85.0..=85.0f64).prop_map(|(x, y)| Position::new(x, y).unwrap())
}

proptest! {
    #[test]
    fn a_score_keeps_the_place(at in positions()) {
        let kept = Position::from_score(at.score());
        prop_assert!(at.distance_m(kept) < 0.6);
        prop_assert_eq!(kept.score(), at.score());
    }

    /// Circles that reach over a pole or the date line are cut there, as Redis does.
    #[test]
    fn ranges_have_what_a_circle_has(
        x in -100.0..100.0f64,
        y in -60.0..60.0f64,
        radius in 1.0..500_000.0f64,
        near in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64), 30),
    ) {
        let center = Position::new(x, y).unwrap();
        let search = Search { center, shape: Shape::Circle { radius }, unit: Unit::Meter };
        let ranges = search.ranges();
        let degrees = radius / 111_000.0;
        for (east, north) in near {
            let east = east * degrees / (y.abs() + degrees).to_radians().cos();
            let Ok(point) = Position::new(x + east, y + north * degrees) else { continue };
            let score = point.score();
            let hits = ranges.iter().filter(|r| (r.min..r.max).contains(&score)).count();
            prop_assert!(hits <= 1);
            if search.distance_m(Position::from_score(score)).is_some() {
                prop_assert_eq!(hits, 1);
            }
        }
    }

    #[test]
    fn any_search_ends(
        at in positions(),
        size in any::<f64>().prop_filter("lengths are not negative", |s| *s >= 0.0),
    ) {
        for shape in [
            Shape::Circle { radius: size },
            Shape::Rectangle { width: size, height: size },
        ] {
            let ranges = Search { center: at, shape, unit: Unit::Mile }.ranges();
            prop_assert!((1..=9).contains(&ranges.len()));
        }
    }
}
