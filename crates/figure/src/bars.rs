//! Grouped bars with the intervals that their values lie in.

use crate::axis::{Axis, Span};
use crate::colour::Colour;
use crate::figure::{Anchor, Figure, Fill, Stroke, Text, Weight};
use crate::head::{self, EDGE, Entry, LABEL, Sample, TICK};
use crate::plot::Plot;
use crate::{font, number};

/// What is said where a bar is missing.
const MISSING: &str = "–";
/// How far names of groups are turned where they do not fit side by side.
const TURN: f64 = -38.0;
/// The room that the longest turned name may take, in units.
const LONGEST_NAME: f64 = 190.0;

/// A chart of bars, side by side in groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Above the chart; may be empty.
    pub title: String,
    /// Below the title, smaller; may be empty.
    pub subtitle: String,
    /// What the bars measure, with its unit.
    pub y_label: String,
    /// The values at the ends of the vertical axis. Without, as the data needs, 0 included.
    pub y_range: Option<(f64, f64)>,
    /// The names of the groups, from left to right.
    pub groups: Vec<String>,
    /// The bars, one of each series in each group.
    pub series: Vec<Series>,
    /// What stands out: a series, or with a single series a group.
    pub highlight: Option<usize>,
    /// Whether values are written above the bars where they fit.
    pub numbers: bool,
    /// The width of the figure, in units.
    pub width: f64,
    /// The height of the figure, in units.
    pub height: f64,
}

impl Default for Chart {
    fn default() -> Chart {
        Chart {
            title: String::new(),
            subtitle: String::new(),
            y_label: String::new(),
            y_range: None,
            groups: Vec::new(),
            series: Vec::new(),
            highlight: None,
            numbers: true,
            width: 720.0,
            height: 400.0,
        }
    }
}

/// One series of the chart, with a bar for each group.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name of the series in the legend.
    pub name: String,
    /// In the order of the groups; what is missing or not finite is said to be.
    pub values: Vec<Option<Value>>,
}

/// The height of a bar, and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The height of the bar.
    pub mean: f64,
    /// The low end of the interval.
    pub low: f64,
    /// The high end of the interval.
    pub high: f64,
}

impl Value {
    /// Returns a value without an interval, both ends of which are the value itself.
    pub fn exact(mean: f64) -> Value {
        Value { mean, low: mean, high: mean }
    }
}

/// How the names of the groups stand below the chart.
struct Names {
    shown: Vec<String>,
    turned: bool,
    /// Every how many groups a name is shown.
    every: usize,
    height: f64,
}

/// One bar and where it stands.
struct Bar<'a> {
    left: f64,
    width: f64,
    group: usize,
    series: &'a Series,
    colour: Colour,
}

