//! `stlf-nearest-mean TABLE CLASS,CLASS,…`: the smallest program that is a learner, to read and for tests.
//!
//! A class is where the mean of its samples lies; the nearer a sample is to it, the likelier it has that class. The table is CSV: features,
//! and the class in the last column: empty for a sample without a label, and with a question mark after it where only evaluation may know it.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};

/// Passes over the samples, after each of which it says how far it is.
const PASSES: u64 = 10;

type Failure = Box<dyn std::error::Error>;

/// A learner with its samples.
pub(crate) struct NearestMean {
    classes: Vec<String>,
    rows: Vec<Vec<f32>>,
    labels: Vec<i64>,
    truth: Vec<i64>,
    folder: PathBuf,
}

/// A line to write, and whether the program goes on.
pub(crate) type Say<'s> = dyn FnMut(Value) -> Result<(), Failure> + 's;

fn main() -> Result<(), Failure> {
    let mut learner = NearestMean::new(std::env::args().skip(1))?;
    let lines = lines();
    let mut out = std::io::stdout();
    let mut say = |line: Value| Ok(writeln!(out, "{line}").and_then(|()| out.flush())?);
    while let Ok(request) = lines.recv() {
        if request.get("stop").is_some() {
            break;
        }
        learner.answer(&request, &lines, &mut say)?;
    }
    Ok(())
}

/// The requests, until standard input ends.
pub(crate) fn lines() -> Receiver<Value> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(request) = serde_json::from_str(&line) else { return };
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    lines
}

impl NearestMean {
    pub(crate) fn new(mut arguments: impl Iterator<Item = String>) -> Result<NearestMean, Failure> {
        let (table, classes) =
            arguments.next().zip(arguments.next()).ok_or("TABLE CLASS,CLASS,… are needed")?;
        let classes: Vec<String> = classes.split(',').map(str::to_owned).collect();
        let text = std::fs::read_to_string(&table).map_err(|e| format!("{table}: {e}"))?;
        let (mut rows, mut labels, mut truth) = (Vec::new(), Vec::new(), Vec::new());
        let number =
            |class: &str| classes.iter().position(|c| c == class).map_or(-1, |at| at as i64);
        for line in text.lines().skip(1) {
            let (features, class) = line.rsplit_once(',').ok_or("a line without a comma")?;
            rows.push(features.split(',').map(str::parse).collect::<Result<_, _>>()?);
            labels.push(number(class));
            truth.push(number(class.trim_end_matches('?')));
        }
        Ok(NearestMean { classes, rows, labels, truth, folder: PathBuf::new() })
    }

    /// Answers a request. What cannot be done is said, and the next request may come.
    pub(crate) fn answer(
        &mut self,
        request: &Value,
        lines: &Receiver<Value>,
        say: &mut Say<'_>,
    ) -> Result<(), Failure> {
        let id = &request["id"];
        if request.get("cancel").is_some() {
            return Ok(());
        }
        let done = self.done(request, lines, say);
        say(match done {
            Ok(Some(says)) => json!({ "id": id, "ok": says }),
            Ok(None) => json!({ "id": id, "cancelled": {} }),
            Err(e) => json!({ "id": id, "error": { "message": e.to_string() } }),
        })
    }

