//! Bundles written, read, damaged and put to work.
#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stlf_bundle::folder::{DOCUMENT, Written, copy, find, prepare, read};
use stlf_bundle::predictions::{Columns, csv};
use stlf_bundle::{Error, Member, Mixture, Samples, mlflow, onnx};
use stlf_data::features::{Beginning, Series, Windows};
use stlf_data::scaling::Unit;
use stlf_data::{Scaling, Shape};
use stlf_learn::{Params, Spec};
use stlf_method::combine::{Combine, combine};
use stlf_method::expectation::Expected;
use stlf_method::student::Student;
use stlf_planning::Role;

/// A target's mixture of two models on rows of two features, in two scales.
fn mixture(how: Combine) -> Mixture {
    let spec = Spec::mlp(Shape { channels: 1, height: 1, width: 4 }, 3).unwrap();
    let unit = |centre, deviation, limit| Unit { centre, deviation, limit };
    let units = vec![
        vec![unit(1.0 / 3.0, 2.0, f64::INFINITY), unit(0.0, 1.0, f64::INFINITY)],
        vec![unit(100.0, 0.1, 10.0), unit(7.0, 0.0, 10.0)],
    ];
    let member = |name: &str, weight, seed| Member {
        name: name.to_owned(),
        weight,
        params: Params::initial(&spec, seed),
    };
    Mixture {
        device: "gate".to_owned(),
        role: Role::Target,
        epoch: Some(7),
        seed: None,
        classes: ["calm", "storm, heavy", "zz"].map(str::to_owned).to_vec(),
        scaling: Scaling::Features {
            columns: vec!["x".to_owned(), "y y".to_owned()],
            units,
            series: None,
        },
        combine: how,
        class_shares: None,
        members: vec![member("pier", 0.3, 1), member("a/b", 0.7, 2)],
        student: (how == Combine::Predictions)
            .then(|| Student { params: Params::initial(&spec, 3), share: 0.75 }),
        expected: Some(Expected { accuracy: 0.9, low: 0.75, high: 0.95 }),
        spec,
    }
    .with_class_shares(&INPUTS)
}

/// The same on windows of nine readings of two channels.
fn of_series() -> Mixture {
    let windows = Windows { length: 9, stride: 3 };
    let (time, device) = (Some("t".to_owned()), Some("pump".to_owned()));
    let mut mixture = mixture(Combine::Predictions);
    if let Scaling::Features { series, .. } = &mut mixture.scaling {
        *series = Some(Series { windows, time, device });
    }
    mixture.spec = Spec::series_cnn(4, 9, 3).unwrap();
    let members = mixture.members.iter_mut().zip(1..);
    members.for_each(|(member, seed)| member.params = Params::initial(&mixture.spec, seed));
    mixture.student = None;
    mixture
}

#[test]
fn windows_are_cut_and_scaled_by_channel_and_their_bundle_comes_back() {
    let mixture = of_series();
    let (inside, path) = written(&mixture);
    assert_eq!(read(&path).unwrap(), mixture);
    assert_eq!(mixture.sample_shape(), Shape { channels: 2, height: 1, width: 9 });
    let row =
        |k: usize| format!("{},{k},{},{}\n", k + 50 * usize::from(k > 11), 100 + k, 7 + k % 2);
    let table = inside.path().join("new.csv");
    let text = "t,note,x,y y\n".to_owned() + &(0..21).map(row).collect::<String>();
    std::fs::write(&table, text).unwrap();
    let samples = Samples::read(&mixture, &table).unwrap();
    let begins = |row: usize, time: usize| Beginning { row, time: Some(time.to_string()) };
    // After row 11 there is a gap.
    let expected = vec![begins(0, 0), begins(3, 3), begins(12, 62)];
    assert_eq!((samples.count, samples.beginnings.as_ref()), (3, Some(&expected)));
    let Scaling::Features { units, .. } = &mixture.scaling else { panic!("features") };
    for (k, &input) in samples.inputs.iter().enumerate() {
        let (window, list, channel, step) = (k / 36, k / 18 % 2, k / 9 % 2, k % 9);
        let row = [0, 3, 12][window] + step;
        let value = [100 + row, 7 + row % 2][channel] as f64;
        assert_eq!(input, units[list][channel].of(value));
    }
    let values = |row: usize| (0..9).map(move |k| row + k);
    let flat: Vec<f64> = [0, 3, 12]
        .into_iter()
        .flat_map(|row| values(row).map(|k| 100 + k).chain(values(row).map(|k| 7 + k % 2)))
        .map(|value| value as f64)
        .collect();
    let scaled = Samples::scaled(&mixture, &flat).unwrap();
    assert_eq!((&scaled.inputs, scaled.beginnings), (&samples.inputs, None));
    let predictions = mixture.predict(&samples.inputs).unwrap();
    let beginnings = samples.beginnings.as_deref();
    let columns = Columns { beginnings, ..Columns::default() };
    let text = String::from_utf8(csv(&mixture.classes, &predictions, columns).unwrap()).unwrap();
    assert!(text.starts_with("sample,class,probability,row,time\n0,"), "{text}");
    assert!(text.ends_with(",12,62\n"), "{text}");
    assert!(onnx::write(&mixture).unwrap().len() > 8 * mixture.spec.parameters());
}