impl Chart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        let mut figure = Figure::new(&self.title, self.width.max(160.0), self.height.max(120.0));
        figure.description = self.describe();
        let top = head::draw(&mut figure, &self.title, &self.subtitle, &self.legend());
        let axis = Axis { range: self.y_range, from_zero: true, ..Axis::linear("") };
        let y = Span::over(&axis, self.heights());
        let names = self.names(figure.width - 90.0);
        let numbers = if self.numbers { TICK + 2.0 } else { 0.0 };
        let below =
            names.height + if names.turned { 6.0 } else { 20.0 } + self.room_for_numbers_below();
        let plot = Plot::place(&figure, top + numbers, below, EDGE, y, &self.y_label);
        figure.height = figure.height.max(plot.frame.bottom + below);
        figure.width = figure.width.max(plot.frame.right + EDGE);
        plot.draw_y(&mut figure, &self.y_label);
        let bars = self.bars(&plot);
        for bar in &bars {
            draw_block(&mut figure, &plot, bar);
        }
        let zero = plot.down_within(0.0).floor() + 0.5;
        let line = Stroke::solid(Colour::AXIS, 1.0);
        figure.line((plot.frame.left, zero), (plot.frame.right, zero), line);
        for bar in &bars {
            self.draw_interval(&mut figure, &plot, bar);
        }
        if self.numbers {
            draw_numbers(&mut figure, &plot, &bars);
        }
        self.draw_names(&mut figure, &plot, &names);
        if bars.is_empty() {
            head::no_data(&mut figure, plot.frame.middle());
        }
        figure
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        format!("Bars of {} for {}: {}.", self.y_label, self.groups.join(", "), names.join(", "))
    }

    fn legend(&self) -> Vec<Entry> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        let entry = |(place, series): (usize, &Series)| Entry {
            name: series.name.clone(),
            sample: Sample::Block(self.colour(place, 0)),
            weight: self.weight(self.highlight == Some(place)),
        };
        self.series.iter().enumerate().map(entry).collect()
    }

    fn weight(&self, highlighted: bool) -> Weight {
        if highlighted { Weight::Bold } else { Weight::Regular }
    }

    /// What is highlighted has the emphasised colour, the others the following ones.
    fn colour(&self, series: usize, group: usize) -> Colour {
        let single = self.series.len() == 1;
        let place = if single { group } else { series };
        match self.highlight {
            Some(highlight) if highlight == place => Colour::of_block(0),
            Some(highlight) if !single => Colour::of_block(place + usize::from(place < highlight)),
            None if !single => Colour::of_block(place),
            _ => Colour::nth(1).lighter(0.25),
        }
    }

    fn heights(&self) -> impl Iterator<Item = f64> {
        let values =
            self.series.iter().flat_map(|series| series.values.iter().take(self.groups.len()));
        let finite = values.flatten().filter(|value| value.mean.is_finite());
        finite.flat_map(|value| [value.mean, value.low, value.high])
    }

    fn bars(&self, plot: &Plot) -> Vec<Bar<'_>> {
        let slot = plot.frame.width() / self.groups.len().max(1) as f64;
        let share = if self.series.len() > 1 { 0.78 } else { 0.62 };
        let count = self.series.len().max(1) as f64;
        let width = (slot * share / count).min(56.0);
        let between = if width > 8.0 { 2.0 } else { 0.0 };
        let mut bars = Vec::new();
        for group in 0..self.groups.len() {
            let middle = plot.frame.left + slot * (group as f64 + 0.5);
            for (place, series) in self.series.iter().enumerate() {
                let left = middle + width * (place as f64 - count / 2.0) + between / 2.0;
                let colour = self.colour(place, group);
                bars.push(Bar { left, width: width - between, group, series, colour });
            }
        }
        bars
    }

    /// The interval on a bar, and what a pointer over it shows.
    fn draw_interval(&self, figure: &mut Figure, plot: &Plot, bar: &Bar) {
        let Some(value) = bar.value() else { return };
        if value.low.is_finite() && value.high.is_finite() && value.low != value.high {
            let middle = bar.middle();
            let (low, high) = (plot.down_within(value.low), plot.down_within(value.high));
            let stroke = Stroke::solid(Colour::INK, 1.1);
            figure.line((middle, low), (middle, high), stroke);
            let cap = (bar.width * 0.2).min(5.0);
            for end in [low, high] {
                figure.line((middle - cap, end), (middle + cap, end), stroke);
            }
        }
        let place = (bar.left, plot.frame.top);
        figure.note(place, (bar.width, plot.frame.height()), self.note(bar, value));
    }

    /// Numbers of negative values stand below their bars.
    fn room_for_numbers_below(&self) -> f64 {
        let negative = self.heights().any(|height| height < 0.0);
        if self.numbers && negative { TICK } else { 0.0 }
    }

    fn note(&self, bar: &Bar, value: Value) -> String {
        let group = self.groups.get(bar.group).map(String::as_str).unwrap_or_default();
        let mut note = format!("{group}, {}: {}", bar.series.name, number::short(value.mean));
        if value.low != value.high {
            note += &format!(" ({} to {})", number::short(value.low), number::short(value.high));
        }
        note
    }

    fn names(&self, width: f64) -> Names {
        let slot = width / self.groups.len().max(1) as f64;
        let measure = |name: &String| font::room(name, LABEL, Weight::Bold);
        let widest = self.groups.iter().map(measure).fold(0.0, f64::max);
        if widest + 8.0 <= slot {
            let shown = self.groups.clone();
            return Names { shown, turned: false, every: 1, height: LABEL + 6.0 };
        }
        let shorten = |name: &String| font::shorten(name, LABEL, Weight::Bold, LONGEST_NAME);
        let shown: Vec<String> = self.groups.iter().map(shorten).collect();
        let widest = shown.iter().map(measure).fold(0.0, f64::max);
        let every = (16.0 / slot).ceil().max(1.0) as usize;
        Names { shown, turned: true, every, height: widest * (-TURN).to_radians().sin() + LABEL }
    }

    fn draw_names(&self, figure: &mut Figure, plot: &Plot, names: &Names) {
        let slot = plot.frame.width() / self.groups.len().max(1) as f64;
        let top = plot.frame.bottom + self.room_for_numbers_below();
        for (group, name) in names.shown.iter().enumerate().step_by(names.every) {
            let highlighted = self.series.len() == 1 && self.highlight == Some(group);
            let colour = if highlighted { Colour::INK } else { Colour::TEXT };
            let x = plot.frame.left + slot * (group as f64 + 0.5);
            let text = if names.turned {
                let at = (x + 5.0, top + 14.0);
                let name = font::shorten_turned(name, at.0, TURN);
                Text::new(at, LABEL, colour, name).anchored(Anchor::End).turned(TURN)
            } else {
                let at = (x, top + LABEL + 7.0);
                Text::new(at, LABEL, colour, name).anchored(Anchor::Middle)
            };
            figure.text(text.weighing(self.weight(highlighted)));
        }
    }
}

