//! `stlf-nearest-mean TABLE CLASS,CLASS,… [adapts]`: the smallest program that is a learner, to read and for tests.
//!
//! A class is where the mean of its samples lies; the nearer a sample is to it, the likelier it has that class. The table is CSV: features,
//! and the class in the last column: empty for a sample without a label, and with a question mark after it where only evaluation may know it.
//! With `adapts` it trains students: the means of its own samples, first by the classes of the mixture, and then by the nearest mean, again and
//! again.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};

/// Passes over the samples, after each of which it says how far it is.
const PASSES: u64 = 10;

type Failure = Box<dyn std::error::Error>;

/// How far an altered sample moves at most, in standard deviations of each feature.
const FARTHEST: f32 = 0.3;

/// A learner with its samples, which predicts the class whose mean is nearest.
pub(crate) struct NearestMean {
    classes: Vec<String>,
    rows: Vec<Vec<f32>>,
    labels: Vec<i64>,
    truth: Vec<i64>,
    adapts: bool,
    folder: PathBuf,
}

/// How many samples each class has, and their means.
type Means = (Vec<f32>, Vec<f32>);

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
        let adapts = arguments.next().is_some_and(|word| word == "adapts");
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
        Ok(NearestMean { classes, rows, labels, truth, adapts, folder: PathBuf::new() })
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
                "adapts": self.adapts,
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
                if !goes_on(pass, request, lines, say)? {
                    return Ok(None);
                }
            }
            self.write_model(&train["to"], &(counts, means))?;
            return Ok(Some(json!({})));
        }
        if let Some(adapt) = request.get("adapt") {
            let rows = self.read_rows(&adapt["rows"])?;
            let mut model = self.read_model(&adapt["start"])?;
            let mut said = self.read_array(&adapt["teacher"], "probabilities")?;
            for pass in 1..=PASSES {
                for class in 0..count {
                    let own = rows.iter().zip(said.chunks_exact(count));
                    let own: Vec<usize> =
                        own.filter(|(_, p)| likeliest(p) == class).map(|(row, _)| *row).collect();
                    if !own.is_empty() {
                        model.0[class] = own.len() as f32;
                        for column in 0..width {
                            let sum: f32 = own.iter().map(|&row| self.rows[row][column]).sum();
                            model.1[class * width + column] = sum / own.len() as f32;
                        }
                    }
                }
                said = rows.iter().flat_map(|&row| self.near(&model, &self.rows[row])).collect();
                if !goes_on(pass, request, lines, say)? {
                    return Ok(None);
                }
            }
            self.write_model(&adapt["to"], &model)?;
            return Ok(Some(json!({})));
        }
        if let Some(predict) = request.get("predict") {
            let (rows, model) =
                (self.read_rows(&predict["rows"])?, self.read_model(&predict["model"])?);
            let altered = predict["altered"].as_u64().map(|seed| (seed, self.deviations()));
            let sample = |row: usize| match &altered {
                Some((seed, deviations)) => self.altered(row, *seed, deviations),
                None => self.rows[row].clone(),
            };
            let probabilities: Vec<f32> =
                rows.iter().flat_map(|&row| self.near(&model, &sample(row))).collect();
            let shape = vec![rows.len(), count];
            let probabilities = bytes(&probabilities);
            self.write(&predict["to"], &[("probabilities", Dtype::F32, shape, &probabilities)])?;
            return Ok(Some(json!({})));
        }
        Err("an unknown request".into())
    }

    /// The probabilities of all classes of a sample.
    fn near(&self, (counts, means): &Means, sample: &[f32]) -> Vec<f32> {
        let (count, width) = (counts.len(), sample.len());
        let near = |class: usize| -> f32 {
            let mean = &means[class * width..(class + 1) * width];
            let far = mean.iter().zip(sample).map(|(m, x)| (m - x).powi(2));
            if counts[class] > 0.0 { -far.sum::<f32>() } else { f32::NEG_INFINITY }
        };
        let near: Vec<f32> = (0..count).map(near).collect();
        let most = near.iter().copied().fold(f32::NEG_INFINITY, f32::max).max(f32::MIN);
        let odds: Vec<f32> = near.iter().map(|n| (n - most).exp()).collect();
        let sum: f32 = odds.iter().sum();
        odds.iter().map(|p| if sum > 0.0 { p / sum } else { 1.0 / count as f32 }).collect()
    }

    /// The standard deviation of each feature.
    fn deviations(&self) -> Vec<f32> {
        let mean_of = |of: &dyn Fn(&[f32]) -> f32| {
            self.rows.iter().map(|row| of(row)).sum::<f32>() / self.rows.len() as f32
        };
        let deviation = |column: usize| {
            let mean = mean_of(&|row| row[column]);
            mean_of(&|row| (row[column] - mean).powi(2)).sqrt()
        };
        (0..self.rows.first().map_or(0, Vec::len)).map(deviation).collect()
    }

    /// A sample that was moved a little, as is drawn from a seed.
    fn altered(&self, row: usize, seed: u64, deviations: &[f32]) -> Vec<f32> {
        let mut drawn = seed.wrapping_add(row as u64);
        let moved = |(x, deviation): (&f32, &f32)| {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let share = (drawn >> 40) as f32 / (1_u64 << 23) as f32 - 1.0;
            x + FARTHEST * share * deviation
        };
        self.rows[row].iter().zip(deviations).map(moved).collect()
    }

    fn write_model(&self, to: &Value, (counts, means): &Means) -> Result<(), Failure> {
        let (count, width) = (counts.len(), means.len() / counts.len());
        let [counts, means] = [counts, means].map(|numbers| bytes(numbers));
        let counts = ("counts", Dtype::F32, vec![count], &counts[..]);
        self.write(to, &[counts, ("means", Dtype::F32, vec![count, width], &means)])
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

    fn read_model(&self, from: &Value) -> Result<Means, Failure> {
        Ok((self.read_array(from, "counts")?, self.read_array(from, "means")?))
    }

    fn read_array(&self, from: &Value, name: &str) -> Result<Vec<f32>, Failure> {
        let file = self.read(from)?;
        let bytes = SafeTensors::deserialize(&file)?.tensor(name)?.data().to_vec();
        let number = |b: &[u8]| Ok(f32::from_le_bytes(b.try_into()?));
        bytes.chunks_exact(4).map(number).collect()
    }
}

/// Says how far a training is; `false` if it is to be given up.
fn goes_on(
    pass: u64,
    request: &Value,
    lines: &Receiver<Value>,
    say: &mut Say<'_>,
) -> Result<bool, Failure> {
    say(json!({ "id": request["id"], "progress": { "done": pass, "total": PASSES } }))?;
    Ok(!lines.try_iter().any(|line| line["cancel"]["request"] == request["id"]))
}

/// The first class of the largest probability.
fn likeliest(probabilities: &[f32]) -> usize {
    let more = |best: usize, class| {
        if probabilities[class] > probabilities[best] { class } else { best }
    };
    (0..probabilities.len()).fold(0, more)
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}