const INPUTS: [f32; 8] = [0.1, -0.4, 0.9, 0.3, -1.0, 0.2, 0.0, 0.7];

fn write(path: &Path, mixture: &Mixture) {
    prepare(path, mixture, b"{}", &mut Written::new()).unwrap().publish().unwrap();
}

/// A bundle in a folder of its own.
fn written(mixture: &Mixture) -> (tempfile::TempDir, PathBuf) {
    let inside = tempfile::tempdir().unwrap();
    let path = inside.path().join("bundle");
    write(&path, mixture);
    (inside, path)
}

#[test]
fn a_bundle_gives_back_every_bit_and_predicts_as_the_device_did() {
    for how in Combine::ALL {
        let mixture = mixture(how);
        let (inside, path) = written(&mixture);
        assert_eq!(read(&path).unwrap(), mixture, "{how}");
        let models: Vec<(&Params, f64)> =
            mixture.members.iter().map(|m| (&m.params, m.weight)).collect();
        let expected = combine(how, &mixture.spec, &models, &INPUTS).unwrap();
        let got = Mixture { student: None, ..read(&path).unwrap() }.predict(&INPUTS).unwrap();
        assert_eq!(got, expected, "{how}");
        copy(&path, &inside.path().join("copy")).unwrap();
        assert_eq!(read(&inside.path().join("copy")).unwrap(), mixture);
    }
}

#[test]
fn shares_of_classes_are_the_device_s_however_few_samples_come() {
    let mixture = mixture(Combine::Corrected);
    let all = mixture.predict(&INPUTS).unwrap();
    for (at, input) in INPUTS.chunks(4).enumerate() {
        assert_eq!(mixture.predict(input).unwrap().of(0), all.of(at));
    }
    // Many samples are shared among threads, and few are not.
    let many = mixture.predict(&INPUTS.repeat(3_000)).unwrap();
    assert_eq!((many.len(), many.of(5_999)), (6_000, all.of(1)));
}