impl Bar<'_> {
    fn middle(&self) -> f64 {
        self.left + self.width / 2.0
    }

    fn value(&self) -> Option<Value> {
        let value = self.series.values.get(self.group).copied().flatten();
        value.filter(|value| value.mean.is_finite())
    }
}

/// The bar itself, from 0 to its value, or a sign that there is none.
fn draw_block(figure: &mut Figure, plot: &Plot, bar: &Bar) {
    let zero = plot.down_within(0.0);
    let Some(value) = bar.value() else {
        let text = Text::new((bar.middle(), zero - 4.0), LABEL, Colour::MUTED, MISSING);
        figure.text(text.anchored(Anchor::Middle).weighing(Weight::Bold));
        return;
    };
    let y = plot.down_within(value.mean);
    figure.fill_rect((bar.left, y.min(zero)), (bar.width, (y - zero).abs()), bar.colour);
}

/// Writes the values beyond their bars, if every one of them finds room.
fn draw_numbers(figure: &mut Figure, plot: &Plot, bars: &[Bar]) {
    let size = TICK - 1.0;
    let shown: Vec<(&Bar, Value)> =
        bars.iter().filter_map(|bar| Some((bar, bar.value()?))).collect();
    let means: Vec<f64> = shown.iter().map(|(_, value)| value.mean).collect();
    let numbers = number::even(&means);
    let widths: Vec<f64> =
        numbers.iter().map(|number| font::width(number, size, Weight::Regular)).collect();
    if shown.iter().zip(&widths).any(|((bar, _), width)| *width > bar.width + 1.0) {
        return;
    }
    for (((bar, value), number), width) in shown.into_iter().zip(numbers).zip(widths) {
        let ends = [value.mean, value.low, value.high].into_iter().filter(|end| end.is_finite());
        let y = if value.mean < 0.0 {
            plot.down_within(ends.fold(f64::INFINITY, f64::min)) + size + 3.0
        } else {
            plot.down_within(ends.fold(f64::NEG_INFINITY, f64::max)) - 5.0
        };
        // Lets the number be read where a line of the grid runs behind it.
        let paper = Fill { colour: Colour::PAPER, opacity: 0.8 };
        let corner = (bar.middle() - width / 2.0 - 1.0, y - size * 0.8);
        figure.fill_rect(corner, (width + 2.0, size * 0.9), paper);
        let text = Text::new((bar.middle(), y), size, Colour::TEXT, number);
        figure.text(text.anchored(Anchor::Middle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Mark;

    fn chart(values: Vec<Option<Value>>) -> Chart {
        let groups = (0..values.len()).map(|k| format!("g{k}")).collect();
        let series = vec![Series { name: "s".to_owned(), values }];
        Chart { groups, series, ..Chart::default() }
    }

    fn texts(figure: &Figure) -> Vec<&str> {
        let marks = figure.marks.iter();
        marks
            .filter_map(|mark| match mark {
                Mark::Text(text) => Some(text.content.as_str()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn missing_bars_are_said_to_be() {
        let figure =
            chart(vec![Some(Value::exact(1.0)), None, Some(Value::exact(f64::NAN))]).draw();
        assert_eq!(texts(&figure).iter().filter(|text| **text == MISSING).count(), 2);
    }

    #[test]
    fn heights_are_in_proportion_and_start_at_zero() {
        let figure = chart(vec![Some(Value::exact(2.0)), Some(Value::exact(-1.0))]).draw();
        let heights: Vec<(f64, f64)> = figure
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Rect { at, size, .. } => Some((at.1, size.1)),
                _ => None,
            })
            .collect();
        assert!((heights[0].1 - 2.0 * heights[1].1).abs() < 1e-9);
        assert!((heights[0].0 + heights[0].1 - heights[1].0).abs() < 1e-9);
    }

    #[test]
    fn the_highlighted_one_has_the_emphasised_colour_and_no_other() {
        let series = ["a", "b", "c"].map(|name| Series { name: name.to_owned(), values: vec![] });
        let chart = Chart { series: series.to_vec(), highlight: Some(1), ..Chart::default() };
        let colours = [0, 1, 2].map(|place| chart.colour(place, 0));
        assert_eq!(colours, [Colour::nth(1), Colour::nth(0), Colour::nth(2)]);
    }

    #[test]
    fn long_names_are_turned_and_shortened() {
        let mut long = chart(vec![Some(Value::exact(1.0)); 12]);
        long.groups = vec!["a name that is longer than its place below the bars".to_owned(); 12];
        let figure = long.draw();
        assert!(figure.marks.iter().any(|mark| matches!(mark, Mark::Text(t) if t.turn == TURN)));
        assert!(texts(&figure).iter().any(|text| text.ends_with('…')));
        assert!(texts(&Chart::default().draw()).contains(&"no data"));
    }
}
