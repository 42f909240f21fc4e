//! Charts as SVG of something over time, with marks where something happened.

use anyhow::Result;
use plotters::prelude::*;
use rufous_bench::plot::{Canvas, Drawn, svg};

const SIZE: (u32, u32) = (900, 420);
const COLOURS: [RGBColor; 3] = [
    RGBColor(202, 90, 36),
    RGBColor(96, 125, 155),
    RGBColor(110, 140, 90),
];

/// Points of seconds and values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// When something happened to it.
    pub marks: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct TimeChart {
    pub title: String,
    pub y_axis: String,
    pub courses: Vec<Course>,
}

impl TimeChart {
    pub(crate) fn svg(&self) -> Result<String> {
        svg(SIZE, |area| self.draw(area))
    }

    fn draw(&self, area: &Canvas<'_>) -> Drawn {
        let points = || self.courses.iter().flat_map(|course| &course.points);
        let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(1e-9, f64::max);
        let (right, high) = (most(|point| point.0), most(|point| point.1));
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..right, 0.0..high * 1.15)?;
        chart
            .configure_mesh()
            .x_desc("seconds")
            .y_desc(&self.y_axis)
            .light_line_style(RGBColor(244, 244, 244))
            .bold_line_style(RGBColor(224, 224, 224))
            .draw()?;
        for (course, colour) in self.courses.iter().zip(COLOURS.iter().cycle()) {
            let line = LineSeries::new(course.points.iter().copied(), colour.stroke_width(2));
            let key = *colour;
            chart
                .draw_series(line)?
                .label(&course.name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], key));
            let marks = course.marks.iter();
            let mark = |at: &f64| PathElement::new(vec![(*at, 0.0), (*at, high)], colour.mix(0.5));
            chart.draw_series(marks.map(mark))?;
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(RGBColor(200, 200, 200))
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courses_are_drawn_with_their_marks() {
        let course = Course {
            name: "one".into(),
            points: vec![(0.0, 1.0), (1.0, 3.0)],
            marks: vec![0.5],
        };
        let chart = |courses| TimeChart {
            title: "a title".into(),
            y_axis: "things".into(),
            courses,
        };
        let svg = chart(vec![course]).svg().unwrap();
        for text in ["a title", "things", "one"] {
            assert!(svg.contains(text), "{text}");
        }
        // Of nothing there is an empty one.
        assert!(chart(Vec::new()).svg().is_ok());
    }
}
