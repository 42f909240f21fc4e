//! Searching for what lies in a circle or a box: the cell of the centre and its neighbours, of a
//! size that covers the shape, give ranges of scores; what is in them is measured one by one.

use super::cell::{Bounds, Cell};
use super::{EARTH_RADIUS_M, Position, RADIANS, SCORE_STEP, Unit, latitude_distance_m};

/// Half the length of the equator in the projection, in metres, rounded as Redis has it.
const MERCATOR_MAX_M: f64 = 20_037_726.37;

/// What is searched, in some unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Circle { radius: f64 },
    Rectangle { width: f64, height: f64 },
}

/// A shape around a centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    pub center: Position,
    pub shape: Shape,
    /// Of the shape's lengths.
    pub unit: Unit,
}

/// Scores from `min` to below `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    pub min: f64,
    pub max: f64,
}

/// Columns to the east and rows to the north of the centre, in the order of looking there.
const PLACES: [(i32, i32); 9] = [
    (0, 0),
    (0, 1),
    (0, -1),
    (1, 0),
    (-1, 0),
    (1, 1),
    (-1, 1),
    (1, -1),
    (-1, -1),
];

impl Search {
    /// The distance of `position` from the centre in metres, if it is in the shape; its edge
    /// belongs to it.
    pub fn distance_m(&self, position: Position) -> Option<f64> {
        let meters = self.unit.meters();
        match self.shape {
            Shape::Circle { radius } => {
                let distance = self.center.distance_m(position);
                (distance <= radius * meters).then_some(distance)
            }
            Shape::Rectangle { width, height } => {
                let north = latitude_distance_m(position.latitude, self.center.latitude);
                if north > height * meters / 2.0 {
                    return None;
                }
                let same_latitude = Position {
                    latitude: position.latitude,
                    ..self.center
                };
                let east = position.distance_m(same_latitude);
                (east <= width * meters / 2.0).then(|| self.center.distance_m(position))
            }
        }
    }

    /// Up to nine ranges that have all positions in the shape, without overlap, in the order in
    /// which Redis looks through them (and answers, unless it is to sort).
    pub fn ranges(&self) -> Vec<ScoreRange> {
        let bounds = self.bounding_box();
        let mut step = self.estimate_step();
        let mut cell = Cell::at(self.center, &Bounds::MERCATOR, step);
        if step > 1 && !covers(cell, &bounds) {
            step -= 1;
            cell = Cell::at(self.center, &Bounds::MERCATOR, step);
        }
        let area = cell.area(&Bounds::MERCATOR);
        // Cells of a quarter of the world are their own neighbours' neighbours.
        let useless = |(east, north): (i32, i32)| {
            step >= 2
                && (north < 0 && area.latitude.0 < bounds.latitude.0
                    || north > 0 && area.latitude.1 > bounds.latitude.1
                    || east < 0 && area.longitude.0 < bounds.longitude.0
                    || east > 0 && area.longitude.1 > bounds.longitude.1)
        };
        let mut cells = Vec::with_capacity(PLACES.len());
        for place in PLACES {
            let next = cell.neighbour(place.0, place.1);
            // In the coarsest grids, one cell is met from two sides.
            if !useless(place) && cells.last() != Some(&next) {
                cells.push(next);
            }
        }
        let range = |cell: Cell| {
            let (min, max) = cell.scores();
            ScoreRange {
                min: min as f64,
                max: max as f64,
            }
        };
        cells.into_iter().map(range).collect()
    }

    /// The shape's edges. Those in the east and west are where it is nearest to a pole, and so
    /// spans the most degrees.
    fn bounding_box(&self) -> Bounds {
        let meters = self.unit.meters();
        let (width, height) = match self.shape {
            Shape::Circle { radius } => (radius * meters, radius * meters),
            Shape::Rectangle { width, height } => (width / 2.0 * meters, height / 2.0 * meters),
        };
        let Position {
            longitude,
            latitude,
        } = self.center;
        let north = height / EARTH_RADIUS_M / RADIANS;
        let edge = match latitude < 0.0 {
            true => latitude - north,
            false => latitude + north,
        };
        let east = width / EARTH_RADIUS_M / (edge * RADIANS).cos() / RADIANS;
        Bounds {
            longitude: (longitude - east, longitude + east),
            latitude: (latitude - north, latitude + north),
        }
    }

    /// The finest grid in which nine cells should cover the shape.
    fn estimate_step(&self) -> u32 {
        let mut range_m = self.unit.meters()
            * match self.shape {
                Shape::Circle { radius } => radius,
                Shape::Rectangle { width, height } => {
                    let [east, north] = [width / 2.0, height / 2.0];
                    (east * east + north * north).sqrt()
                }
            };
        if range_m.is_nan() || range_m <= 0.0 {
            return SCORE_STEP;
        }
        let mut step = -1;
        while range_m < MERCATOR_MAX_M {
            range_m *= 2.0;
            step += 1;
        }
        // Degrees of longitude are shorter near the poles.
        step -= match self.center.latitude.abs() {
            latitude if latitude > 80.0 => 2,
            latitude if latitude > 66.0 => 1,
            _ => 0,
        };
        step.clamp(1, SCORE_STEP as i32) as u32
    }
}

/// Whether a cell and its neighbours reach as far as the box.
fn covers(cell: Cell, bounds: &Bounds) -> bool {
    let area = |east, north| cell.neighbour(east, north).area(&Bounds::MERCATOR);
    area(0, 1).latitude.1 >= bounds.latitude.1
        && area(0, -1).latitude.0 <= bounds.latitude.0
        && area(1, 0).longitude.1 >= bounds.longitude.1
        && area(-1, 0).longitude.0 <= bounds.longitude.0
}
