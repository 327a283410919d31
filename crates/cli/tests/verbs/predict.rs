//! What devices of a run ended with, put to work from the command line.

use std::path::PathBuf;

use crate::common::run;

const SETTINGS: &str = "seeds=[3] partition.kind=by-domain partition.labeled=[1,0.8,0] training.model=mlp \
                        training.steps=50 divergence.features=16 compare.methods=[\"st-lf\"]";

/// A run on a table of three devices, and the paths of both.
pub(crate) struct Done {
    inside: tempfile::TempDir,
}

impl Done {
    pub(crate) fn new() -> Done {
        let inside = tempfile::tempdir().unwrap();
        let mut rows = "device,label,x,y\n".to_owned();
        for k in 0..240 {
            let (x, y) = ((k * 37) % 101, (k * 53) % 103);
            let label = if x > y { "calm" } else { "storm" };
            rows += &format!("d{},{label},{x},{y}\n", k % 3);
        }
        std::fs::write(inside.path().join("table.csv"), rows).unwrap();
        let done = Done { inside };
        let settings = format!("data.features={} {SETTINGS}", done.text("table.csv"));
        let ran = run(&["run", "-c", &settings, "--to", &done.text("run")], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        done
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.inside.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The message of a command that must fail because of its input.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let ran = run(arguments, "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        ran.err.replace(self.inside.path().to_str().unwrap(), "DIR")
    }
}

#[test]
fn new_rows_get_the_classes_that_the_device_gave_its_own() {
    let done = Done::new();
    let (run_folder, table) = (done.text("run"), done.text("table.csv"));
    let all = run(&["predict", &run_folder, &table, "--device", "d2"], "");
    assert_eq!((all.code, all.err.as_str()), (0, ""));
    let own = all.out.lines().enumerate().filter(|(at, _)| *at == 0 || (at - 1) % 3 == 2);
    let own: String = own.map(|(_, line)| format!("{line}\n")).collect();
    assert_eq!(own, std::fs::read_to_string(done.path("run/seed-3/targets/d2.csv")).unwrap());

    let bundle = done.text("run/seed-3/mixtures/d2");
    let (out, new) = (done.text("out.csv"), done.path("new.csv"));
    std::fs::write(&new, "y,x,when\n80,3,now\n3,80,then\n").unwrap();
    let new = new.to_str().unwrap();
    let ran = run(&["predict", &bundle, new, "-o", &out, "--probabilities"], "");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let text = std::fs::read_to_string(&out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "sample,class,probability,p_calm,p_storm");
    assert!(lines[1].starts_with("0,storm,") && lines[2].starts_with("1,calm,"), "{text}");
    // A copy of the bundle alone works without the run.
    std::fs::rename(done.path("run/seed-3/mixtures/d2"), done.path("alone")).unwrap();
    std::fs::remove_dir_all(done.path("run")).unwrap();
    let again = run(&["predict", &done.text("alone"), new, "--probabilities"], "");
    assert_eq!((again.code, again.out), (0, text));
}

#[test]
fn what_cannot_be_predicted_is_said() {
    let done = Done::new();
    let (run_folder, table, new) = (done.text("run"), done.text("table.csv"), done.text("new.csv"));
    let bundle = done.text("run/seed-3/mixtures/d2");
    let whose = done.refused(&["predict", &run_folder, &table]);
    assert!(whose.contains("this run has a mixture for every device"), "{whose}");
    assert!(
        whose.contains("hint: say whose, as in --device d0; the devices are: d0, d1, d2"),
        "{whose}"
    );
    std::fs::write(&new, "x,z\n1,2\n").unwrap();
    let columns = done.refused(&["predict", &bundle, &new]);
    assert_eq!(
        columns,
        "error: DIR/new.csv: column \"y\" is missing\nhint: the columns are: x, z\n"
    );
    std::fs::write(&new, "x,y\n1,a\n").unwrap();
    assert!(
        done.refused(&["predict", &bundle, &new])
            .contains("row 2, column y: \"a\" is not a number")
    );
    assert!(
        done.refused(&["predict", &bundle, &table, "--files"])
            .contains("rows of a table have no files")
    );
    assert!(
        done.refused(&["predict", &done.text("none"), &table]).contains("there is no such folder")
    );
    let own = done.refused(&["predict", &bundle, &table, "-o", &table]);
    assert!(own.contains("has the samples and cannot be the output"), "{own}");
    assert!(done.refused(&["export", &bundle]).contains("--onnx <FILE>"));
    let model = done.path("run/seed-3/mixtures/d2").read_dir().unwrap().map(Result::unwrap);
    let model = model.map(|e| e.path()).find(|p| p.extension().unwrap() == "safetensors").unwrap();
    std::fs::write(model, "damaged").unwrap();
    let damaged = done.refused(&["predict", &bundle, &table]);
    assert!(damaged.contains("the file has changed since the bundle was written"), "{damaged}");
}

#[test]
fn a_mixture_is_exported_whole() {
    let done = Done::new();
    let (onnx, served) = (done.text("m.onnx"), done.text("served"));
    let ran = run(
        &["export", &done.text("run"), "--device", "d2", "--onnx", &onnx, "--mlflow", &served],
        "",
    );
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let model = std::fs::read(&onnx).unwrap();
    assert_eq!(std::fs::read(done.path("served/model.onnx")).unwrap(), model);
    for word in ["probabilities", "class", "storm", "stlf-mixture/1"] {
        assert!(model.windows(word.len()).any(|at| at == word.as_bytes()), "{word}");
    }
}
