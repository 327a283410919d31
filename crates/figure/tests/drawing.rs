//! What every chart promises: well-formed SVG of the right size and colours, and no panic whatever is drawn.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use stlf_figure::heat::Badge;
use stlf_figure::{
    Axis, Colour, Figure, Fill, Mark, Stroke, Text, bars, circles, heat, lines, panels, steps,
};

/// The first thing that keeps a document from being well-formed XML of the kind we write.
fn ill_formed(xml: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml.trim_end();
    let mut roots = 0;
    while !rest.is_empty() {
        let Some(tag) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            if let Some(problem) = bad_text(&rest[..end]) {
                return Some(problem);
            }
            if open.is_empty() {
                return Some(format!("text outside: {}", &rest[..end]));
            }
            rest = &rest[end..];
            continue;
        };
        let end = tag.find('>')?;
        let (inside, after) = (&tag[..end], &tag[end + 1..]);
        if let Some(name) = inside.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> closes nothing"));
            }
        } else {
            let inside_open = inside.strip_suffix('/').unwrap_or(inside);
            let (name, attributes) = inside_open.split_once(' ').unwrap_or((inside_open, ""));
            if let Some(problem) = bad_attributes(attributes) {
                return Some(format!("<{name}>: {problem}"));
            }
            roots += usize::from(open.is_empty());
            if !inside.ends_with('/') {
                open.push(name);
            }
        }
        rest = after;
    }
    match (open.as_slice(), roots) {
        ([], 1) => None,
        _ => Some(format!("{open:?} open at the end, {roots} roots")),
    }
}

fn bad_attributes(mut rest: &str) -> Option<String> {
    let mut names = Vec::new();
    while !rest.trim().is_empty() {
        let Some((name, after)) = rest.trim_start().split_once("=\"") else {
            return Some(format!("not an attribute: {rest}"));
        };
        let Some((value, after)) = after.split_once('"') else {
            return Some(format!("{name} is not closed"));
        };
        if names.contains(&name) || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Some(format!("{name} is twice there or no name"));
        }
        if let Some(problem) = bad_text(value) {
            return Some(problem);
        }
        names.push(name);
        rest = after;
    }
    None
}

fn bad_text(text: &str) -> Option<String> {
    if text.contains(['<', '>']) || text.chars().any(|c| c.is_control() && c != '\n') {
        return Some(format!("forbidden in text: {text:?}"));
    }
    let entities = ["amp;", "lt;", "gt;", "quot;"];
    let stray = text.split('&').skip(1).any(|after| !entities.iter().any(|e| after.starts_with(e)));
    stray.then(|| format!("a stray ampersand: {text}"))
}

/// A figure as SVG, of the size that it says.
fn checked(figure: &Figure) {
    let svg = figure.to_svg();
    assert_eq!(ill_formed(&svg), None, "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    let size = |name: &str| -> f64 {
        let (_, after) = svg.split_once(&format!(" {name}=\"")).unwrap();
        after.split_once('"').unwrap().0.parse().unwrap()
    };
    assert!((size("width") - figure.width).abs() < 0.006, "{svg}");
    assert!((size("height") - figure.height).abs() < 0.006, "{svg}");
}

#[test]
fn the_checker_finds_what_is_ill_formed() {
    for xml in
        ["<a>", "<a></b>", "<a x=1/>", "<a>&b</a>", "<a/><b/>", "<a x=\"1\" x=\"2\"/>", "x<a/>"]
    {
        assert!(ill_formed(xml).is_some(), "{xml}");
    }
    assert_eq!(ill_formed("<a x=\"&lt;\"><b/>c &amp; d</a>\n"), None);
}