#[test]
fn parts_are_what_the_mixture_runs() {
    for how in Combine::ALL {
        let mixture = mixture(how);
        let parts = mixture.parts().unwrap();
        assert!((parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-12);
        let expected = match how {
            Combine::Predictions => 3,
            Combine::Corrected => 2,
            Combine::Parameters => 1,
        };
        assert_eq!(parts.len(), expected, "{how}");
        assert!(onnx::write(&mixture).unwrap().len() > 4 * expected * mixture.spec.parameters());
    }
}

#[test]
fn models_that_several_bundles_have_are_kept_once() {
    let inside = tempfile::tempdir().unwrap();
    let (mixture, mut known) = (mixture(Combine::Predictions), Written::new());
    for name in ["a", "b"] {
        let path = inside.path().join(name);
        prepare(&path, &mixture, b"{}", &mut known).unwrap().publish().unwrap();
        assert_eq!(read(&path).unwrap(), mixture);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let links = |file: &str| inside.path().join("b").join(file).metadata().unwrap().nlink();
        assert_eq!((links("pier.safetensors"), links(DOCUMENT)), (2, 1));
    }
    std::fs::remove_dir_all(inside.path().join("a")).unwrap();
    assert_eq!(read(&inside.path().join("b")).unwrap(), mixture);
}

#[test]
fn a_writer_that_dies_leaves_the_last_good_bundle() {
    let mixture = mixture(Combine::Predictions);
    let (inside, path) = written(&mixture);
    let next = Mixture { epoch: Some(8), ..mixture.clone() };
    let half = prepare(&path, &next, b"{}", &mut Written::new()).unwrap();
    assert_eq!(read(&path).unwrap(), mixture);
    // Killed here, it neither publishes nor cleans up; the next start sweeps.
    std::mem::forget(half);
    assert_eq!(read(&path).unwrap(), mixture);
    write(&path, &next);
    assert_eq!(read(&path).unwrap(), next);
    assert!(inside.path().read_dir().unwrap().count() > 0);
}

/// The message and the hint for a bundle whose document or files were changed.
fn refused(change: impl FnOnce(&Path, &mut Value)) -> (String, String) {
    let (inside, path) = written(&mixture(Combine::Predictions));
    let at = path.join(DOCUMENT);
    let mut document: Value = serde_json::from_slice(&std::fs::read(&at).unwrap()).unwrap();
    change(&path, &mut document);
    std::fs::write(&at, document.to_string()).unwrap();
    let error = read(&path).unwrap_err();
    let message = error.to_string().replace(inside.path().to_str().unwrap(), "DIR");
    (message, error.hint().unwrap_or_default().to_owned())
}

#[test]
fn what_is_damaged_is_named() {
    let (message, hint) = refused(|path, _| {
        let file = path.join("pier.safetensors");
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&file, bytes).unwrap();
    });
    assert!(
        message.starts_with("DIR/bundle/pier.safetensors: the file has changed since"),
        "{message}"
    );
    assert!(hint.starts_with("copy the whole folder again"), "{hint}");
    let (message, _) = refused(|path, document| {
        let (file, bytes) = (path.join("pier.safetensors"), b"no model");
        std::fs::write(&file, bytes).unwrap();
        document["members"][0]["sha256"] = json!(stlf_bundle::folder::sha256(bytes));
    });
    assert_eq!(message, "DIR/bundle/pier.safetensors: parameters: 8 bytes for 515 parameters");
    let (message, _) =
        refused(|path, _| std::fs::remove_file(path.join("student.safetensors")).unwrap());
    assert!(message.starts_with("DIR/bundle/student.safetensors: No such file"), "{message}");
    let (message, _) = refused(|path, _| std::fs::write(path.join("plan.json"), "[]").unwrap());
    assert!(message.starts_with("DIR/bundle/plan.json: the file has changed since"), "{message}");
}

#[test]
fn a_document_that_contradicts_itself_is_refused_by_its_field() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 13] = [
        (
            |d| d["format"] = json!("stlf-plan/2"),
            "format: \"stlf-plan/2\" is not \"stlf-mixture/1\"",
        ),
        (|d| d["classes"] = json!(["calm"]), "classes: 1 classes, but the network has 3 outputs"),
        (
            |d| d["input"]["columns"] = json!(["x"]),
            "input.shape: 1×1×4 does not fit 1 columns in 2 scales",
        ),
        (|d| d["input"]["shape"] = json!([1, 0, 4]), "input.shape: 1×0×4 is no shape of an input"),
        (|d| d["input"]["shape"] = json!([1u64 << 40, 1u64 << 40, 4]), "is no shape of an input"),
        (|d| d["input"]["units"][1] = json!([]), "input.units[1]: 0 units for 2 columns"),
        (
            |d| d["input"]["scaling"] = json!("pixels"),
            "input.scaling: pixels have no columns and no units",
        ),
        (
            |d| d["network"][0] = json!({"linear": {"outputs": 1u64 << 40}}),
            "network[0]: 1099511627776 is above",
        ),
        (|d| d["members"] = json!([]), "members: a mixture needs at least one model"),
        (|d| d["members"][1]["weight"] = json!(-1.0), "members[1].weight: -1 is not above 0"),
        (
            |d| d["members"][0]["file"] = json!("../x"),
            "file: \"../x\" is not the name of a file here",
        ),
        (|d| d["combine"] = json!("corrected"), "class_shares: is missing"),
        (|d| d["colour"] = json!("red"), "colour: unknown field"),
    ];
    for (change, expected) in cases {
        let (message, _) = refused(|_, document| change(document));
        assert!(message.contains(expected), "{message}\n{expected}");
    }
}

