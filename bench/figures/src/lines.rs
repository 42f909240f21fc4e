//! Line charts as SVG, both axes logarithmic: how something goes on with a number of processors.

use anyhow::Result;
use plotters::prelude::*;
use rufous_bench::plot::{Canvas, Drawn, svg};

const SIZE: (u32, u32) = (900, 520);
const COLOURS: [RGBColor; 6] = [
    RGBColor(202, 90, 36),
    RGBColor(224, 152, 60),
    RGBColor(120, 60, 110),
    RGBColor(60, 110, 150),
    RGBColor(34, 34, 34),
    RGBColor(110, 140, 90),
];

/// A curve, and points that were measured rather than reckoned.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub name: String,
    pub curve: Vec<(f64, f64)>,
    pub measured: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
pub(crate) struct LineChart {
    pub title: String,
    pub x_axis: String,
    pub y_axis: String,
    pub lines: Vec<Line>,
}

impl LineChart {
    pub(crate) fn svg(&self) -> Result<String> {
        svg(SIZE, |area| self.draw(area))
    }

    /// Least and greatest of all that is drawn.
    fn range(&self, of: impl Fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let points = self
            .lines
            .iter()
            .flat_map(|l| l.curve.iter().chain(&l.measured));
        points
            .map(of)
            .fold((f64::INFINITY, 0.0), |(low, high), value| {
                (value.min(low), value.max(high))
            })
    }

    fn draw(&self, area: &Canvas<'_>) -> Drawn {
        let ((left, right), (low, high)) = (self.range(|p| p.0), self.range(|p| p.1));
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .margin_right(30)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(
                (left..right).log_scale().base(2.0),
                (low * 0.8..high * 1.3).log_scale(),
            )?;
        chart
            .configure_mesh()
            .x_desc(&self.x_axis)
            .y_desc(&self.y_axis)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .light_line_style(RGBColor(244, 244, 244))
            .bold_line_style(RGBColor(224, 224, 224))
            .draw()?;
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            chart
                .draw_series(LineSeries::new(
                    line.curve.iter().copied(),
                    colour.stroke_width(2),
                ))?
                .label(&line.name)
                .legend(move |(x, y)| {
                    PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
                });
            let points = line
                .measured
                .iter()
                .map(|&at| Circle::new(at, 4, colour.filled()));
            chart.draw_series(points)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
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
    fn a_chart_holds_its_names_and_points() {
        let line = Line {
            name: "full".into(),
            curve: vec![(1.0, 40.0), (2.0, 80.0), (64.0, 2500.0)],
            measured: vec![(2.0, 78.0)],
        };
        let chart = LineChart {
            title: "Updates".into(),
            x_axis: "processors".into(),
            y_axis: "million a second".into(),
            lines: vec![line],
        };
        let svg = chart.svg().unwrap();
        for words in [
            "Updates",
            "processors",
            "million a second",
            "full",
            "<circle",
            "<polyline",
        ] {
            assert!(svg.contains(words), "{words}\n{svg}");
        }
    }
}