#[test]
fn colours_are_where_they_were_drawn() {
    let (red, blue, green) = (Colour::nth(0), Colour::nth(1), Colour::nth(2));
    let mut figure = Figure::new("", 60.0, 40.0);
    figure.fill_rect((5.0, 5.0), (10.0, 10.0), red);
    figure.fill_rect((30.0, 5.0), (10.0, 10.0), Fill { colour: Colour::hex(0), opacity: 0.5 });
    figure.line((5.0, 25.0), (50.0, 25.0), Stroke::solid(blue, 4.0));
    let fill = Some(Fill::from(green));
    figure.marks.push(Mark::Circle { centre: (50.0, 10.0), radius: 5.0, fill, stroke: None });
    let points = vec![(10.0, 30.0), (20.0, 30.0), (10.0, 40.0)];
    figure.marks.push(Mark::Polygon { points, fill, stroke: None });
    figure.text(Text::new((40.0, 39.0), 12.0, red, "I"));
    checked(&figure);
    let svg = figure.to_svg();
    let drawn: Vec<&str> = svg.lines().skip_while(|line| !line.starts_with("<rect")).collect();
    let expected = [
        "<rect width=\"60\" height=\"40\" fill=\"#ffffff\"/>",
        "<rect x=\"5\" y=\"5\" width=\"10\" height=\"10\" fill=\"#d55e00\"/>",
        "<rect x=\"30\" y=\"5\" width=\"10\" height=\"10\" fill=\"#000000\" fill-opacity=\"0.5\"/>",
        "<polyline points=\"5,25 50,25\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"4\"/>",
        "<circle cx=\"50\" cy=\"10\" r=\"5\" fill=\"#009e73\"/>",
        "<polygon points=\"10,30 20,30 10,40\" fill=\"#009e73\"/>",
        "<text x=\"40\" y=\"39\" font-size=\"12\" fill=\"#d55e00\">I</text>",
        "</svg>",
    ];
    assert_eq!(drawn, expected);
}

#[test]
fn bars_stand_where_their_values_are() {
    let chart = bars::Chart {
        groups: vec!["g".to_owned()],
        series: vec![bars::Series {
            name: "s".to_owned(),
            values: vec![Some(bars::Value::exact(1.0))],
        }],
        highlight: Some(0),
        ..bars::Chart::default()
    };
    let figure = chart.draw();
    let block = figure.marks.iter().find_map(|mark| match mark {
        Mark::Rect { at, size, fill, .. } => Some((*at, *size, *fill)),
        _ => None,
    });
    let (at, size, fill) = block.unwrap();
    assert_eq!(fill, Some(Fill::from(Colour::nth(0))));
    assert!(size.0 > 10.0 && size.1 > 200.0, "{size:?}");
    assert!(at.0 > 0.0 && at.0 + size.0 < figure.width, "{at:?}");
    assert!(at.1 > 0.0 && at.1 + size.1 < figure.height - 10.0, "{at:?}");
}

#[test]
fn the_same_chart_gives_the_same_bytes() {
    let figure = Chance(7).lines().draw();
    assert_eq!(figure.to_svg(), figure.clone().to_svg());
}

#[test]
fn names_are_escaped_wherever_they_stand() {
    let name = "<b> & \"c\" \u{7}";
    let chart = bars::Chart {
        title: name.to_owned(),
        y_label: name.to_owned(),
        groups: vec![name.to_owned(); 2],
        series: vec![bars::Series { name: name.to_owned(), values: vec![None] }; 2],
        ..bars::Chart::default()
    };
    checked(&chart.draw());
}

#[test]
fn whatever_is_drawn_it_is_drawn() {
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let figure = match seed % 6 {
            0 => chance.lines().draw(),
            1 => chance.bars().draw(),
            2 => chance.map().draw(),
            3 => chance.steps().draw(),
            4 => chance.circles().draw(),
            _ => {
                let parts = vec![chance.lines().draw(), chance.bars().draw(), chance.map().draw()];
                panels::arrange(&chance.name(), chance.below(5), parts)
            }
        };
        checked(&figure);
    }
}