#[test]
fn the_bundle_that_a_folder_means_is_found() {
    let inside = tempfile::tempdir().unwrap();
    let at = |name: &str| inside.path().join(name);
    let whole = |names: &[&str]| {
        for name in names {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            write(&at(name), &mixture(Combine::Predictions));
        }
    };
    whole(&[
        "node/mixture",
        "run/seed-10/mixtures/d1",
        "run/seed-9/mixtures/d10",
        "run/seed-9/mixtures/d2",
    ]);
    assert_eq!(find(&at("node"), None, None).unwrap(), at("node/mixture"));
    assert_eq!(find(&at("node/mixture"), None, None).unwrap(), at("node/mixture"));
    let of_run = |device, seed| find(&at("run"), device, seed);
    assert_eq!(of_run(Some("d2"), None).unwrap(), at("run/seed-9/mixtures/d2"));
    assert_eq!(of_run(Some("d1"), Some(10)).unwrap(), at("run/seed-10/mixtures/d1"));
    assert_eq!(find(&at("run/seed-9"), Some("d10"), None).unwrap(), at("run/seed-9/mixtures/d10"));
    let said = |found: Result<PathBuf, Error>| {
        let error = found.unwrap_err();
        let message = error.to_string().replace(inside.path().to_str().unwrap(), "DIR");
        (message, error.hint().unwrap().to_owned())
    };
    let (message, hint) = said(of_run(None, None));
    assert_eq!(message, "DIR/run: this run has a mixture for every device");
    assert_eq!(hint, "say whose, as in --device d2; the devices are: d2, d10");
    let (message, hint) = said(of_run(Some("d3"), None));
    assert_eq!(message, "DIR/run: there is no mixture of a device \"d3\"");
    assert_eq!(hint, "the devices are: d2, d10");
    assert_eq!(said(of_run(Some("d2"), Some(3))).0, "DIR/run: seed 3 has no mixtures");
    assert_eq!(said(find(&at("none"), None, None)).0, "DIR/none: there is no such folder");
    assert_eq!(said(find(inside.path(), None, None)).0, "DIR: there is no mixture here");
}

/// Names the path of the bundle that [`writes_bundles_until_it_is_killed`] writes; without it that test writes none.
const WRITES: &str = "STLF_TEST_WRITES_BUNDLES";

/// A mixture all of whose numbers are this one.
fn filled(number: f32) -> Mixture {
    let mut mixture = mixture(Combine::Predictions);
    let members = mixture.members.iter_mut().map(|member| &mut member.params);
    let student = mixture.student.iter_mut().map(|student| &mut student.params);
    members.chain(student).for_each(|params| params.iter_mut().for_each(|p| *p = number));
    mixture
}

/// Part of the next test, which runs it as a process of its own.
#[test]
#[allow(clippy::print_stdout, reason = "whoever kills it counts the lines")]
fn writes_bundles_until_it_is_killed() {
    let Some(path) = std::env::var_os(WRITES).map(PathBuf::from) else { return };
    for number in 1_u16.. {
        write(&path, &filled(f32::from(number)));
        println!("wrote {number}");
    }
}

#[test]
fn whoever_is_killed_while_it_writes_a_bundle_leaves_the_last_good_one() {
    let inside = tempfile::tempdir().unwrap();
    let path = inside.path().join("bundle");
    write(&path, &filled(0.0));
    for lines in 1..=10 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_bundles_until_it_is_killed", "--nocapture"])
            .env(WRITES, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let wrote = output.lines().map_while(Result::ok).filter(|line| line.contains("wrote "));
        assert_eq!(wrote.take(lines).count(), lines);
        // Somewhere in the middle of the next one.
        child.kill().unwrap();
        child.wait().unwrap();
        stlf_data::atomic_file::sweep(inside.path()).unwrap();
        let Mixture { members, student, .. } = read(&path).unwrap();
        let params = members.iter().map(|m| &m.params).chain(student.iter().map(|s| &s.params));
        let numbers: Vec<f32> = params.flat_map(|params| params.iter().copied()).collect();
        assert!(numbers[0] >= lines as f32, "{} after {lines}", numbers[0]);
        assert!(numbers.iter().all(|number| *number == numbers[0]), "files of two bundles");
        assert_eq!(std::fs::read_dir(inside.path()).unwrap().count(), 1, "something is left");
    }
}

