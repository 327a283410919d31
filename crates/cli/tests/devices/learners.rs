//! A program as the learner of every device: in a simulation, and on devices that are processes of their own, it ends with the same.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stlf_testing::{DEADLINE, wait_for};

use crate::common::fleet::Fleet;
use crate::common::{Ran, run};
use crate::node::alone;

const DEVICES: usize = 4;

/// Noise is each device's own, and would make the simulator's plan another one.
const SETTINGS: &str = "seeds=[3] divergence.features=16 \
                        divergence.privacy=none divergence.accept='others can rebuild my samples'";

/// The smallest program that is a learner, which another package of the workspace has; it is built beside ours.
pub(crate) fn nearest_mean() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_stlf")).with_file_name("stlf-nearest-mean");
    if !program.is_file() {
        stlf_testing::skip("stlf-nearest-mean is not built: test the whole workspace");
        return None;
    }
    Some(program)
}

/// The samples of a device. The third has a few labels, and the last none, though evaluation knows them.
pub(crate) fn table(device: usize) -> String {
    let row = |k: usize| {
        let (x, y) =
            ((k * 37 % 101) as f64 / 25.0, (k * 53 % 103) as f64 / 25.0 + 0.1 * device as f64);
        let class = if x + 0.1 * device as f64 > y { "calm" } else { "storm" };
        let hidden = if device == 4 || (device == 3 && !k.is_multiple_of(3)) { "?" } else { "" };
        format!("{x},{y},{class}{hidden}\n")
    };
    "x,y,class\n".to_owned() + &(0..300).map(row).collect::<String>()
}

/// The folder with the tables `d1.csv`, `d2.csv` and so on, and the command line of their learners.
fn tables(folder: &Path) -> Option<String> {
    for device in 1..=DEVICES {
        std::fs::write(folder.join(format!("d{device}.csv")), table(device)).unwrap();
    }
    let program = nearest_mean()?;
    Some(format!("'{}' '{}/{{device}}.csv' calm,storm", program.display(), folder.display()))
}

/// What a simulation is told, as arguments.
fn simulated(learner: &str, to: &Path) -> Vec<String> {
    let devices = "data.devices=[\"d1\",\"d2\",\"d3\",\"d4\"]";
    let settings =
        format!("{SETTINGS} {devices} compare.methods=[\"st-lf\",\"fedavg\",\"oracle\"]");
    let to = to.to_str().unwrap();
    ["run", "-c", &settings, "--learner", learner, "--to", to].map(str::to_owned).to_vec()
}

fn ran(arguments: &[String]) -> Ran {
    run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "")
}

#[test]
fn processes_with_a_learner_end_as_the_simulation_does() {
    let folder = tempfile::tempdir().unwrap();
    let Some(learner) = tables(folder.path()) else { return };
    let to = folder.path().join("run");
    let simulation = ran(&simulated(&learner, &to));
    assert_eq!((simulation.code, simulation.err.as_str()), (0, ""), "{}", simulation.out);
    assert!(simulation.out.contains("Devices have learners: no students"), "{}", simulation.out);

    let mut fleet = Fleet::on("127.0.8.41", DEVICES, DEVICES, SETTINGS);
    for k in 1..=DEVICES {
        let own = learner.replace("{device}", &format!("d{k}"));
        fleet.start(k, &["--once", "--wait", "60", "--deadline", "100", "--learner", &own]);
    }
    for k in 1..=DEVICES {
        assert!(fleet.has_left_well(k), "d{k}: {}", fleet.log(k));
    }
    let mut targets = 0;
    for k in 1..=DEVICES {
        let Ok(expected) = std::fs::read(to.join(format!("seed-3/targets/d{k}.csv"))) else {
            continue;
        };
        let got = std::fs::read(fleet.path(&format!("node-{k}/predictions.csv"))).unwrap();
        assert_eq!(got, expected, "d{k}");
        targets += 1;
        // The learner, started with the samples, predicts the same with what the device ended with.
        let own = learner.replace("{device}", &format!("d{k}"));
        for from in [&["--device", &format!("d{k}")][..], &[]] {
            let place = if from.is_empty() { fleet.path(&format!("node-{k}")) } else { to.clone() };
            let place = place.to_str().unwrap().to_owned();
            let predict = [&["predict", &place, "--learner", &own][..], from].concat();
            let predicted = run(&predict, "");
            assert_eq!(predicted.out.as_bytes(), expected, "{}", predicted.err);
        }
    }
    assert!(targets > 0);
    // Everything else says what it would need.
    let place = to.to_str().unwrap();
    let of_device = |verb: &[&str]| run(&[verb, &["--device", "d4"]].concat(), "");
    let table = folder.path().join("d4.csv").to_str().unwrap().to_owned();
    for refused in [
        of_device(&["predict", place, &table]),
        of_device(&["export", place, "--onnx", "never.onnx"]),
    ] {
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("only the learner that made these models"), "{}", refused.err);
        assert!(refused.err.contains("--learner"), "{}", refused.err);
    }
    let refused = of_device(&["export", place, "--onnx", "never.onnx"]);
    assert!(refused.err.contains("d4: cannot be exported: only the learner"), "{}", refused.err);
    let other = learner.replace("{device}", "d4").replace("calm,storm", "calm,rain");
    let refused = of_device(&["predict", place, "--learner", &other]);
    assert!(refused.err.contains("this learner is nearest-mean/1 (calm, rain)"), "{}", refused.err);
}