    fn done(
        &mut self,
        request: &Value,
        lines: &Receiver<Value>,
        say: &mut Say<'_>,
    ) -> Result<Option<Value>, Failure> {
        let (count, width) = (self.classes.len(), self.rows.first().map_or(0, Vec::len));
        if let Some(hello) = request.get("hello") {
            self.folder = hello["folder"].as_str().ok_or("no folder")?.into();
            let model = json!({ "counts": [count], "means": [count, width] });
            return Ok(Some(json!({
                "protocol": "stlf-learner/1",
                "name": "nearest-mean/1",
                "classes": self.classes,
                "model": model,
            })));
        }
        if let Some(describe) = request.get("describe") {
            let features: Vec<u8> =
                self.rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
            let [labels, truth]: [Vec<u8>; 2] = [&self.labels, &self.truth]
                .map(|classes| classes.iter().flat_map(|x| x.to_le_bytes()).collect());
            let samples = self.rows.len();
            let mut arrays = vec![
                ("features", Dtype::F32, vec![samples, width], &features[..]),
                ("labels", Dtype::I64, vec![samples], &labels[..]),
            ];
            if self.truth.iter().all(|class| *class >= 0) {
                arrays.push(("truth", Dtype::I64, vec![samples], &truth));
            }
            self.write(&describe["to"], &arrays)?;
            return Ok(Some(json!({ "samples": samples })));
        }
        if let Some(train) = request.get("train") {
            let rows = self.read_rows(&train["rows"])?;
            let (mut counts, mut means) = match train["start"].is_null() {
                true => (vec![0.0; count], vec![0.0; count * width]),
                false => self.read_model(&train["start"])?,
            };
            for pass in 1..=PASSES {
                for (at, &row) in rows.iter().enumerate() {
                    if at as u64 % PASSES == pass - 1 {
                        let class = usize::try_from(self.labels[row])?;
                        counts[class] += 1.0;
                        let mean = &mut means[class * width..(class + 1) * width];
                        let sample = mean.iter_mut().zip(&self.rows[row]);
                        sample.for_each(|(m, x)| *m += (x - *m) / counts[class]);
                    }
                }
                say(json!({ "id": request["id"], "progress": { "done": pass, "total": PASSES } }))?;
                if lines.try_iter().any(|line| line["cancel"]["request"] == request["id"]) {
                    return Ok(None);
                }
            }
            let [counts, means] = [&counts, &means].map(|numbers| bytes(numbers));
            self.write(
                &train["to"],
                &[
                    ("counts", Dtype::F32, vec![count], &counts),
                    ("means", Dtype::F32, vec![count, width], &means),
                ],
            )?;
            return Ok(Some(json!({})));
        }
        if let Some(predict) = request.get("predict") {
            let (rows, (counts, means)) =
                (self.read_rows(&predict["rows"])?, self.read_model(&predict["model"])?);
            let mut probabilities = Vec::new();
            for &row in &rows {
                let near = |class: usize| -> f32 {
                    let mean = &means[class * width..(class + 1) * width];
                    let far = mean.iter().zip(&self.rows[row]).map(|(m, x)| (m - x).powi(2));
                    if counts[class] > 0.0 { -far.sum::<f32>() } else { f32::NEG_INFINITY }
                };
                let near: Vec<f32> = (0..count).map(near).collect();
                let most = near.iter().copied().fold(f32::NEG_INFINITY, f32::max).max(f32::MIN);
                let odds: Vec<f32> = near.iter().map(|n| (n - most).exp()).collect();
                let sum: f32 = odds.iter().sum();
                let share = |p: &f32| if sum > 0.0 { p / sum } else { 1.0 / count as f32 };
                probabilities.extend(odds.iter().map(share));
            }
            let shape = vec![rows.len(), count];
            let probabilities = bytes(&probabilities);
            self.write(&predict["to"], &[("probabilities", Dtype::F32, shape, &probabilities)])?;
            return Ok(Some(json!({})));
        }
        Err("an unknown request".into())
    }

    fn write(
        &self,
        to: &Value,
        arrays: &[(&str, Dtype, Vec<usize>, &[u8])],
    ) -> Result<(), Failure> {
        let mut views = BTreeMap::new();
        for (name, kind, shape, bytes) in arrays {
            views.insert(*name, TensorView::new(*kind, shape.clone(), bytes)?);
        }
        let file = safetensors::serialize(views, None::<HashMap<String, String>>)?;
        Ok(std::fs::write(self.folder.join(to.as_str().ok_or("no file")?), file)?)
    }

    fn read(&self, from: &Value) -> Result<Vec<u8>, Failure> {
        let name = from.as_str().ok_or("no file")?;
        Ok(std::fs::read(self.folder.join(name)).map_err(|e| format!("{name}: {e}"))?)
    }

    fn read_rows(&self, from: &Value) -> Result<Vec<usize>, Failure> {
        let file = self.read(from)?;
        let rows = SafeTensors::deserialize(&file)?.tensor("rows")?.data().to_vec();
        let row = |b: &[u8]| Ok(usize::try_from(i64::from_le_bytes(b.try_into()?))?);
        rows.chunks_exact(8).map(row).collect()
    }

    fn read_model(&self, from: &Value) -> Result<(Vec<f32>, Vec<f32>), Failure> {
        let file = self.read(from)?;
        let file = SafeTensors::deserialize(&file)?;
        let array = |name: &str| -> Result<Vec<f32>, Failure> {
            let bytes = file.tensor(name)?.data().to_vec();
            let number = |b: &[u8]| Ok(f32::from_le_bytes(b.try_into()?));
            bytes.chunks_exact(4).map(number).collect()
        };
        Ok((array("counts")?, array("means")?))
    }
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}
