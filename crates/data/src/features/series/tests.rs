use proptest::prelude::*;

use super::super::{Options, read_csv};
use super::*;
use crate::dataset::Values;
use crate::{Dataset, Shape};

fn read(text: &str, options: &Options) -> Result<Dataset, Error> {
    read_csv(text.as_bytes(), Path::new("t.csv"), options)
}

fn by(length: usize, stride: usize) -> Options {
    Options { windows: Some(Windows { length, stride }), ..Options::default() }
}

fn numbers(set: &Dataset) -> &[f64] {
    match set.values() {
        Values::Features(features) => features,
        Values::Pixels(_) => panic!("features"),
    }
}

fn rows(set: &Dataset) -> Vec<usize> {
    set.beginnings().iter().map(|beginning| beginning.row).collect()
}

fn labels(set: &Dataset) -> Vec<Option<&str>> {
    let name = |class: u16| set.classes()[usize::from(class)].as_str();
    (0..set.len()).map(|sample| set.label(sample).map(name)).collect()
}

/// Two devices whose rows are mixed; a has a gap after its fourth row, b has none.
const MIXED: &str = "time,device,x,y,label\n\
    0,a,1,10,run\n\
    0,b,-1,-10,\n\
    1,a,2,20,run\n\
    2,a,3,30,walk\n\
    1,b,-2,-20,walk\n\
    3,a,4,40,walk\n\
    9,a,5,50,run\n\
    2,b,-3,-30,\n\
    10,a,6,60,walk\n\
    11,a,7,70,walk\n";

#[test]
fn windows_lie_within_a_device_and_between_gaps() {
    let set = read(MIXED, &by(2, 1)).unwrap();
    assert_eq!(set.shape(), Shape { channels: 2, height: 1, width: 2 });
    assert_eq!((set.columns(), set.readings()), (&["x", "y"].map(str::to_owned)[..], 2));
    // Rows from 0: a has 0 2 3 5 | 6 8 9, b has 1 4 7.
    assert_eq!(rows(&set), [0, 1, 2, 3, 4, 6, 8]);
    let windows: Vec<&[f64]> = numbers(&set).chunks(4).collect();
    let expected: [&[f64]; 7] = [
        &[1., 2., 10., 20.],
        &[-1., -2., -10., -20.],
        &[2., 3., 20., 30.],
        &[3., 4., 30., 40.],
        &[-2., -3., -20., -30.],
        &[5., 6., 50., 60.],
        &[6., 7., 60., 70.],
    ];
    assert_eq!(windows, expected);
    let (run, walk) = (Some("run"), Some("walk"));
    assert_eq!(labels(&set), [run, walk, run, walk, walk, run, walk]);
    let domains: Vec<&str> = (0..7).map(|i| set.domains()[set.domain(i)].as_str()).collect();
    assert_eq!(domains, ["a", "b", "a", "a", "b", "a", "a"]);
    let times: Vec<_> = set.beginnings().iter().filter_map(|b| b.time.as_deref()).collect();
    assert_eq!(times, ["0", "0", "1", "2", "1", "9", "10"]);
    let series = set.series().unwrap();
    assert_eq!((series.time.as_deref(), series.device.as_deref()), (Some("time"), Some("device")));

    // What is left at the end of a stretch is not used.
    assert_eq!(rows(&read(MIXED, &by(3, 2)).unwrap()), [0, 1, 6]);
    assert_eq!(labels(&read(MIXED, &by(3, 2)).unwrap()), [run, None, walk]);
    assert_eq!(rows(&read(MIXED, &by(2, 2)).unwrap()), [0, 1, 3, 6]);
    assert_eq!(rows(&read(MIXED, &by(1, 1)).unwrap()), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // Without times no reading is missing.
    let untimed = Options { ignore: vec!["time".to_owned()], ..by(3, 3) };
    assert_eq!(rows(&read(MIXED, &untimed).unwrap()), [0, 1, 5]);
    let set = read(MIXED, &untimed).unwrap();
    assert_eq!((set.series().unwrap().time.as_ref(), &set.beginnings()[0].time), (None, &None));
}

#[test]
fn other_tables_are_cut_like_the_first() {
    let series = read(MIXED, &by(2, 2)).unwrap().series().cloned().unwrap();
    let columns = ["y", "x"].map(str::to_owned);
    let cut = |text: &str| {
        let wanted = super::super::Wanted::Features(&columns, Some(&series), None);
        super::super::csv_file::read(text.as_bytes(), Path::new("t.csv"), &wanted)
    };
    let again = cut(MIXED).unwrap();
    assert_eq!((rows(&again), again.columns()), (vec![0, 1, 3, 6], &columns[..]));
    assert_eq!(numbers(&again)[..4], [10., 20., 1., 2.]);
    assert_eq!(labels(&again), [None; 4]);
    // A table of one device need not name it; times are needed.
    let one = cut("y,time,x\n1,0,2\n3,1,4\n5,2,6\n").unwrap();
    assert_eq!((numbers(&one), &one.series().unwrap().device), (&[1., 3., 2., 4.][..], &None));
    let error = cut("x,y\n1,2\n3,4\n").unwrap_err().to_string();
    assert_eq!(error, "t.csv: column \"time\" is missing");
}

#[test]
fn a_label_is_that_of_half_of_the_rows_and_of_two_the_first() {
    let of = |labels: &[&str]| {
        let rows: String = labels.iter().map(|label| format!("1,{label}\n")).collect();
        // One more window, so that there is a label.
        let text = format!("x,label\n{rows}{}", "1,z\n".repeat(labels.len()));
        let set = read(&text, &by(labels.len(), labels.len())).unwrap();
        set.label(0).map(|class| set.classes()[usize::from(class)].clone())
    };
    for (labels, expected) in [
        (&["b", "b", "b"][..], Some("b")),
        (&["a", "b", "b"], Some("b")),
        (&["b", "a", "a", "b"], Some("b")),
        (&["a", "b", "a", "b"], Some("a")),
        (&["", "b", "", "b"], Some("b")),
        (&["", "b", ""], None),
        (&["a", "b", "c"], None),
        (&["a"], Some("a")),
    ] {
        assert_eq!(of(labels).as_deref(), expected, "{labels:?}");
    }
}

#[test]
fn rounded_times_have_no_gaps_and_dates_are_times() {
    // Three readings a second, written as seconds; one second is missing.
    let second = |k: usize| k / 3 + usize::from(k >= 12);
    let rows_of = |time: &dyn Fn(usize) -> String| -> String {
        (0..18).map(|k| format!("{},{k},a\n", time(k))).collect()
    };
    let text = rows_of(&|k| second(k).to_string());
    let set = read(&format!("timestamp,x,label\n{text}"), &by(6, 6)).unwrap();
    assert_eq!(rows(&set), [0, 6, 12]);
    assert_eq!(rows(&read(&format!("timestamp,x,label\n{text}"), &by(5, 5)).unwrap()), [0, 5, 12]);
    let text = rows_of(&|k| format!("2026-03-01T12:00:{:02}", second(k)));
    let named = Options { time: Some("when".to_owned()), ..by(5, 5) };
    assert_eq!(rows(&read(&format!("when,x,label\n{text}"), &named).unwrap()), [0, 5, 12]);
}

#[test]
fn errors_say_what_was_expected() {
    let error = |text: &str, options: &Options| {
        let error = read(text, options).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default().to_owned())
    };
    let short = error(MIXED, &by(4, 1));
    assert_eq!(short.0, "t.csv: device \"b\" has at most 3 readings, fewer than the 4 of a window");
    assert_eq!(short.1, "choose a shorter data.window");
    let text = "time,x,label\n0,1,a\n1,1,a\n2,1,a\n9,1,a\n10,1,a\n";
    assert_eq!(
        error(text, &by(4, 1)).0,
        "t.csv: has at most 3 readings without a gap, fewer than the 4 of a window"
    );
    let back = error("x,time,label,device\n1,5,a,p\n1,4,a,q\n1,4.5,a,p\n", &by(1, 1));
    assert_eq!(
        back.0,
        "t.csv: row 4, column time: 4.5 is earlier than 5 in row 2, of the same device"
    );
    assert_eq!(back.1, "sort the table by time");
    let (message, hint) = error("x,time,label\n1,noon,a\n", &by(1, 1));
    assert_eq!(message, "t.csv: row 2, column time: \"noon\" is no time");
    assert!(hint.contains("2026-03-01T12:00:00"), "{hint}");
    let (message, hint) = error("time,label\n1,a\n", &by(1, 1));
    assert_eq!(message, "t.csv: has no column of features");
    assert!(hint.ends_with("the time is a channel"), "{hint}");
    let (message, _) = error("x,label\n1,a\n2,b\n3,c\n", &by(3, 1));
    assert_eq!(
        message,
        "t.csv: in no window of 3 rows do at least half have one and the same label"
    );
    let (message, _) = error("x,label,time,timestamp\n1,a,1,1\n", &by(1, 1));
    assert_eq!(message, "t.csv: has both a column \"time\" and a column \"timestamp\"");
    for windows in [by(0, 1), by(1, 0)] {
        assert!(error(MIXED, &windows).0.starts_with("data.window: "));
    }
    let (message, _) = error("x,label\n1,a\nnan,b\n", &by(1, 1));
    assert_eq!(message, "t.csv: row 3, column x: nan is not a finite number");
}