/// Charts that nobody should draw, from a seed (the generator is Steele and Vigna's SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % count as u64) as usize
    }

    fn value(&mut self) -> f64 {
        let odd = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            1e300,
            -1e300,
            1e-300,
            1e16,
            1e9,
            1e9 + 1.0,
            0.1 + 0.2,
        ];
        match self.below(3) {
            0 => odd[self.below(odd.len())],
            1 => self.below(1000) as f64 / 1000.0,
            _ => (self.below(2_000_001) as f64 - 1e6) * 10f64.powi(self.below(12) as i32 - 6),
        }
    }

    fn pair(&mut self) -> (f64, f64) {
        (self.value(), self.value())
    }

    fn name(&mut self) -> String {
        let letters =
            ["a", " ", "W", "φ", "語", "<&>\"", "\u{302}", "\u{0}", "\n", "10⁻³", "…", "name "];
        let count = [0, 1, 3, 10, 80][self.below(5)];
        (0..count).map(|_| letters[self.below(letters.len())]).collect()
    }

    fn list<T>(&mut self, most: usize, mut item: impl FnMut(&mut Chance) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| item(self)).collect()
    }

    fn maybe<T>(&mut self, item: impl FnOnce(&mut Chance) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| item(self))
    }

    fn axis(&mut self) -> Axis {
        let axis = if self.below(2) == 0 { Axis::linear("") } else { Axis::log("") };
        Axis {
            label: self.name(),
            range: self.maybe(Chance::pair),
            from_zero: self.below(2) == 0,
            ..axis
        }
    }

    fn side(&mut self) -> f64 {
        [0.0, -5.0, 30.0, 200.0, 640.0, 1200.0][self.below(6)]
    }

    fn lines(&mut self) -> lines::Chart {
        lines::Chart {
            title: self.name(),
            subtitle: self.name(),
            x: self.axis(),
            y: self.axis(),
            series: self.list(9, |chance| lines::Series {
                name: chance.name(),
                points: chance.list(60, Chance::pair),
                band: chance.maybe(|chance| chance.list(60, Chance::pair)),
                style: None,
                join: [lines::Join::Straight, lines::Join::Steps][chance.below(2)],
            }),
            guides: self
                .list(3, |chance| lines::Guide { at: chance.value(), label: chance.name() }),
            width: self.side(),
            height: self.side(),
        }
    }

    fn bars(&mut self) -> bars::Chart {
        let value = |chance: &mut Chance| {
            chance.maybe(|chance| bars::Value {
                mean: chance.value(),
                low: chance.value(),
                high: chance.value(),
            })
        };
        bars::Chart {
            title: self.name(),
            subtitle: self.name(),
            y_label: self.name(),
            y_range: self.maybe(Chance::pair),
            groups: self.list(20, Chance::name),
            series: self.list(9, |chance| bars::Series {
                name: chance.name(),
                values: chance.list(22, value),
            }),
            highlight: self.maybe(|chance| chance.below(12)),
            numbers: self.below(2) == 0,
            width: self.side(),
            height: self.side(),
        }
    }

    fn steps(&mut self) -> steps::Chart {
        steps::Chart {
            title: self.name(),
            subtitle: self.name(),
            x: self.axis(),
            edges: self.list(60, Chance::value),
            panels: self.list(4, |chance| steps::Panel {
                label: chance.name(),
                values: chance.list(62, Chance::value),
                from_zero: chance.below(2) == 0,
            }),
            guide: self.maybe(|chance| lines::Guide { at: chance.value(), label: chance.name() }),
            notes: self.list(62, Chance::name),
            width: self.side(),
        }
    }

    fn circles(&mut self) -> circles::Table {
        let cell = |chance: &mut Chance| circles::Cell {
            whole: chance.value(),
            part: chance.value(),
            note: chance.name(),
        };
        circles::Table {
            title: self.name(),
            subtitle: self.name(),
            rows: self.list(20, Chance::name),
            columns: self.list(40, Chance::name),
            cells: self.list(22, |chance| chance.list(42, cell)),
            whole_label: self.name(),
            part_label: self.name(),
            width: self.side(),
        }
    }

    fn map(&mut self) -> heat::Map {
        let badge = |chance: &mut Chance| {
            chance.maybe(|chance| Badge {
                letter: chance.name(),
                colour: Colour::nth(chance.below(9)),
            })
        };
        heat::Map {
            title: self.name(),
            subtitle: self.name(),
            rows: self.list(20, Chance::name),
            columns: self.list(40, Chance::name),
            rows_label: self.name(),
            columns_label: self.name(),
            values: self.list(22, |chance| chance.list(42, |chance| chance.maybe(Chance::value))),
            range: self.maybe(Chance::pair),
            bar_label: self.name(),
            row_badges: self.list(22, badge),
            column_badges: self.list(42, badge),
            width: self.side(),
        }
    }
}
