//! Bar charts as SVG: groups of horizontal bars on one scale, with their figures written out and an
//! optional mark for the target.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 900;
const LEFT: i32 = 190;
const RIGHT: i32 = 150;
const TOP: i32 = 96;
const BAR: i32 = 16;
const GROUP_GAP: i32 = 14;
const BOTTOM: i32 = 30;

/// Distinguishable in print and by people with colour-vision deficiencies; Rufous comes first.
const PALETTE: [RGBColor; 4] = [
    RGBColor(202, 90, 36),
    RGBColor(96, 125, 155),
    RGBColor(158, 178, 198),
    RGBColor(206, 212, 218),
];
const INK: RGBColor = RGBColor(34, 34, 34);
const FAINT: RGBColor = RGBColor(120, 120, 120);
const GRID: RGBColor = RGBColor(228, 228, 228);

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Which of the chart's series it belongs to.
    pub series: usize,
    pub value: f64,
    /// What is written at its end.
    pub label: String,
}

impl Bar {
    pub fn new(series: usize, value: f64, label: String) -> Self {
        Self {
            series,
            value,
            label,
        }
    }
}

/// Bars that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    pub label: String,
    pub bars: Vec<Bar>,
    pub target: Option<f64>,
}

/// A chart; `series` names the colours.
#[derive(Clone, Debug)]
pub struct Chart {
    pub title: String,
    pub axis: String,
    pub series: Vec<String>,
    pub groups: Vec<Group>,
}

/// What a chart is drawn on.
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Result of drawing.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The text of a picture of some width and height.
pub fn svg(size: (u32, u32), draw: impl FnOnce(&Canvas<'_>) -> Drawn) -> Result<String> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    draw(&area)
        .and_then(|()| Ok(area.present()?))
        .map_err(|e| anyhow!("drawing a chart: {e}"))?;
    drop(area);
    Ok(text)
}

impl Chart {
    pub fn svg(&self) -> Result<String> {
        svg((WIDTH, self.height()), |area| self.draw(area))
    }

    fn height(&self) -> u32 {
        let bars: i32 = self
            .groups
            .iter()
            .map(|g| g.bars.len() as i32 * BAR + GROUP_GAP)
            .sum();
        (TOP + bars + BOTTOM) as u32
    }

    /// The right end of the scale: a little beyond the longest bar or target, and rounded.
    fn scale(&self) -> (f64, f64) {
        let values = self.groups.iter().flat_map(|g| {
            g.bars
                .iter()
                .map(|b| b.value)
                .chain(g.target)
                .collect::<Vec<_>>()
        });
        let longest = values.fold(0.0, f64::max).max(1e-9);
        let step = nice_step(longest / 5.0);
        ((longest / step).ceil() * step, step)
    }

    fn draw(&self, area: &Canvas<'_>) -> Result<(), Box<dyn std::error::Error>> {
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title.clone(), (20, 16), font(18, &INK)))?;
        area.draw(&Text::new(self.axis.clone(), (20, 40), font(13, &FAINT)))?;
        self.draw_legend(area)?;
        let (end, step) = self.scale();
        let bottom = self.height() as i32 - BOTTOM;
        let x = |value: f64| LEFT + (value / end * f64::from(WIDTH as i32 - LEFT - RIGHT)) as i32;
        for i in 0..=(end / step).round() as u32 {
            let at = x(f64::from(i) * step);
            area.draw(&PathElement::new(vec![(at, TOP - 6), (at, bottom)], GRID))?;
            let style = font(12, &FAINT).pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(
                tick(f64::from(i) * step),
                (at, bottom + 6),
                style,
            ))?;
        }
        let mut y = TOP;
        for group in &self.groups {
            y = draw_group(area, group, y, &x)? + GROUP_GAP;
        }
        Ok(())
    }

    fn draw_legend(&self, area: &Canvas<'_>) -> Result<(), Box<dyn std::error::Error>> {
        let mut x = 20;
        for (i, name) in self.series.iter().enumerate() {
            area.draw(&Rectangle::new([(x, 64), (x + 12, 76)], colour(i).filled()))?;
            area.draw(&Text::new(name.clone(), (x + 18, 63), font(13, &INK)))?;
            x += 40 + name.chars().count() as i32 * 8;
        }
        if self.groups.iter().any(|g| g.target.is_some()) {
            area.draw(&PathElement::new(
                vec![(x + 5, 62), (x + 5, 78)],
                INK.stroke_width(2),
            ))?;
            area.draw(&Text::new("target", (x + 14, 63), font(13, &INK)))?;
        }
        Ok(())
    }
}

fn draw_group(
    area: &Canvas<'_>,
    group: &Group,
    top: i32,
    x: &dyn Fn(f64) -> i32,
) -> Result<i32, Box<dyn std::error::Error>> {
    let bottom = top + group.bars.len() as i32 * BAR;
    let middle = (top + bottom) / 2;
    let style = font(13, &INK).pos(Pos::new(HPos::Right, VPos::Center));
    area.draw(&Text::new(group.label.clone(), (LEFT - 10, middle), style))?;
    for (i, bar) in group.bars.iter().enumerate() {
        let y = top + i as i32 * BAR;
        let end = x(bar.value).max(LEFT + 1);
        area.draw(&Rectangle::new(
            [(LEFT, y + 1), (end, y + BAR - 1)],
            colour(bar.series).filled(),
        ))?;
        let style = font(12, &INK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(bar.label.clone(), (end + 6, y + BAR / 2), style))?;
    }
    if let Some(target) = group.target {
        let at = x(target);
        area.draw(&PathElement::new(
            vec![(at, top - 3), (at, bottom + 3)],
            INK.stroke_width(2),
        ))?;
    }
    Ok(bottom)
}

/// `size` in pixels; the SVG backend takes sizes for those of the line, 1.24 times as high.
fn font<'a>(size: u32, colour: &'a RGBColor) -> TextStyle<'a> {
    ("sans-serif", f64::from(size) * 1.24)
        .into_font()
        .color(colour)
}

fn colour(series: usize) -> RGBColor {
    PALETTE[series % PALETTE.len()]
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|f| f * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

fn tick(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (rough, want) in [
            (0.9, 1.0),
            (1.0, 1.0),
            (1.1, 2.0),
            (3.0, 5.0),
            (0.03, 0.05),
            (60.0, 100.0),
        ] {
            assert!((nice_step(rough) / want - 1.0).abs() < 1e-9, "{rough}");
        }
        assert_eq!(tick(0.25), "0.25");
        assert_eq!(tick(10.0), "10");
        assert_eq!(tick(0.0), "0");
    }

    #[test]
    fn a_chart_holds_its_bars_and_words() {
        let bar = |series, value: f64| Bar::new(series, value, format!("{value:.2} µs"));
        let chart = Chart {
            title: "CPU".into(),
            axis: "relative".into(),
            series: vec!["Rufous".into(), "Redis".into()],
            groups: vec![Group {
                label: "GET & SET".into(),
                bars: vec![bar(0, 0.5), bar(1, 1.0)],
                target: Some(0.85),
            }],
        };
        let svg = chart.svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for words in [
            "CPU",
            "Rufous",
            "Redis",
            "GET &amp; SET",
            "0.50 µs",
            "1.00 µs",
            "target",
        ] {
            assert!(svg.contains(words), "{words}\n{svg}");
        }
    }
}