proptest! {
    #[test]
    fn windows_are_those_that_an_enumeration_finds(
        rows in proptest::collection::vec((0usize..3, prop_oneof![5 => Just(1u32), 1 => Just(7u32)]), 1..80),
        (length, stride) in (1usize..6, 1usize..7),
    ) {
        // Every device has a usual pause of 1 to begin with, and at least a window.
        let mut table = Vec::new();
        let mut clock = [0u32; 3];
        for (device, clock) in clock.iter_mut().enumerate() {
            for _ in 0..12 {
                *clock += 1;
                table.push((device, *clock));
            }
        }
        for &(device, pause) in &rows {
            clock[device] += pause;
            table.push((device, clock[device]));
        }
        let line = |(k, (device, time)): (usize, &(usize, u32))| format!("{device},{time},{k},a\n");
        let text: String = table.iter().enumerate().map(line).collect();
        let set = read(&format!("device,time,x,label\n{text}"), &by(length, stride)).unwrap();

        let mut expected = Vec::new();
        for device in 0..3 {
            let own: Vec<usize> = (0..table.len()).filter(|&k| table[k].0 == device).collect();
            let mut since_gap = 0;
            for (at, &row) in own.iter().enumerate() {
                let gap = at > 0 && table[row].1 - table[own[at - 1]].1 > 1;
                since_gap = if gap { 0 } else { since_gap + usize::from(at > 0) };
                let Some(window) = own.get(at..at + length) else { continue };
                let whole = window.windows(2).all(|w| table[w[1]].1 - table[w[0]].1 == 1);
                if whole && since_gap % stride == 0 {
                    expected.push(window.iter().map(|&k| k as f64).collect::<Vec<f64>>());
                }
            }
        }
        expected.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let found: Vec<Vec<f64>> = numbers(&set).chunks(length).map(<[f64]>::to_vec).collect();
        prop_assert_eq!(found, expected);
    }
}
