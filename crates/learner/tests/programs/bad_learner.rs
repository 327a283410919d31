//! `stlf-bad-learner FAULT TABLE CLASSES`: a learner that does one thing wrong, for tests. Faults that happen once leave a file `done`
//! beside the table.

#[path = "../../src/bin/nearest_mean.rs"]
#[allow(dead_code, reason = "its main function is not the one that runs")]
mod nearest_mean;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use nearest_mean::{NearestMean, lines};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (fault, done) = (arguments[0].as_str(), Path::new(&arguments[1]).with_file_name("done"));
    let mut learner = NearestMean::new(arguments[1..].iter().cloned())?;
    let (lines, mut out) = (lines(), std::io::stdout());
    let mut folder = PathBuf::new();
    while let Ok(request) = lines.recv() {
        let (has, id) = (|ask: &str| request.get(ask).is_some(), request["id"].clone());
        if let Some(named) = request["hello"]["folder"].as_str() {
            folder = named.into();
        }
        let is_first = || std::fs::File::create_new(&done).is_ok();
        let again = done.with_file_name("done-again");
        let is_second = || std::fs::File::create_new(&again).is_ok();
        match fault {
            "never-greets" => hang(),
            "ends-at-once" => exit(3),
            "never-describes" if has("describe") => hang(),
            "other-protocol" if has("hello") => {
                writeln!(
                    out,
                    r#"{{"id":0,"ok":{{"protocol":"stlf-learner/9","name":"x","classes":["a"],"model":{{"a":[1]}}}}}}"#
                )?;
                continue;
            }
            "hangs" if has("train") => hang(),
            "hangs-once" if has("train") && is_first() => hang(),
            "exits-0" if has("train") => exit(0),
            "exits-0-once" if has("train") && is_first() => exit(0),
            "exits-in-train-on-once" if !request["train"]["start"].is_null() && is_first() => {
                exit(1)
            }
            // It fails in training, and started again once more in the greeting.
            "exits-in-greeting-once" if has("train") && is_first() => exit(1),
            "exits-in-greeting-once" if has("hello") && done.exists() && is_second() => exit(1),
            "exits-in-describe" if has("describe") => exit(4),
            "fills-disk" if has("train") => loop {
                for file in 0_u64.. {
                    let name = format!("cache-{file}");
                    std::fs::write(folder.join(name), vec![0; 1 << 20])?;
                }
            },
            "exits-in-predict-once" if has("predict") && is_first() => exit(1),
            "garbage" if has("train") => {
                writeln!(out, "Epoch 1/10 [=====>    ] loss: 0.3")?;
                hang();
            }
            "another-number" if has("train") => {
                writeln!(out, "{}", json!({ "id": 99, "ok": {} }))?;
                hang();
            }
            "floods" if has("train") => loop {
                writeln!(out, "{}", "x".repeat(1000))?;
            },
            "no-file" if has("train") => {
                writeln!(out, "{}", json!({ "id": id, "ok": {} }))?;
                continue;
            }
            "ignores-cancel" if has("train") => loop {
                writeln!(out, "{}", json!({ "id": id, "progress": { "done": 1, "total": 0 } }))?;
                std::thread::sleep(std::time::Duration::from_millis(5));
            },
            "forks" if has("train") => {
                // The child lives on, in the same group, with the same output.
                let child = Command::new("sleep").arg("600").spawn()?;
                std::fs::write(&done, child.id().to_string())?;
                exit(0);
            }
            "stays" if has("stop") => hang(),
            _ => {}
        }
        if has("stop") {
            break;
        }
        let mut say = |line: Value| {
            if line.get("ok").is_some() {
                tamper(fault, &request, &folder)?;
            }
            Ok(writeln!(out, "{line}").and_then(|()| out.flush())?)
        };
        learner.answer(&request, &lines, &mut say)?;
    }
    Ok(())
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

/// Puts another file in the place of one that was written.
fn tamper(fault: &str, request: &Value, folder: &Path) -> Result<(), Failure> {
    let written = ["train", "predict", "describe"].map(|ask| request[ask]["to"].as_str());
    let [model, probabilities, samples] = written.map(|name| name.map(|name| folder.join(name)));
    let f32s = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let rewrite = |path: &Path, change: &dyn Fn(&mut Vec<u8>)| -> Result<(), Failure> {
        let mut file = std::fs::read(path)?;
        change(&mut file);
        Ok(std::fs::write(path, file)?)
    };
    match (fault, model, probabilities, samples) {
        ("nan-model", Some(model), ..) => rewrite(&model, &|file| {
            let at = file.len() - 4;
            file[at..].copy_from_slice(&f32s(&[f32::NAN]));
        }),
        ("other-shapes", Some(model), ..) => rewrite(&model, &|file| {
            let text = String::from_utf8_lossy(file).find("\"means\"").unwrap_or_default();
            let at = text + file[text..].windows(3).position(|w| w == b"[2,").unwrap_or_default();
            file[at + 1] = b'1';
        }),
        ("cut-model", Some(model), ..) => rewrite(&model, &|file| file.truncate(40)),
        ("huge-model", Some(model), ..) => rewrite(&model, &|file| file.resize(1 << 20, 0)),
        ("nan", _, Some(path), _) => rewrite(&path, &|file| {
            let at = file.len() - 8;
            file[at..].copy_from_slice(&f32s(&[f32::NAN, 1.0]));
        }),
        ("no-probabilities", _, Some(path), _) => rewrite(&path, &|file| {
            let at = file.len() - 8;
            file[at..].copy_from_slice(&f32s(&[2.5, -1.5]));
        }),
        ("unknown-label", .., Some(path)) => rewrite(&path, &|file| {
            // Before the features: two of single precision for each of twenty samples.
            let end = file.len() - 20 * 2 * 4;
            file[end - 8..end].copy_from_slice(&7_i64.to_le_bytes());
        }),
        _ => Ok(()),
    }
}
