//! Samples of one or several domains, with their labels where they have one.

use crate::Error;
use crate::features::{Beginning, Series};

/// The index of a class in [`Dataset::classes`].
pub type Class = u16;

/// The shape of one sample. A feature vector of n numbers is 1×1×n, a window of a series channels×1×readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// 1 for grey, 3 for red, green and blue; the channels of a series.
    pub channels: usize,
    /// The rows of a picture; 1 for other samples.
    pub height: usize,
    /// Columns of a picture, features of a row, or readings of a window.
    pub width: usize,
}

impl Shape {
    /// A grey picture of `side` × `side` pixels.
    pub const fn grey(side: usize) -> Shape {
        Shape { channels: 1, height: side, width: side }
    }

    /// Returns how many numbers one sample has.
    pub const fn len(self) -> usize {
        self.channels * self.height * self.width
    }

    /// Whether a sample has no numbers at all.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether it has several rows and several columns, so that neighbours mean something.
    pub const fn is_picture(self) -> bool {
        self.height > 1 && self.width > 1
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}×{}", self.channels, self.height, self.width)
    }
}

/// The numbers of all samples, one sample after the other, each channel by channel, row by row.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Pixels 0..=255, a quarter of the memory of floats.
    Pixels(Vec<u8>),
    /// Features as they were read: a scale is taken before they become inputs, in whose precision small differences of
    /// large numbers are lost.
    Features(Vec<f64>),
}

/// Checks that features are whole samples of a shape, and finite in the precision of inputs.
///
/// # Errors
/// Says what is missing, or which sample and feature is not finite.
pub fn check_features(features: &[f64], shape: Shape) -> Result<(), Error> {
    let samples = features.len() / shape.len().max(1);
    let checked =
        check_numbers(features.len(), shape, samples).and_then(|()| check_finite(features, shape));
    checked.map_err(|message| Error::Setting { setting: "samples".to_owned(), message, hint: None })
}

fn check_numbers(numbers: usize, shape: Shape, samples: usize) -> Result<(), String> {
    if shape.is_empty() || numbers != samples * shape.len() {
        return Err(format!("{numbers} numbers are not {samples} samples of shape {shape}"));
    }
    Ok(())
}

/// The least number that is infinite in the precision of inputs: 2¹²⁸ − 2¹⁰³, half a step above the largest that is not.
const INFINITE: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;

fn check_finite(features: &[f64], shape: Shape) -> Result<(), String> {
    // Whether all of a block are is seen in registers; which one is not, one by one.
    const BLOCK: usize = 256;
    let is_finite = |value: &f64| value.abs() < INFINITE;
    let is_other = |value: &f64| !is_finite(value);
    let has_other = |block: &[f64]| !block.iter().fold(true, |all, value| all & is_finite(value));
    let Some(block) = features.chunks(BLOCK).position(has_other) else { return Ok(()) };
    let within = features.iter().skip(block * BLOCK).position(is_other).unwrap_or_default();
    let at = block * BLOCK + within;
    let (sample, feature) = (at / shape.len(), at % shape.len());
    Err(format!("sample {sample}, feature {feature} is not a finite number"))
}

/// Samples with the domain each comes from and, where it is known, its class.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    shape: Shape,
    values: Values,
    labels: Vec<Option<Class>>,
    classes: Vec<String>,
    domains: Vec<String>,
    domain_of: Vec<u16>,
    domain_column: Option<String>,
    columns: Vec<String>,
    series: Option<Series>,
    beginnings: Vec<Beginning>,
}

impl Dataset {
    /// Samples of one domain. `labels` are indices into `classes`.
    pub fn new(
        domain: impl Into<String>,
        shape: Shape,
        values: Values,
        labels: Vec<Option<Class>>,
        classes: Vec<String>,
    ) -> Result<Dataset, Error> {
        let domain = domain.into();
        let wrong = |message: String| Error::Setting {
            setting: format!("data set {domain}"),
            message,
            hint: None,
        };
        let numbers = match &values {
            Values::Pixels(pixels) => pixels.len(),
            Values::Features(features) => features.len(),
        };
        check_numbers(numbers, shape, labels.len()).map_err(wrong)?;
        if let Some(i) = labels.iter().position(|l| l.is_some_and(|l| l as usize >= classes.len()))
        {
            let label = labels[i].unwrap_or_default();
            return Err(wrong(format!(
                "sample {i} has label {label}, but there are {} classes",
                classes.len()
            )));
        }
        if let Values::Features(features) = &values {
            check_finite(features, shape).map_err(wrong)?;
        }
        let domain_of = vec![0; labels.len()];
        let domains = vec![domain];
        Ok(Dataset {
            shape,
            values,
            labels,
            classes,
            domains,
            domain_of,
            domain_column: None,
            columns: Vec::new(),
            series: None,
            beginnings: Vec::new(),
        })
    }