/// Two heaps of samples for two classes. At the last device, which has no label, both lie farther to the right, so that what the others learn
/// goes through the middle of one.
fn heaps(device: usize) -> String {
    let shift = if device == 3 { 1.6 } else { 0.02 * device as f64 };
    let row = |k: usize| {
        let (x, y) = ((k * 37 % 101) as f64 / 50.0 - 1.0, (k * 53 % 103) as f64 / 50.0);
        let (heap, class) = if k.is_multiple_of(2) { (0.0, "calm") } else { (4.0, "storm") };
        let hidden = if device == 3 { "?" } else { "" };
        format!("{},{y},{class}{hidden}\n", x + heap + shift)
    };
    "x,y,class\n".to_owned() + &(0..400).map(row).collect::<String>()
}

#[test]
fn a_learner_that_says_so_trains_students_in_a_simulation_and_on_devices() {
    const DEVICES: usize = 3;
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = nearest_mean() else { return };
    for device in 1..=DEVICES {
        std::fs::write(folder.path().join(format!("d{device}.csv")), heaps(device)).unwrap();
    }
    let (program, place) = (program.display(), folder.path().display());
    let learner = format!("'{program}' '{place}/{{device}}.csv' calm,storm adapts");
    let to = folder.path().join("run");
    let devices = "data.devices=[\"d1\",\"d2\",\"d3\"]";
    let settings = format!("{SETTINGS} {devices} compare.methods=[\"st-lf\"]");
    let place = to.to_str().unwrap();
    let simulation = run(&["run", "-c", &settings, "--learner", &learner, "--to", place], "");
    assert_eq!((simulation.code, simulation.err.as_str()), (0, ""), "{}", simulation.out);
    let told = "Students in ST-LF: 1 of 1 target trained one, 1 use it";
    assert!(simulation.out.contains(told), "{}", simulation.out);
    assert!(simulation.out.contains("Devices have learners: no balanced"), "{}", simulation.out);
    let students = std::fs::read_to_string(to.join("seed-3/students/st-lf.csv")).unwrap();
    let lines: Vec<Vec<&str>> = students.lines().map(|line| line.split(',').collect()).collect();
    let cell = |name: &str| lines[1][lines[0].iter().position(|column| *column == name).unwrap()];
    assert_eq!((cell("target"), cell("used"), cell("gflop")), ("d3", "true", ""));
    let [before, after]: [f64; 2] =
        ["mixture-accuracy", "student-accuracy"].map(|name| cell(name).parse().unwrap());
    assert!(before < 0.9 && after > before + 0.02, "{before} {after}");
    let explained = run(&["explain", place, "--device", "d3"], "");
    let words = "It trained a student, which is used: it gives 100 % of altered samples the class";
    assert!(explained.out.contains(words), "{}", explained.out);

    let mut fleet = Fleet::on("127.0.8.44", DEVICES, DEVICES, SETTINGS);
    for k in 1..=DEVICES {
        let own = learner.replace("{device}", &format!("d{k}"));
        fleet.start(k, &["--once", "--wait", "60", "--deadline", "100", "--learner", &own]);
    }
    for k in 1..=DEVICES {
        assert!(fleet.has_left_well(k), "d{k}: {}", fleet.log(k));
    }
    let expected = std::fs::read(to.join("seed-3/targets/d3.csv")).unwrap();
    assert!(std::fs::read(fleet.path("node-3/predictions.csv")).unwrap() == expected);
    // Both bundles have the student, and the learner predicts the same with them.
    let own = learner.replace("{device}", "d3");
    let of_device = fleet.text("node-3");
    for from in [&["predict", place, "--device", "d3"][..], &["predict", &of_device]] {
        let predicted = run(&[from, &["--learner", &own]].concat(), "");
        assert_eq!(predicted.out.as_bytes(), expected, "{}", predicted.err);
    }
    let [simulated, real] = [to.join("seed-3/mixtures/d3"), fleet.path("node-3/mixture")]
        .map(|bundle| std::fs::read(bundle.join("student.safetensors")).unwrap());
    assert!(simulated == real);
    // A learner that does not say so is refused where students are asked for in any case.
    let cannot = learner.replace(" adapts", "");
    let always = format!("{settings} transfer.adapt=always");
    let never = folder.path().join("never");
    let never = never.to_str().unwrap();
    let refused = run(&["run", "-c", &always, "--learner", &cannot, "--to", never], "");
    assert_eq!(refused.code, 2);
    let told = "transfer.adapt: the learner nearest-mean/1 does not say that it trains any";
    assert!(refused.err.contains(told), "{}", refused.err);
}

