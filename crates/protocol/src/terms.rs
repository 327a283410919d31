//! What the devices of a fleet agree on when they join: the owner's settings, the columns of their tables, and all classes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use stlf_config::{Config, Error, Model};
use stlf_data::Shape;
use stlf_data::features::Scale;
use stlf_learn::Spec;

use crate::shared::{Difference, SharedSettings};

/// The most numbers of one input.
const MOST_NUMBERS: usize = 1 << 24;

/// What a device says of its data when it asks to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Brought {
    /// The names of its features in their order, where its samples are rows of a table.
    pub columns: Option<Vec<String>>,
    /// Channels, height and width of an input.
    pub shape: [usize; 3],
    /// The classes that it knows of.
    pub classes: Vec<String>,
}

impl Brought {
    /// Of inputs of this shape.
    pub fn new(shape: Shape, columns: Option<Vec<String>>, classes: Vec<String>) -> Brought {
        Brought { columns, shape: [shape.channels, shape.height, shape.width], classes }
    }

    /// Checks what a device says, of which nothing is believed.
    ///
    /// # Errors
    /// Says what no device has.
    pub fn check(&self) -> Result<(), &'static str> {
        let numbers = self.shape.iter().try_fold(1_usize, |all, &n| all.checked_mul(n));
        if numbers.is_none_or(|numbers| numbers == 0 || numbers > MOST_NUMBERS) {
            return Err("the shape of its inputs is absurd");
        }
        let [channels, height, width] = self.shape;
        let fits = |columns: &Vec<String>| {
            // A row of features, or a window with a row for each channel.
            height == 1 && [(1, columns.len()), (columns.len(), width)].contains(&(channels, width))
        };
        if self.columns.as_ref().is_some_and(|columns| !fits(columns)) {
            return Err("its columns do not fit the shape of its inputs");
        }
        let names = self.columns.iter().flatten().chain(&self.classes);
        match names.clone().any(|name| name.is_empty() || name.chars().any(char::is_control)) {
            true => Err("a column or class has no name that can be shown"),
            false => Ok(()),
        }
    }

    fn shape(&self) -> Shape {
        let [channels, height, width] = self.shape;
        Shape { channels, height, width }
    }

    /// Returns its shared settings under a configuration, with these classes.
    fn shared(&self, config: &Config, classes: &[String]) -> Result<SharedSettings, Error> {
        let scale = config.data.standardise.unwrap_or(Scale::Own);
        let seed = config.seeds.first().copied().unwrap_or_default();
        let columns = self.columns.as_deref();
        Ok(SharedSettings::new(config.shared(self.shape(), scale, columns, classes, seed)?))
    }
}

/// No device that joins has a label, and the owner has named no classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no device has labels and the owner has named no classes, so that there is nothing to learn"
)]
pub struct NoClass;

/// The settings of a fleet, and what its devices bring once they have agreed on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    config: Config,
    agreed: Option<Brought>,
}

impl Terms {
    /// The owner's configuration, and what was agreed on before.
    pub fn new(config: Config, agreed: Option<Brought>) -> Terms {
        Terms { config, agreed }
    }

    /// The configuration that devices are given.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns what the devices bring, once they have agreed on it.
    pub fn agreed(&self) -> Option<&Brought> {
        self.agreed.as_ref()
    }

    /// The first setting in which a device that wants these changes, each KEY=VALUE, differs from the fleet; before the fleet has agreed,
    /// from the first device that came. A table may lack labels of some classes, but must not have others.
    ///
    /// # Errors
    /// A change that is none.
    pub fn difference(
        &self,
        first: Option<&Brought>,
        own: &Brought,
        changes: &[String],
    ) -> Result<Option<Difference>, Error> {
        let other = self.agreed.as_ref().or(first).unwrap_or(own);
        let known: BTreeSet<&String> = other.classes.iter().collect();
        let fits = self.agreed.is_none() || own.classes.iter().all(|class| known.contains(class));
        let is_table = own.columns.is_some();
        let classes = if is_table && fits { &other.classes } else { &own.classes };
        let base = fitted(&self.config, other.shape());
        let changed = base.with(changes.iter().map(String::as_str))?;
        Ok(own.shared(&changed, classes)?.difference(&other.shared(&base, &other.classes)?))
    }