    /// Returns the same samples, with domains named by this column of a table.
    pub(crate) fn with_domain_column(self, name: Option<String>) -> Dataset {
        Dataset { domain_column: name, ..self }
    }

    /// Returns the same samples, with these names of their features.
    pub(crate) fn with_columns(self, columns: Vec<String>) -> Dataset {
        Dataset { columns, ..self }
    }

    /// Returns the same samples, which are windows that begin here.
    pub fn with_series(self, series: Series, beginnings: Vec<Beginning>) -> Dataset {
        Dataset { series: Some(series), beginnings, ..self }
    }

    /// Returns the same samples with other domains, which a column or a list of this name gives: `domain_of` has an index into `domains`
    /// for every sample.
    pub(crate) fn with_domains(
        self,
        name: &str,
        domains: Vec<String>,
        domain_of: Vec<u16>,
    ) -> Dataset {
        Dataset { domains, domain_of, domain_column: Some(name.to_owned()), ..self }
    }

    /// Returns the number of samples, labeled or not.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns the shape that all samples have.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the numbers of all samples, one sample after the other.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Returns the names of the domains.
    pub fn domains(&self) -> &[String] {
        &self.domains
    }

    /// The column of a table that names the domains, if there is one: each such domain is a device.
    pub fn domain_column(&self) -> Option<&str> {
        self.domain_column.as_deref()
    }