#[test]
fn a_simulation_with_learners_that_is_killed_goes_on_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(learner) = tables(folder.path()) else { return };
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    assert_eq!(ran(&simulated(&learner, &whole)).code, 0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_stlf"))
        .args(simulated(&learner, &killed))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let models = killed.join("seed-3/models");
    let has_trained = || models.join("d1.safetensors").is_file().then_some(());
    wait_for(DEADLINE, has_trained, || "no device trained".to_owned());
    child.kill().unwrap();
    child.wait().unwrap();
    // By the folder alone, which knows everything.
    let again = run(&["run", killed.to_str().unwrap()], "");
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    for file in ["results.csv", "seed-3/targets/d4.csv", "seed-3/mixtures/d4/models.json"] {
        let [expected, found] = [&whole, &killed].map(|run| std::fs::read(run.join(file)).unwrap());
        assert!(found == expected, "{file} differs");
    }
}

#[test]
fn a_learner_that_does_not_start_ends_a_simulation_with_its_device_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let Some(learner) = tables(folder.path()) else { return };
    std::fs::remove_file(folder.path().join("d3.csv")).unwrap();
    let to = folder.path().join("run");
    let refused = ran(&simulated(&learner, &to));
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("d3: learner: the learner was to greet, but it ended"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("d3.csv: No such file"), "{}", refused.err);
    // Put right, the same folder is used.
    std::fs::write(folder.path().join("d3.csv"), table(3)).unwrap();
    assert_eq!(ran(&simulated(&learner, &to)).code, 0);
}

/// The command line of a learner that does as the other one until it is asked to do this, when it runs some shell commands; what these write to descriptor 4 is
/// what the learner writes.
fn but_when_asked(folder: &Path, learner: &str, asked: &str, commands: &str) -> String {
    let script = folder.join("faulty.sh");
    let text = format!(
        "exec 4>&1\nwhile IFS= read -r line; do case \"$line\" in *'\"{asked}\"'*) {commands};; \
         *) printf '%s\\n' \"$line\";; esac; done | \"$@\"\n"
    );
    std::fs::write(&script, text).unwrap();
    format!("sh '{}' {learner}", script.display())
}

/// Nothing of what others did is lost, and the message has all that one needs to find the fault.
#[test]
fn a_learner_that_fails_for_good_is_told_with_its_device_the_call_and_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let Some(learner) = tables(folder.path()) else { return };
    let to = folder.path().join("run");
    for (asked, device) in [("train", "d2"), ("predict", "d4")] {
        let garbage = format!(
            "case \"$2\" in */{device}.csv) echo 'Loss: 0.25' >&4;; *) printf '%s\\n' \"$line\";; esac"
        );
        let faulty = but_when_asked(folder.path(), &learner, asked, &garbage);
        let refused = ran(&simulated(&faulty, &to));
        assert_eq!(refused.code, 2, "{}", refused.err);
        let told =
            format!("{device}: learner: the learner was to {asked}, but it wrote \"Loss: 0.25\": ");
        assert!(refused.err.contains(&told), "{}", refused.err);
        assert!(refused.err.contains("print to standard error"), "{}", refused.err);
    }
    // Those that had trained need not train again once it is put right.
    assert!(to.join("seed-3/models/d1.safetensors").is_file());
    std::fs::write(folder.path().join("faulty.sh"), "exec \"$@\"\n").unwrap();
    let again = run(&["run", to.to_str().unwrap()], "");
    assert_eq!(again.code, 0, "{}", again.err);
}

#[cfg(unix)]
#[test]
fn whoever_stops_predictions_of_a_learner_gets_the_prompt_back_and_no_process_stays() {
    let folder = tempfile::tempdir().unwrap();
    let Some(learner) = tables(folder.path()) else { return };
    let to = folder.path().join("run");
    assert_eq!(ran(&simulated(&learner, &to)).code, 0);
    let asked = folder.path().join("asked");
    let hang = format!("echo $$ >> '{}'; sleep 1000", asked.display());
    let own = learner.replace("{device}", "d4");
    let hanging = but_when_asked(folder.path(), &own, "predict", &hang);
    let predict = ["predict", to.to_str().unwrap(), "--device", "d4", "--learner", &hanging];
    stopped(&predict.map(str::to_owned), &asked);
}

