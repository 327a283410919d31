//! What must be the same on all devices of a fleet, of a configuration and of the data that it names.

use stlf_config::Config;
use stlf_data::{Shape, features};
use stlf_method::divergence;
use stlf_protocol::shared::SharedSettings;
use toml::Value;

use super::super::run_args::failure;
use crate::error::Failure;

/// The sections that all devices follow. `[data]` and `[partition]` are each device's own, and `[compare]` is for the simulator.
const SECTIONS: [&str; 4] = ["training", "divergence", "energy", "planner"];

/// Everything that must be the same everywhere, as it takes effect: a default that is written out is no difference.
pub(super) fn settings(
    config: &Config,
    shape: Shape,
    classes: &[String],
    seed: u64,
) -> Result<SharedSettings, Failure> {
    let mut settings = vec![
        ("seeds".to_owned(), seed.to_string()),
        ("data.classes".to_owned(), classes.join(", ")),
        ("data.shape".to_owned(), shape.to_string()),
    ];
    let data = &config.data;
    if let Some(table) = data.features.as_ref().filter(|_| data.images.is_none()) {
        let options =
            features::Options { label: data.label.clone(), ..features::Options::default() };
        let columns = features::columns(table, &options).map_err(|e| failure(&e.into()))?;
        settings.push(("data.columns".to_owned(), columns.join(", ")));
        settings.push(("data.standardise".to_owned(), data.standardise.to_string()));
    }
    let table = toml::Table::try_from(in_effect(config, shape));
    let table = table.map_err(|e| Failure::input(format!("the configuration: {e}")))?;
    for section in SECTIONS {
        if let Some(value) = table.get(section) {
            flatten(section, value, &mut settings);
        }
    }
    // Where it differs, so do others that follow from it, and it is the one to name.
    settings.sort_by_key(|(name, _)| name != "divergence.estimator");
    Ok(SharedSettings::new(settings))
}

/// With the defaults of what is left out, and without what each device accepts for itself.
fn in_effect(config: &Config, shape: Shape) -> Config {
    let mut config = config.clone();
    config.divergence = config.divergence.between_devices();
    let measuring = &mut config.divergence;
    measuring.accept = None;
    match measuring.settings(shape) {
        divergence::Settings::Discriminant(settings) => {
            measuring.features = Some(settings.features)
        }
        divergence::Settings::Sketch(settings) => {
            measuring.features = Some(settings.features);
            measuring.bandwidth = settings.bandwidth.known();
        }
        divergence::Settings::Classifier(settings) => {
            measuring.rounds = Some(settings.rounds);
            measuring.steps = Some(settings.steps);
            measuring.repeats = Some(settings.repeats);
        }
    }
    let weights = config.planner.weights();
    config.planner.phi_s = Some(weights.source);
    config.planner.phi_t = Some(weights.target);
    config.planner.phi_e = Some(weights.energy);
    config
}

fn flatten(name: &str, value: &Value, settings: &mut Vec<(String, String)>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                flatten(&format!("{name}.{key}"), value, settings);
            }
        }
        Value::String(text) => settings.push((name.to_owned(), text.clone())),
        other => settings.push((name.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn of(changes: &[&str], classes: [&str; 2]) -> SharedSettings {
        let config = Config::default().with(changes.iter().copied()).unwrap();
        let classes = classes.map(str::to_owned);
        settings(&config, Shape::grey(28), &classes, config.seeds[0]).unwrap()
    }

    #[test]
    fn what_takes_effect_is_compared_and_what_is_a_devices_own_is_not() {
        let own = of(&[], ["calm", "storm"]);
        for same in [
            vec!["data.samples=7", "data.folder=elsewhere", "partition.devices=3"],
            vec!["seeds=[0, 9]", "compare.methods=[\"st-lf\"]"],
            vec!["planner.phi-s=1", "planner.phi-t=1.0"],
            vec!["divergence.estimator=means", "divergence.features=64"],
            vec!["divergence.accept=\"others can rebuild my samples\""],
        ] {
            assert_eq!(own.difference(&of(&same, ["calm", "storm"])), None, "{same:?}");
        }
        for (change, setting) in [
            ("seeds=[4]", "seeds"),
            ("training.steps=7", "training.steps"),
            ("training.model=mlp", "training.model"),
            ("divergence.features=78", "divergence.features"),
            ("divergence.bandwidth=3", "divergence.bandwidth"),
            ("divergence.estimator=discriminant", "divergence.estimator"),
            ("planner.phi-e=0.3", "planner.phi-e"),
            ("planner.combine=parameters", "planner.combine"),
            ("planner.handovers=true", "planner.handovers"),
            ("planner.time-limit=3", "planner.time-limit"),
            ("energy.model=radio", "energy.model"),
        ] {
            let differs = own.difference(&of(&[change], ["calm", "storm"])).unwrap();
            assert_eq!(differs.setting, setting);
        }
        let differs = own.difference(&of(&[], ["storm", "calm"])).unwrap();
        let expected = r#"data.classes differs: "calm, storm" here, "storm, calm" there"#;
        assert_eq!(differs.to_string(), expected);
    }

    #[test]
    fn columns_count_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let table = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            of(&[&format!("data.features={}", path.display())], ["a", "b"])
        };
        let own = table("1.csv", "label,wind,wave\na,1,2\n");
        assert_eq!(own.difference(&table("2.csv", "wind,label,wave\n3,b,4\n")), None);
        let differs = own.difference(&table("3.csv", "label,wave,wind\na,2,1\n")).unwrap();
        let expected = r#"data.columns differs: "wind, wave" here, "wave, wind" there"#;
        assert_eq!(differs.to_string(), expected);
    }
}