    /// The names of the features in their order, or of the channels of a series, where the samples come from a table.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// What the samples were cut from, where they are windows.
    pub fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }

    /// Where every sample begins, where they are windows of a table; else none.
    pub fn beginnings(&self) -> &[Beginning] {
        &self.beginnings
    }

    /// How many numbers of a sample that follow each other are of one feature: the readings of a window, else 1.
    pub fn readings(&self) -> usize {
        self.series.as_ref().map_or(1, |series| series.windows.length)
    }

    /// The index in [`domains`](Dataset::domains) of the domain a sample comes from.
    pub fn domain(&self, sample: usize) -> usize {
        self.domain_of[sample] as usize
    }

    /// The class of a sample, where it is known.
    pub fn label(&self, sample: usize) -> Option<Class> {
        self.labels[sample]
    }

    /// The inputs of some samples, one after the other. Pixels 0..=255 become −1..=1; features stay.
    pub fn inputs(&self, samples: &[usize]) -> Vec<f32> {
        let n = self.shape.len();
        let mut inputs = Vec::with_capacity(samples.len() * n);
        for &sample in samples {
            let range = sample * n..(sample + 1) * n;
            match &self.values {
                Values::Pixels(all) => {
                    inputs.extend(all[range].iter().map(|&p| f32::from(p) / 127.5 - 1.0));
                }
                Values::Features(all) => inputs.extend(all[range].iter().map(|&v| v as f32)),
            }
        }
        inputs
    }

    /// The classes of some samples; `None` where one of them has none.
    pub fn labels(&self, samples: &[usize]) -> Option<Vec<Class>> {
        samples.iter().map(|&sample| self.labels[sample]).collect()
    }

    /// Returns a data set with these samples alone, in this order.
    pub fn select(&self, samples: &[usize]) -> Dataset {
        let n = self.shape.len();
        fn pick<T: Copy>(all: &[T], samples: &[usize], n: usize) -> Vec<T> {
            samples.iter().flat_map(|&s| &all[s * n..(s + 1) * n]).copied().collect()
        }
        Dataset {
            shape: self.shape,
            values: match &self.values {
                Values::Pixels(all) => Values::Pixels(pick(all, samples, n)),
                Values::Features(all) => Values::Features(pick(all, samples, n)),
            },
            labels: pick(&self.labels, samples, 1),
            classes: self.classes.clone(),
            domains: self.domains.clone(),
            domain_of: pick(&self.domain_of, samples, 1),
            domain_column: self.domain_column.clone(),
            columns: self.columns.clone(),
            series: self.series.clone(),
            beginnings: match &self.beginnings[..] {
                [] => Vec::new(),
                all => samples.iter().map(|&sample| all[sample].clone()).collect(),
            },
        }
    }

    /// The samples of this set and then those of another one of the same shape, kind and classes.
    pub fn join(mut self, other: Dataset) -> Result<Dataset, Error> {
        let wrong = |message: String, hint: Option<&str>| Error::Setting {
            setting: format!(
                "data sets {} and {}",
                self.domains.join("+"),
                other.domains.join("+")
            ),
            message,
            hint: hint.map(str::to_owned),
        };
        if self.shape != other.shape {
            return Err(wrong(
                format!(
                    "samples of shape {} and of shape {} cannot be mixed",
                    self.shape, other.shape
                ),
                Some("read coloured pictures as grey, and all pictures in one size"),
            ));
        }
        if self.series != other.series {
            return Err(wrong("they were cut differently".to_owned(), None));
        }
        if self.classes != other.classes {
            return Err(wrong("their classes differ".to_owned(), None));
        }
        match (&mut self.values, &other.values) {
            (Values::Pixels(all), Values::Pixels(more)) => all.extend_from_slice(more),
            (Values::Features(all), Values::Features(more)) => all.extend_from_slice(more),
            _ => return Err(wrong("pixels and features cannot be mixed".to_owned(), None)),
        }
        self.labels.extend_from_slice(&other.labels);
        self.beginnings.extend_from_slice(&other.beginnings);
        let index: Vec<u16> = other
            .domains
            .iter()
            .map(|name| match self.domains.iter().position(|d| d == name) {
                Some(at) => at as u16,
                None => {
                    self.domains.push(name.clone());
                    (self.domains.len() - 1) as u16
                }
            })
            .collect();
        self.domain_of.extend(other.domain_of.iter().map(|&d| index[d as usize]));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_by_one(domain: &str, pixels: &[u8], labels: &[Option<Class>]) -> Result<Dataset, Error> {
        let shape = Shape { channels: 1, height: 1, width: 2 };
        let classes = vec!["a".to_owned(), "b".to_owned()];
        Dataset::new(domain, shape, Values::Pixels(pixels.to_vec()), labels.to_vec(), classes)
    }

    #[test]
    fn joined_sets_keep_their_samples_and_domains() -> Result<(), Error> {
        let first = two_by_one("x", &[0, 255, 51, 102], &[Some(0), None])?;
        let both = first.clone().join(two_by_one("y", &[7, 9], &[Some(1)])?)?.join(first)?;
        assert_eq!(both.len(), 5);
        assert_eq!(both.domains(), ["x", "y"]);
        let domains: Vec<usize> = (0..5).map(|i| both.domain(i)).collect();
        assert_eq!(domains, [0, 0, 1, 0, 0]);
        assert_eq!(both.inputs(&[3, 0]), [-1.0, 1.0, -1.0, 1.0]);
        assert_eq!(both.labels(&[0, 2]), Some(vec![0, 1]));
        assert_eq!(both.labels(&[0, 1]), None);
        let two = both.select(&[2, 0]);
        assert_eq!(
            (two.label(0), two.domain(0), two.label(1), two.domain(1)),
            (Some(1), 1, Some(0), 0)
        );
        assert_eq!(two.values(), &Values::Pixels(vec![7, 9, 0, 255]));
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let message = |result: Result<Dataset, Error>| result.err().map(|e| e.to_string());
        assert_eq!(
            message(two_by_one("x", &[1, 2, 3], &[Some(0), Some(1)])).as_deref(),
            Some("data set x: 3 numbers are not 2 samples of shape 1×1×2")
        );
        assert_eq!(
            message(two_by_one("x", &[1, 2], &[Some(2)])).as_deref(),
            Some("data set x: sample 0 has label 2, but there are 2 classes")
        );
        let shape = Shape::grey(1);
        let classes = vec!["a".to_owned(), "b".to_owned()];
        let features = |v: f64| {
            let values = Values::Features(vec![v]);
            Dataset::new("f", shape, values, vec![Some(0)], classes.clone())
        };
        assert!(features(f64::NAN).is_err() && features(1e39).is_err());
        for limit in [INFINITE, -INFINITE] {
            assert!(features(limit).is_err() && !(limit as f32).is_finite());
            let below = limit.signum() * INFINITE.next_down();
            assert!(features(below).is_ok() && (below as f32).is_finite());
        }
        let mixed = two_by_one("x", &[1, 2], &[Some(0)]).and_then(|x| x.join(features(1.0)?));
        assert!(message(mixed).is_some_and(|m| m.contains("1×1×2 and of shape 1×1×1")));
    }
}
