//! Charts as SVG of curves over a logarithmic axis to the right and a linear one upwards, with marks where each was
//! measured and a line for a target.

use anyhow::Result;
use plotters::prelude::*;
use rufous_bench::plot::{Canvas, Drawn, svg};

const SIZE: (u32, u32) = (900, 420);
const COLOURS: [RGBColor; 4] = [
    RGBColor(202, 90, 36),
    RGBColor(96, 125, 155),
    RGBColor(110, 140, 90),
    RGBColor(120, 60, 110),
];
const INK: RGBColor = RGBColor(34, 34, 34);

/// Points from the left to the right.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// With a mark at each point.
    pub is_marked: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct CurveChart {
    pub title: String,
    pub x_axis: String,
    pub y_axis: String,
    pub curves: Vec<Curve>,
    pub target: Option<f64>,
}

impl CurveChart {
    pub(crate) fn svg(&self) -> Result<String> {
        svg(SIZE, |area| self.draw(area))
    }

    /// Left and right end, and how high.
    fn range(&self) -> (f64, f64, f64) {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let left = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let left = if left.is_finite() { left } else { 1.0 }.max(1e-9);
        let right = points().map(|point| point.0).fold(left * 10.0, f64::max);
        let high = points().map(|point| point.1).chain(self.target);
        (left, right, high.fold(1e-9, f64::max) * 1.1)
    }

    fn draw(&self, area: &Canvas<'_>) -> Drawn {
        let (left, right, high) = self.range();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .margin_right(30)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d((left..right).log_scale(), 0.0..high)?;
        chart
            .configure_mesh()
            .x_desc(&self.x_axis)
            .y_desc(&self.y_axis)
            .x_label_formatter(&|x| format!("{x}"))
            .light_line_style(RGBColor(244, 244, 244))
            .bold_line_style(RGBColor(224, 224, 224))
            .draw()?;
        for (curve, colour) in self.curves.iter().zip(COLOURS.iter().cycle()) {
            let (line, key) = (curve.points.iter().copied(), *colour);
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], key));
            if curve.is_marked {
                let points = curve.points.iter();
                chart.draw_series(points.map(|at| Circle::new(*at, 4, colour.filled())))?;
            }
        }
        if let Some(target) = self.target {
            let ends = [(left, target), (right, target)];
            chart
                .draw_series(LineSeries::new(ends, INK.stroke_width(1)))?
                .label("target")
                .legend(|(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], INK));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_drawn_with_their_names_and_zeros() {
        let curve = Curve {
            name: "one".into(),
            points: vec![(1.0, 90.0), (1000.0, 5.0), (1_000_000.0, 0.0)],
            is_marked: true,
        };
        let chart = |curves| CurveChart {
            title: "a title".into(),
            x_axis: "keys".into(),
            y_axis: "percent".into(),
            curves,
            target: Some(1.0),
        };
        let svg = chart(vec![curve]).svg().unwrap();
        for text in ["a title", "keys", "percent", "one", "target", "1000000"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(chart(Vec::new()).svg().is_ok());
    }
}
