//! Charts as SVG: here steps, in stacked panels over one logarithmic axis; devices by classes beside it.
//!
//! No script, no external font or style; a reader's dark mode swaps the colours.

mod devices;

pub(crate) use devices::DeviceChart;

use stlf::words::short;

/// A chart of quantities that are constant between breakpoints.
pub(crate) struct StepChart<'a> {
    /// Above the panels.
    pub title: &'a str,
    /// Below the title, smaller.
    pub subtitle: &'a str,
    /// Below the axis.
    pub axis: &'a str,
    /// Ascending, positive: where the steps begin, and at the end where the last one ends.
    pub edges: &'a [f64],
    /// A value on the axis to point out, and its label.
    pub marker: Option<(f64, String)>,
    /// From top to bottom.
    pub panels: &'a [Panel],
    /// What a pointer over each step shows.
    pub notes: &'a [String],
}

/// One quantity, a value for each step.
pub(crate) struct Panel {
    /// What is drawn, with its unit.
    pub label: &'static str,
    /// One per step.
    pub values: Vec<f64>,
    /// Whether the axis begins at 0 (amounts) or near the least value (levels).
    pub from_zero: bool,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 64.0;
const TOP: f64 = 106.0;
const PANEL: f64 = 128.0;
const BETWEEN: f64 = 44.0;
const BOTTOM: f64 = 62.0;

/// With more breakpoints than this, lines through all panels would hide the curves.
const MOST_GUIDES: usize = 40;

const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-size:12px;fill:#3f4650}\
.title{font-size:17px;font-weight:600;fill:#16191d}\
.sub,.tick{fill:#6b7280}\
.label{font-weight:600;paint-order:stroke;stroke:#fdfdfc;stroke-width:4px}\
.paper{fill:#fdfdfc}\
.grid{stroke:#e6e7e9;stroke-width:1}\
.axis{stroke:#a3a8b0;stroke-width:1}\
.guide{stroke:#c3c7cd;stroke-width:1;stroke-dasharray:2 3}\
.marker{stroke:#16191d;stroke-width:1.2;stroke-dasharray:5 3}\
.now{font-weight:600;fill:#16191d}\
.curve{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}\
.area{stroke:none;opacity:.13}\
.hit{fill:transparent}\
.c0{stroke:#c2570c}.f0{fill:#c2570c}\
.c1{stroke:#1f5fbf}.f1{fill:#1f5fbf}\
.c2{stroke:#0f766e}.f2{fill:#0f766e}\
@media (prefers-color-scheme:dark){\
text{fill:#c9ced6}.title,.now{fill:#f3f4f6}.sub,.tick{fill:#9aa1ac}\
.paper{fill:#15181c}.label{stroke:#15181c}.grid{stroke:#2a2f36}.axis{stroke:#5b626d}.guide{stroke:#464d57}\
.marker{stroke:#f3f4f6}.area{opacity:.22}\
.c0{stroke:#fb923c}.f0{fill:#fb923c}\
.c1{stroke:#6ea8ff}.f1{fill:#6ea8ff}\
.c2{stroke:#2dd4bf}.f2{fill:#2dd4bf}}";

impl StepChart<'_> {
    /// The whole document.
    pub(crate) fn render(&self) -> String {
        let panels = self.panels.len() as f64;
        let height = TOP + panels * PANEL + (panels - 1.0) * BETWEEN + BOTTOM;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{}</title>\n\
             <style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"10\"/>\n",
            escape(self.title)
        );
        svg += &text(24.0, 32.0, "title", "start", self.title);
        svg += &text(24.0, 52.0, "sub", "start", self.subtitle);
        let bottom = height - BOTTOM;
        self.draw_axis(&mut svg, bottom);
        self.draw_marker(&mut svg, bottom);
        for (k, panel) in self.panels.iter().enumerate() {
            self.draw_panel(&mut svg, k, panel, TOP + k as f64 * (PANEL + BETWEEN));
        }
        self.draw_notes(&mut svg, bottom);
        svg += "</svg>\n";
        svg
    }

    /// From a value to a place, logarithmically.
    fn x(&self, value: f64) -> f64 {
        let (low, high) = (self.edges[0], self.edges[self.edges.len() - 1]);
        let share = if high > low { (value / low).ln() / (high / low).ln() } else { 0.5 };
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn breakpoints(&self) -> &[f64] {
        &self.edges[1..self.edges.len() - 1]
    }

    fn draw_axis(&self, svg: &mut String, bottom: f64) {
        let (low, high) = (self.edges[0], self.edges[self.edges.len() - 1]);
        let decades: Vec<i32> = (low.log10().ceil() as i32..=high.log10().floor() as i32).collect();
        let every = decades.len().div_ceil(9).max(1);
        let mut ticks: Vec<(f64, String)> = decades
            .iter()
            .step_by(every)
            .map(|&power| (10f64.powi(power), power_of_ten(power)))
            .collect();
        if ticks.len() < 2 {
            ticks = vec![(low, short(low)), (high, short(high))];
        }
        for (value, label) in ticks {
            let x = self.x(value);
            *svg += &line(x, TOP, x, bottom, "grid");
            *svg += &line(x, bottom, x, bottom + 4.0, "axis");
            *svg += &text(x, bottom + 19.0, "tick", "middle", &label);
        }
        *svg += &text((LEFT + WIDTH - RIGHT) / 2.0, bottom + 44.0, "", "middle", self.axis);
        let through = self.breakpoints().len() <= MOST_GUIDES;
        for &at in self.breakpoints() {
            let x = self.x(at);
            let top = if through { TOP } else { bottom - 5.0 };
            *svg += &line(x, top, x, bottom, "guide");
        }
    }

    fn draw_panel(&self, svg: &mut String, k: usize, panel: &Panel, top: f64) {
        let scale = Scale::over(&panel.values, panel.from_zero);
        let bottom = top + PANEL;
        let y = |value: f64| bottom - PANEL * (value - scale.low) / (scale.high - scale.low);
        *svg += &text(LEFT, top - 12.0, &format!("label f{k}"), "start", panel.label);
        for tick in scale.ticks() {
            let class = if tick == scale.low { "axis" } else { "grid" };
            *svg += &line(LEFT, y(tick), WIDTH - RIGHT, y(tick), class);
            *svg += &text(LEFT - 9.0, y(tick) + 4.0, "tick", "end", &scale.label(tick));
        }
        let mut path = String::new();
        for (step, &value) in panel.values.iter().enumerate() {
            let (from, to) = (self.x(self.edges[step]), self.x(self.edges[step + 1]));
            let move_or_line = if step == 0 { 'M' } else { 'L' };
            path += &format!("{move_or_line}{from:.1} {v:.1}H{to:.1}", v = y(value));
        }
        if panel.from_zero {
            let (from, to) = (LEFT, WIDTH - RIGHT);
            *svg += &format!(
                "<path class=\"area f{k}\" d=\"{path}L{to:.1} {bottom:.1}H{from:.1}Z\"/>\n"
            );
        }
        *svg += &format!("<path class=\"curve c{k}\" d=\"{path}\"/>\n");
        if self.breakpoints().len() <= MOST_GUIDES {
            for (&at, &value) in self.breakpoints().iter().zip(&panel.values[1..]) {
                *svg += &format!(
                    "<circle class=\"f{k}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\"/>\n",
                    self.x(at),
                    y(value)
                );
            }
        }
        if let Some(&last) = panel.values.last() {
            let class = format!("label f{k}");
            *svg += &text(WIDTH - RIGHT + 8.0, y(last) + 4.0, &class, "start", &short(last));
        }
    }

    fn draw_marker(&self, svg: &mut String, bottom: f64) {
        let Some((at, label)) = &self.marker else {
            return;
        };
        let x = self.x(*at);
        if !(LEFT..=WIDTH - RIGHT).contains(&x) {
            return;
        }
        *svg += &line(x, TOP - 34.0, x, bottom, "marker");
        let (anchor, shift) =
            if x > WIDTH - RIGHT - 150.0 { ("end", -6.0) } else { ("start", 6.0) };
        *svg += &text(x + shift, TOP - 30.0, "now", anchor, label);
    }

    fn draw_notes(&self, svg: &mut String, bottom: f64) {
        for (step, note) in self.notes.iter().enumerate() {
            let (from, to) = (self.x(self.edges[step]), self.x(self.edges[step + 1]));
            *svg += &format!(
                "<rect class=\"hit\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\">\
                 <title>{}</title></rect>\n",
                to - from,
                bottom - TOP,
                escape(note)
            );
        }
    }
}

/// A linear axis with round ticks.
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    fn over(values: &[f64], from_zero: bool) -> Scale {
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let low = if from_zero { least.min(0.0) } else { least };
        // A constant still needs a range to be drawn in.
        let range = if most > low { most - low } else { most.abs().max(1.0) * 0.5 };
        let counts = values.iter().all(|v| v.fract() == 0.0);
        let rough = if counts { (range / 3.0).max(1.0) } else { range / 3.0 };
        let magnitude = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|m| m * magnitude)
            .find(|&step| step >= rough && !(counts && step.fract() != 0.0))
            .unwrap_or(10.0 * magnitude);
        let low = (low / step).floor() * step;
        let high = (most.max(low + range) / step).ceil() * step;
        Scale { low, high, step }
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|k| self.low + k as f64 * self.step)
    }

    fn label(&self, tick: f64) -> String {
        let decimals = (0..9).find(|&d| {
            let scaled = self.step * 10f64.powi(d);
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        });
        let tick = if tick.abs() < 1e-9 * self.step { 0.0 } else { tick };
        format!("{tick:.*}", decimals.unwrap_or(9) as usize)
    }
}

fn power_of_ten(power: i32) -> String {
    let superscript = |c| match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁴' as u32 + digit as u32 - '4' as u32).unwrap_or(digit),
    };
    match power {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10{}", power.to_string().chars().map(superscript).collect::<String>()),
    }
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64, class: &str) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
    )
}

fn text(x: f64, y: f64, class: &str, anchor: &str, content: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
        escape(content)
    )
}

fn escape(content: &str) -> String {
    content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
