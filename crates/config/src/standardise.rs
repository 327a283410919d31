//! `data.standardise` as users write it: by whose values features are scaled. `true` and `false` are what the key was once.

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use stlf_data::features::Scale;

pub(crate) fn serialize<S: Serializer>(
    scale: &Option<Scale>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match scale {
        Some(scale) => serializer.serialize_str(scale.name()),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Scale>, D::Error> {
    deserializer.deserialize_any(AsWritten).map(Some)
}

struct AsWritten;

impl Visitor<'_> for AsWritten {
    type Value = Scale;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Scale::ALL.map(|scale| format!("`{}`", scale.name()));
        write!(to, "one of {} for data.standardise", names.join(", "))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Scale, E> {
        let known = Scale::ALL.into_iter().find(|scale| scale.name() == name);
        // In serde's words for such an error, from which it follows what was likely meant.
        known.ok_or_else(|| {
            let expected: &dyn serde::de::Expected = &self;
            E::custom(format!("unknown scale `{name}`, expected {expected}"))
        })
    }

    fn visit_bool<E: Error>(self, whole_table: bool) -> Result<Scale, E> {
        Ok(if whole_table { Scale::Fleet } else { Scale::None })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Config;

    fn written(value: &str) -> Result<Config, crate::Error> {
        Config::parse(&format!("[data]\nstandardise = {value}\n"), Path::new("a.toml"))
    }

    #[test]
    fn scales_have_names_and_the_old_values_still_count() {
        let cases = [
            ("fleet", Scale::Fleet),
            ("own", Scale::Own),
            ("both", Scale::Both),
            ("none", Scale::None),
            ("true", Scale::Fleet),
            ("false", Scale::None),
        ];
        for (value, scale) in cases {
            let quoted =
                if matches!(value, "true" | "false") { value } else { &format!("{value:?}") };
            let config = written(quoted).unwrap();
            assert_eq!(config.data.standardise, Some(scale));
            let told = Config::default().with([format!("data.standardise={value}").as_str()]);
            assert_eq!(told.unwrap(), config);
            let line = format!("\nstandardise = \"{}\"\n", scale.name());
            assert!(config.to_toml().unwrap().contains(&line));
        }
        assert_eq!(Config::default().data.standardise, None);
    }

    #[test]
    fn errors_name_the_key_and_the_scales() {
        let error = written("\"onw\"").unwrap_err();
        let expected = "a.toml, line 2: unknown scale `onw`, expected one of `fleet`, `own`, `both`, `none` for data.standardise";
        assert_eq!(
            (error.to_string().as_str(), error.hint()),
            (expected, Some("did you mean own?"))
        );
        let error = Config::default().with(["data.standardise=onw"]).unwrap_err();
        assert!(
            error.to_string().starts_with("-c: data.standardise=onw: unknown scale"),
            "{error}"
        );
        assert_eq!(error.hint(), Some("did you mean own?"));
        let error = written("3").unwrap_err().to_string();
        assert!(error.ends_with("`both`, `none` for data.standardise, found 3"), "{error}");
    }
}
