//! Devices by classes as circles: the area is the number of samples, filled where labels are known.

use super::{STYLE, escape, line, text};
use stlf::words::grouped;

/// A chart of what each device holds.
pub(crate) struct DeviceChart<'a> {
    /// Above the chart.
    pub title: &'a str,
    /// Below the title, smaller.
    pub subtitle: &'a str,
    /// The columns.
    pub classes: &'a [String],
    /// A device's name, and for each class its samples with a label and those without.
    pub rows: &'a [(String, Vec<(usize, usize)>)],
}

const RIGHT: f64 = 28.0;
const TOP: f64 = 116.0;
const BOTTOM: f64 = 30.0;
const ROW: f64 = 40.0;
const COLUMN: f64 = 52.0;
const LARGEST_RADIUS: f64 = 18.0;
const LEAST_WIDTH: f64 = 640.0;

/// About as wide as a letter of the labels' size.
const LETTER: f64 = 6.7;

const OWN_STYLE: &str = "\
.known{fill:#1f5fbf}\
.held{fill:#1f5fbf22;stroke:#1f5fbf;stroke-width:1.4}\
@media (prefers-color-scheme:dark){.known{fill:#6ea8ff}.held{fill:#6ea8ff33;stroke:#6ea8ff}}";

impl DeviceChart<'_> {
    /// The whole document.
    pub(crate) fn render(&self) -> String {
        let longest = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let left = 36.0 + LETTER * longest as f64;
        let width = (left + COLUMN * self.classes.len() as f64 + RIGHT)
            .max(48.0 + LETTER * self.subtitle.chars().count() as f64)
            .max(LEAST_WIDTH);
        let height = TOP + ROW * self.rows.len() as f64 + BOTTOM;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n\
             <style>{STYLE}{OWN_STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"10\"/>\n",
            escape(self.title)
        );
        svg += &text(24.0, 32.0, "title", "start", self.title);
        svg += &text(24.0, 52.0, "sub", "start", self.subtitle);
        svg += "<circle class=\"known\" cx=\"31\" cy=\"73\" r=\"6\"/>\n";
        svg += &text(43.0, 77.0, "tick", "start", "labels known");
        svg += "<circle class=\"held\" cx=\"149\" cy=\"73\" r=\"6\"/>\n";
        svg += &text(161.0, 77.0, "tick", "start", "all samples; area is their number");
        let x = |class: usize| left + COLUMN * (class as f64 + 0.5);
        let y = |row: usize| TOP + ROW * (row as f64 + 0.5);
        let end = left + COLUMN * self.classes.len() as f64;
        for (class, name) in self.classes.iter().enumerate() {
            svg += &line(x(class), TOP, x(class), height - BOTTOM, "grid");
            svg += &text(x(class), TOP - 8.0, "tick", "middle", &shortened(name));
        }
        let most = self.rows.iter().flat_map(|(_, cells)| cells.iter().map(|(k, h)| k + h)).max();
        let radius =
            |count: usize| LARGEST_RADIUS * (count as f64 / most.unwrap_or(1).max(1) as f64).sqrt();
        for (row, (name, cells)) in self.rows.iter().enumerate() {
            svg += &line(left, y(row), end, y(row), "grid");
            svg += &text(left - 12.0, y(row) + 4.0, "", "end", name);
            for (class, &(known, hidden)) in cells.iter().enumerate() {
                let all = known + hidden;
                if all == 0 {
                    continue;
                }
                let (x, y) = (x(class), y(row));
                svg += &format!(
                    "<g><title>{}: {} of {}, {} with labels</title>\
                     <circle class=\"held\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>",
                    escape(name),
                    grouped(all as u64),
                    escape(&self.classes[class]),
                    grouped(known as u64),
                    radius(all)
                );
                if known > 0 {
                    svg += &format!(
                        "<circle class=\"known\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>",
                        radius(known)
                    );
                }
                svg += "</g>\n";
            }
        }
        svg += "</svg>\n";
        svg
    }
}

/// A class's name, cut where it would run into the next one.
fn shortened(name: &str) -> String {
    let most = (COLUMN / LETTER) as usize;
    match name.chars().count() > most {
        true => name.chars().take(most - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