    /// Agrees on what the first of these devices brings and, for tables, on the classes of all. Classes that the owner named stay.
    ///
    /// # Errors
    /// Nobody knows a class.
    pub fn agree(&mut self, all: &[&Brought]) -> Result<(), NoClass> {
        let Some((&first, _)) = all.split_first() else { return Err(NoClass) };
        let mut agreed = first.clone();
        if agreed.columns.is_some() {
            let found: BTreeSet<&String> = all.iter().flat_map(|own| &own.classes).collect();
            let found: Vec<String> = found.into_iter().cloned().collect();
            agreed.classes = self.config.data.classes.clone().unwrap_or(found);
            self.config.data.classes = Some(agreed.classes.clone());
        }
        if agreed.classes.is_empty() {
            return Err(NoClass);
        }
        self.config = fitted(&self.config, agreed.shape());
        self.agreed = Some(agreed);
        Ok(())
    }
}

/// The same configuration with a network that takes inputs of this shape: the owner need not know what devices bring.
pub fn fitted(config: &Config, shape: Shape) -> Config {
    let mut fitted = config.clone();
    if !Spec::is_for_cnn(shape) && config.data.windows().is_none() {
        fitted.training.model = Model::Mlp;
    }
    fitted
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    fn table(columns: &[&str], classes: &[&str]) -> Brought {
        let shape = Shape { channels: 1, height: 1, width: columns.len() };
        Brought::new(shape, Some(names(columns)), names(classes))
    }

    fn terms(changes: &[&str]) -> Terms {
        Terms::new(Config::default().with(changes.iter().copied()).unwrap(), None)
    }

    fn differs(
        terms: &Terms,
        first: Option<&Brought>,
        own: &Brought,
        changes: &[&str],
    ) -> Option<String> {
        terms.difference(first, own, &names(changes)).unwrap().map(|d| d.to_string())
    }

    #[test]
    fn tables_agree_on_all_classes_and_on_a_network_that_takes_them() {
        let mut terms = terms(&[]);
        let (a, b, c) = (&["wind", "wave"], ["storm"], ["calm", "storm"]);
        let [a, b, c] = [table(a, &[]), table(a, &b), table(a, &c)];
        terms.agree(&[&a, &b, &c]).unwrap();
        assert_eq!(terms.agreed().unwrap().classes, ["calm", "storm"]);
        assert_eq!(terms.config().data.classes, Some(names(&["calm", "storm"])));
        assert_eq!(terms.config().training.model, Model::Mlp);
        // Once agreed, nobody adds a class.
        assert_eq!(differs(&terms, None, &a, &[]), None);
        let other = differs(&terms, None, &table(&["wind", "wave"], &["fog"]), &[]).unwrap();
        assert_eq!(other, r#"data.classes differs: "fog" here, "calm, storm" there"#);
    }

    #[test]
    fn the_owner_s_classes_keep_their_order_and_nobody_without_classes_agrees() {
        let mut named = terms(&["data.classes=[\"storm\", \"calm\"]"]);
        named.agree(&[&table(&["x"], &["storm", "calm"])]).unwrap();
        assert_eq!(named.agreed().unwrap().classes, ["storm", "calm"]);
        assert_eq!(terms(&[]).agree(&[&table(&["x"], &[])]), Err(NoClass));
        assert_eq!(terms(&[]).agree(&[]), Err(NoClass));
    }

    #[test]
    fn the_first_difference_is_named() {
        let terms = terms(&["training.steps=200"]);
        let first = table(&["wind", "wave"], &["calm"]);
        assert_eq!(differs(&terms, None, &first, &[]), None);
        assert_eq!(differs(&terms, None, &first, &["data.ignore=[\"note\"]"]), None);
        let other = table(&["wind", "wave"], &["storm"]);
        assert_eq!(differs(&terms, Some(&first), &other, &[]), None);
        for (own, change, expected) in [
            (
                table(&["wave", "wind"], &["storm"]),
                &[][..],
                r#"data.columns differs: "wave, wind" here, "wind, wave" there"#,
            ),
            (
                other.clone(),
                &["training.steps=100"],
                r#"training.steps differs: "100" here, "200" there"#,
            ),
            (
                other,
                &["data.standardise=none"],
                r#"data.standardise differs: "none" here, "own" there"#,
            ),
        ] {
            assert_eq!(differs(&terms, Some(&first), &own, change).as_deref(), Some(expected));
        }
        assert!(terms.difference(None, &first, &names(&["nonsense"])).is_err());
    }

    #[test]
    fn windows_are_the_owner_s_and_have_their_network() {
        let series = |channels: &[&str], width: usize| {
            let shape = Shape { channels: channels.len(), height: 1, width };
            Brought::new(shape, Some(names(channels)), names(&["a"]))
        };
        let mut terms = terms(&["data.features=a.csv", "data.window=64", "data.stride=32"]);
        let first = series(&["x", "y"], 64);
        assert_eq!(differs(&terms, Some(&first), &series(&["x", "y"], 64), &[]), None);
        for (own, change, expected) in [
            (series(&["x"], 64), &[][..], r#"data.columns differs: "x" here, "x, y" there"#),
            (series(&["y", "x"], 64), &[], r#"data.columns differs: "y, x" here, "x, y" there"#),
            (
                series(&["x", "y"], 128),
                &["data.window=128"],
                r#"data.window differs: "128" here, "64" there"#,
            ),
            (
                series(&["x", "y"], 64),
                &["data.stride=8"],
                r#"data.stride differs: "8" here, "32" there"#,
            ),
        ] {
            assert_eq!(differs(&terms, Some(&first), &own, change).as_deref(), Some(expected));
        }
        terms.agree(&[&first]).unwrap();
        assert_eq!(terms.config().training.model, Model::Cnn);
    }

    #[test]
    fn absurd_data_are_noticed() {
        assert_eq!(table(&["x", "y"], &["a"]).check(), Ok(()));
        assert_eq!(Brought::new(Shape::grey(28), None, Vec::new()).check(), Ok(()));
        for (shape, columns) in [
            ([1, 1, 0], None),
            ([usize::MAX, 2, 2], None),
            ([1, 1, 3], Some(names(&["x", "y"]))),
            ([1, 2, 1], Some(names(&["x", "y"]))),
            ([1, 1, 2], Some(names(&["x", "\u{1b}[2J"]))),
            ([1, 1, 2], Some(names(&["x", ""]))),
        ] {
            assert!(Brought { columns, shape, classes: Vec::new() }.check().is_err(), "{shape:?}");
        }
        let window = Shape { channels: 2, height: 1, width: 128 };
        assert_eq!(Brought::new(window, Some(names(&["x", "y"])), Vec::new()).check(), Ok(()));
    }

    #[test]
    fn pictures_have_the_classes_of_their_folders() {
        let picture = |classes: &[&str]| Brought::new(Shape::grey(28), None, names(classes));
        let mut terms = terms(&[]);
        let first = picture(&["0", "1"]);
        let told = differs(&terms, Some(&first), &picture(&["1"]), &[]).unwrap();
        assert_eq!(told, r#"data.classes differs: "1" here, "0, 1" there"#);
        terms.agree(&[&first]).unwrap();
        assert_eq!(terms.config().training.model, Model::Cnn);
        assert_eq!(terms.config().data.classes, None);
        // The network is for pictures of up to 96 pixels a side, and for none that are smaller than digits.
        for (side, model) in
            [(64, Model::Cnn), (96, Model::Cnn), (97, Model::Mlp), (16, Model::Mlp)]
        {
            assert_eq!(fitted(terms.config(), Shape::grey(side)).training.model, model, "{side}");
        }
        assert!(differs(&terms, None, &picture(&["1"]), &[]).is_some());
    }
}
