//! What must be the same on all devices of a fleet, as names and values. Devices show each other theirs when they meet, and the first
//! that differs is told by its name.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::wire::Malformed;

/// More settings than a configuration has.
const MOST_SETTINGS: usize = 100;

/// The longest name or value, in bytes.
const LONGEST: usize = 200;

/// The longest list as it is sent: what is longer than 127 bytes has two bytes for its length.
pub(crate) const MOST_BYTES: usize = MOST_SETTINGS * 2 * (LONGEST + 2);

/// Settings by name, in an order that all share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSettings(Vec<(String, String)>);

/// What stands for all settings where a device signs what it found by them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Fingerprint([u8; 32]);

/// A setting that two devices do not share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Difference {
    /// The key of the setting in a configuration, such as `training.steps`.
    pub setting: String,
    /// Its value on this device, if it is there.
    pub here: Option<String>,
    /// Its value on the other device, if it is there.
    pub there: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &Option<String>| match value {
            Some(value) => format!("{value:?}"),
            None => "nothing".to_owned(),
        };
        let Difference { setting, here, there } = self;
        write!(f, "{setting} differs: {} here, {} there", shown(here), shown(there))
    }
}

impl SharedSettings {
    /// Of names and values. A long value is cut, and its SHA-256 stands for the rest.
    pub fn new(settings: impl IntoIterator<Item = (String, String)>) -> SharedSettings {
        let short = |(name, value): (String, String)| (name, shortened(value));
        SharedSettings(settings.into_iter().map(short).collect())
    }

    /// The first setting that differs, in this device's order; then what only the other has.
    pub fn difference(&self, other: &SharedSettings) -> Option<Difference> {
        let value = |of: &SharedSettings, name: &str| {
            of.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
        };
        let names = self.0.iter().chain(&other.0).map(|(name, _)| name);
        let differing = |name: &String| {
            let (here, there) = (value(self, name), value(other, name));
            (here != there).then(|| Difference { setting: name.clone(), here, there })
        };
        names.into_iter().find_map(differing)
    }

    /// Equal for devices that share all settings, in whatever order these are listed.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut sorted: Vec<&(String, String)> = self.0.iter().collect();
        sorted.sort_unstable();
        let bytes = postcard::to_allocvec(&sorted).unwrap_or_default();
        Fingerprint(Sha256::digest(&bytes).into())
    }

    pub(crate) fn check(&self) -> Result<(), Malformed> {
        let fits = |(name, value): &(String, String)| name.len().max(value.len()) <= LONGEST;
        match self.0.len() <= MOST_SETTINGS && self.0.iter().all(fits) {
            true => Ok(()),
            false => Err(Malformed::Absurd("more settings than there are, or longer ones")),
        }
    }
}

fn shortened(value: String) -> String {
    if value.len() <= LONGEST {
        return value;
    }
    let digest = Sha256::digest(value.as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let bytes = value.len();
    let rest = format!("… ({bytes} bytes, SHA-256 {digest}…)");
    let most = (0..=LONGEST - rest.len()).rev().find(|&at| value.is_char_boundary(at));
    format!("{}{rest}", &value[..most.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str)]) -> SharedSettings {
        SharedSettings::new(of.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())))
    }

    #[test]
    fn the_first_setting_that_differs_is_named() {
        let own = settings(&[("seed", "3"), ("data.classes", "calm, storm"), ("x", "1")]);
        assert_eq!(own.difference(&own), None);
        let other = settings(&[("seed", "3"), ("data.classes", "storm, calm"), ("x", "2")]);
        let told = own.difference(&other).map(|d| d.to_string());
        let expected = r#"data.classes differs: "calm, storm" here, "storm, calm" there"#;
        assert_eq!(told.as_deref(), Some(expected));
        let fewer = settings(&[("seed", "3"), ("data.classes", "calm, storm")]);
        let told = fewer.difference(&own).map(|d| d.to_string());
        assert_eq!(told.as_deref(), Some(r#"x differs: nothing here, "1" there"#));
        assert!(own.difference(&fewer).is_some());
    }

    #[test]
    fn long_values_are_cut_and_still_differ() {
        let long =
            |last: &str| settings(&[("data.columns", &(format!("{}ü", "a, ".repeat(99)) + last))]);
        assert!(long("x").check().is_ok());
        assert!(long("x").difference(&long("y")).is_some());
        assert_eq!(long("x").difference(&long("x")), None);
        let told = long("x").difference(&long("y")).map(|d| d.to_string()).unwrap_or_default();
        assert!(told.contains("… (300 bytes, SHA-256 "), "{told}");
        // What others send is not cut, but refused.
        assert!(SharedSettings(vec![("a".to_owned(), "b".repeat(LONGEST + 1))]).check().is_err());
        assert!(SharedSettings(vec![Default::default(); MOST_SETTINGS + 1]).check().is_err());
    }
}