/// Has a command run until a learner notes its number in a file, presses Ctrl-C, and returns what the command says. It must end as one that was
/// stopped, and with it all learners that noted their numbers.
#[cfg(unix)]
fn stopped(arguments: &[String], asked: &Path) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stlf"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let noted = || std::fs::read_to_string(asked).ok().filter(|text| text.ends_with('\n'));
    let begins = || noted().map(Ok).or_else(|| child.try_wait().unwrap().map(Err));
    let begun = wait_for(DEADLINE, begins, || "the learner was not asked".to_owned());
    assert!(begun.is_ok(), "{arguments:?}: {begun:?}");
    let interrupt = ["-INT".to_owned(), child.id().to_string()];
    assert!(Command::new("kill").args(interrupt).status().unwrap().success());
    let has_ended = || child.try_wait().unwrap();
    let ended = wait_for(DEADLINE, has_ended, || "it goes on".to_owned());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(ended.code(), Some(130), "{said}");
    for number in noted().unwrap().lines() {
        let learner = Path::new("/proc").join(number);
        let is_gone = || (!learner.exists()).then_some(());
        wait_for(DEADLINE, is_gone, || format!("the learner {number} goes on"));
    }
    said
}

/// Both at once, while the learner works: what a device without power leaves behind.
#[cfg(unix)]
#[test]
fn a_device_killed_together_with_its_learner_goes_on_when_it_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(learner) = tables(folder.path()) else { return };
    let own = |k: usize| learner.replace("{device}", ["d1", "d2", "d4"][k - 1]);
    let mut fleet = Fleet::on("127.0.8.46", 3, 3, SETTINGS);
    let options = ["--settle", "0.5", "--patience", "10", "--learner"];
    let start =
        |fleet: &mut Fleet, k, by: &str| fleet.start(k, &[&options[..], &[by][..]].concat());
    (2..=3).for_each(|k| start(&mut fleet, k, &own(k)));
    let (all, mut epoch) = ([1, 2, 3], 0);
    for (k, calls) in [(1, &["train", "predict"][..]), (3, &["predict"])] {
        if epoch > 0 {
            fleet.kill(k);
        }
        for asked in calls {
            let place = folder.path().join(format!("{k}-{asked}"));
            std::fs::create_dir(&place).unwrap();
            let file = place.join("asked");
            let hang = format!("echo $$ > '{}'; sleep 1000", file.display());
            start(&mut fleet, k, &but_when_asked(&place, &own(k), asked, &hang));
            let noted = || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
            let told = || format!("d{k} does not {asked}\n{}", fleet.log(k));
            let group = format!("-{}", wait_for(DEADLINE, noted, told).trim());
            fleet.kill(k);
            assert!(Command::new("kill").args(["-9", "--", &group]).status().unwrap().success());
        }
        // The others finish without it, and once it is back everyone does.
        let others: Vec<usize> = all.into_iter().filter(|&other| other != k).collect();
        epoch = fleet.wait_for(&others, 2, epoch);
        start(&mut fleet, k, &own(k));
        epoch = fleet.wait_for(&all, 3, epoch);
    }
    let plan = fleet.one_plan(&all);
    assert_eq!((&plan["epoch"], &plan["targets"]), (&epoch.into(), &serde_json::json!([2])));
    assert_eq!(fleet.log(2).matches("d2: training on ").count(), 1, "{}", fleet.log(2));
    // What the target has is whole: its learner predicts the same with it.
    let predictions = std::fs::read(fleet.path("node-3/predictions.csv")).unwrap();
    assert_eq!(predictions.iter().filter(|byte| **byte == b'\n').count(), 1 + 300);
    let predicted = run(&["predict", &fleet.text("node-3"), "--learner", &own(3)], "");
    assert_eq!(predicted.out.as_bytes(), predictions, "{}", predicted.err);
}

/// A program may take long until it greets, and may not want to end.
#[cfg(unix)]
#[test]
fn whoever_stops_a_learner_that_starts_is_told_so_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (roster, key) = alone(folder.path());
    let hanging = |asked: &str| {
        let text = format!("trap '' TERM\necho $$ >> '{}'\nexec sleep 1000\n", path(asked));
        std::fs::write(path("hangs.sh"), text).unwrap();
        format!("sh '{}'", path("hangs.sh"))
    };
    let of_each = format!("{} {{device}}", hanging("simulated"));
    let simulation = simulated(&of_each, &folder.path().join("run"));
    let said = stopped(&simulation, Path::new(&path("simulated")));
    assert!(said.ends_with("stopped\nhint: run the same command to continue\n"), "{said}");
    let (to, learner) = (path("node"), hanging("device"));
    let device =
        ["node", "start", "--roster", &roster, "--key", &key, "--to", &to, "--learner", &learner];
    let said = stopped(&device.map(str::to_owned), Path::new(&path("device")));
    assert!(said.ends_with("stopped while the learner was to greet\n"), "{said}");
}
