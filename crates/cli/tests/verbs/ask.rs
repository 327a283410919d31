//! Which samples somebody should label, from the command line.

use crate::common::run;
use crate::predict::Done;

#[test]
fn a_table_is_written_that_can_be_filled_in() {
    let done = Done::new();
    let (run_folder, asked) = (done.text("run"), done.text("asked.csv"));
    let printed = run(&["ask", &run_folder, "--labels", "4"], "");
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    let lines: Vec<&str> = printed.out.lines().collect();
    assert_eq!(lines[0], "device,sample,file,class,probability,or,label");
    // The one target of the run, whose rows are every third one; nothing is filled in.
    assert_eq!(lines.len(), 5);
    for line in &lines[1..] {
        let cells: Vec<&str> = line.split(',').collect();
        let (sample, probability): (usize, f64) =
            (cells[1].parse().unwrap(), cells[4].parse().unwrap());
        assert!(cells[0] == "d2" && sample % 3 == 2 && (0.5..1.0).contains(&probability), "{line}");
        assert!(cells[3] != cells[5] && cells[2].is_empty() && cells[6].is_empty(), "{line}");
    }
    let written = run(&["ask", &run_folder, "--labels", "4", "-o", &asked], "");
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    assert!(written.out.contains("4 samples. Fill in the column label"), "{}", written.out);
    assert_eq!(std::fs::read_to_string(done.path("asked.csv")).unwrap(), printed.out);

    // A device with its samples beside it asks the same of rows of its own; what was answered is not asked again.
    let [bundle, table] = ["run/seed-3/mixtures/d2", "table.csv"].map(|name| done.text(name));
    let first = run(&["ask", &bundle, &table, "--labels", "2"], "");
    assert_eq!((first.code, first.out.lines().count()), (0, 3), "{}", first.err);
    let filled = first.out.replace(",\n", ",calm\n");
    std::fs::write(done.path("answers.csv"), &filled).unwrap();
    let answers = done.text("answers.csv");
    let next = run(&["ask", &bundle, &table, "--labels", "2", "--answers", &answers], "");
    let of = |text: &str| -> Vec<String> {
        text.lines().skip(1).filter_map(|line| line.split(',').nth(1).map(str::to_owned)).collect()
    };
    assert!(of(&next.out).iter().all(|sample| !of(&first.out).contains(sample)), "{}", next.out);
}

#[test]
fn what_cannot_be_asked_is_said() {
    let done = Done::new();
    let [run_folder, bundle] = ["run", "run/seed-3/mixtures/d2"].map(|name| done.text(name));
    let message = done.refused(&["ask", &bundle]);
    assert!(message.contains("does not hold its samples"), "{message}");
    assert!(message.contains("SAMPLES"), "{message}");
    let message = done.refused(&["ask", &run_folder, "--labels", "0"]);
    assert!(message.contains("--labels: 0 asks nothing"), "{message}");
    let message = done.refused(&["ask", &run_folder, "--device", "d9"]);
    assert!(message.contains("there is no mixture of a device \"d9\""), "{message}");
    let message = done.refused(&["ask", &run_folder, "--device", "d0"]);
    assert!(message.contains("there is nothing to ask"), "{message}");
    let message = done.refused(&["ask", &done.text("nowhere")]);
    assert!(message.contains("there is no such folder"), "{message}");
    std::fs::write(done.path("wrong.csv"), "sample,label\n2,strom\n").unwrap();
    let (table, wrong) = (done.text("table.csv"), done.text("wrong.csv"));
    let message = done.refused(&["ask", &bundle, &table, "--answers", &wrong]);
    assert!(message.contains("line 2: \"strom\" is no class of the data"), "{message}");
    assert!(message.contains("did you mean storm?"), "{message}");
}