#[test]
fn samples_are_read_by_name_scaled_and_written_as_a_table() {
    let mixture = mixture(Combine::Predictions);
    let inside = tempfile::tempdir().unwrap();
    let path = inside.path().join("new.csv");
    std::fs::write(&path, "id,y y,x\na,1,101\nb,2,99.9\n").unwrap();
    let samples = Samples::read(&mixture, &path).unwrap();
    let by_hand: Vec<f32> = [(101.0, 1.0), (99.9, 2.0)]
        .iter()
        .flat_map(|&(x, y): &(f64, f64)| {
            let far = ((x - 100.0) / 0.1).clamp(-10.0, 10.0);
            [((x - 1.0 / 3.0) / 2.0) as f32, y as f32, far as f32, 0.0]
        })
        .collect();
    assert_eq!((&samples.inputs, samples.count), (&by_hand, 2));
    let same = Samples::scaled(&mixture, &[101.0, 1.0, 99.9, 2.0]).unwrap();
    assert_eq!(same.inputs, by_hand);
    let predictions = mixture.predict(&samples.inputs).unwrap();
    let plain = csv(&mixture.classes, &predictions, Columns::default()).unwrap();
    let plain = String::from_utf8(plain).unwrap();
    assert!(plain.starts_with("sample,class,probability\n0,"), "{plain}");
    let files = [PathBuf::from("a.png"), PathBuf::from("b.png")];
    let columns = Columns { probabilities: true, files: Some(&files), beginnings: None };
    let all = String::from_utf8(csv(&mixture.classes, &predictions, columns).unwrap()).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines[0], "sample,class,probability,p_calm,\"p_storm, heavy\",p_zz,file");
    assert!(lines[2].ends_with(",b.png") && lines.len() == 3, "{all}");

    let error = |samples: Result<Samples, Error>| samples.unwrap_err().to_string();
    std::fs::write(&path, "x\n1\n").unwrap();
    assert!(error(Samples::read(&mixture, &path)).ends_with("new.csv: column \"y y\" is missing"));
    let folder = error(Samples::read(&mixture, inside.path()));
    assert!(
        folder.ends_with("this is a folder, but the mixture takes rows of a table"),
        "{folder}"
    );
    assert!(error(Samples::scaled(&mixture, &[1.0])).contains("1 numbers are not 0 samples"));
    let pictures = Mixture {
        scaling: Scaling::Pixels,
        spec: Spec::mlp(Shape::grey(2), 3).unwrap(),
        ..mixture
    };
    let pixels = Samples::scaled(&pictures, &[0.0, 255.0, 51.0, 0.0]).unwrap();
    assert_eq!(pixels.inputs, [-1.0, 1.0, -0.6, -1.0]);
    assert!(error(Samples::scaled(&pictures, &[0.5; 4])).starts_with("0.5 is no pixel"));
}

#[test]
fn a_folder_of_mlflow_is_whole_and_takes_the_place_of_such_a_one_only() {
    let inside = tempfile::tempdir().unwrap();
    let path = inside.path().join("served");
    for _ in 0..2 {
        mlflow::write(&path, &mixture(Combine::Corrected)).unwrap();
    }
    let described: Value =
        serde_json::from_slice(&std::fs::read(path.join("MLmodel")).unwrap()).unwrap();
    assert_eq!(described["flavors"]["python_function"]["loader_module"], "mlflow.onnx");
    let inputs: Value =
        serde_json::from_str(described["signature"]["inputs"].as_str().unwrap()).unwrap();
    assert_eq!(inputs[0]["tensor-spec"], json!({"dtype": "float64", "shape": [-1, 2]}));
    assert_eq!(
        std::fs::read(path.join("model.onnx")).unwrap(),
        onnx::write(&mixture(Combine::Corrected)).unwrap()
    );
    let other = mlflow::write(inside.path(), &mixture(Combine::Corrected)).unwrap_err();
    assert!(other.to_string().ends_with("is there, and is no folder of MLflow"), "{other}");
}
