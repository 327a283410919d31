//! Which settings all devices must share.

use stlf_config::Config;
use stlf_data::Shape;
use stlf_data::features::Scale;
use stlf_protocol::shared::SharedSettings;

fn of(changes: &[&str], classes: [&str; 2]) -> SharedSettings {
    let config = Config::default().with(changes.iter().copied()).unwrap();
    let classes = classes.map(str::to_owned);
    let scale = config.data.standardise.unwrap_or(Scale::Own);
    let columns = config.feature_columns().unwrap();
    let shape = Shape::grey(28);
    let shared = config.shared(shape, scale, columns.as_deref(), &classes, config.seeds[0]);
    SharedSettings::new(shared.unwrap())
}

#[test]
fn what_takes_effect_is_compared_and_what_is_a_devices_own_is_not() {
    let own = of(&[], ["calm", "storm"]);
    for same in [
        vec!["data.samples=7", "data.folder=elsewhere", "partition.devices=3"],
        vec!["seeds=[0, 9]", "compare.methods=[\"st-lf\"]"],
        vec!["planner.phi-s=1", "planner.phi-t=1.0", "planner.liars=0"],
        vec!["training.augment=both", "training.steps=20000", "planner.handovers=true"],
        vec!["divergence.estimator=means", "divergence.features=64"],
        vec!["divergence.accept=\"others can rebuild my samples\""],
    ] {
        assert_eq!(own.difference(&of(&same, ["calm", "storm"])), None, "{same:?}");
    }
    let private = |budget: &str| {
        let privacy = format!("divergence.privacy={{epsilon=1,delta=1e-5{budget}}}");
        of(&[&privacy], ["calm", "storm"])
    };
    assert_eq!(private("").difference(&private(",budget=3")), None);
    for (change, setting) in [
        ("seeds=[4]", "seeds"),
        ("training.steps=7", "training.steps"),
        ("training.model=mlp", "training.model"),
        ("training.augment=none", "training.augment"),
        ("divergence.features=78", "divergence.features"),
        ("divergence.bandwidth=3", "divergence.bandwidth"),
        ("divergence.estimator=discriminant", "divergence.estimator"),
        ("planner.phi-e=0.3", "planner.phi-e"),
        ("planner.combine=parameters", "planner.combine"),
        ("planner.handovers=false", "planner.handovers"),
        ("planner.liars=1", "planner.liars"),
        ("planner.all-links=true", "planner.all-links"),
        ("planner.time-limit=3", "planner.time-limit"),
        ("energy.model=radio", "energy.model"),
        ("transfer.adapt=off", "transfer.adapt"),
    ] {
        let differs = own.difference(&of(&[change], ["calm", "storm"])).unwrap();
        assert_eq!(differs.setting, setting);
    }
    let differs = own.difference(&of(&[], ["storm", "calm"])).unwrap();
    let expected = r#"data.classes differs: "calm, storm" here, "storm, calm" there"#;
    assert_eq!(differs.to_string(), expected);
}

#[test]
fn columns_count_in_their_order_and_so_does_their_scale() {
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, text: &str, changes: &[&str]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let features = format!("data.features={}", path.display());
        of(&[&[features.as_str()], changes].concat(), ["a", "b"])
    };
    let table = |name: &str, text: &str| with(name, text, &[]);
    let own = table("1.csv", "label,wind,wave\na,1,2\n");
    assert_eq!(own.difference(&table("2.csv", "wind,label,wave\n3,b,4\n")), None);
    let differs = own.difference(&table("3.csv", "label,wave,wind\na,2,1\n")).unwrap();
    let expected = r#"data.columns differs: "wind, wave" here, "wave, wind" there"#;
    assert_eq!(differs.to_string(), expected);
    let scaled = |change: &str| with("4.csv", "label,wind,wave\na,1,2\n", &[change]);
    assert_eq!(own.difference(&scaled("data.standardise=own")), None);
    let differs = own.difference(&scaled("data.standardise=false")).unwrap();
    assert_eq!(differs.to_string(), r#"data.standardise differs: "own" here, "none" there"#);
    // Rows that are readings are another matter than rows that are samples, and so are other windows.
    let window = scaled("data.window=8");
    let differs = own.difference(&window).unwrap();
    assert_eq!(differs.to_string(), r#"data.window differs: "none" here, "8" there"#);
    let with_stride =
        |stride: &str| with("4.csv", "label,wind,wave\na,1,2\n", &["data.window=8", stride]);
    assert_eq!(window.difference(&with_stride("data.stride=8")), None);
    let differs = window.difference(&with_stride("data.stride=4")).unwrap();
    assert_eq!(differs.to_string(), r#"data.stride differs: "8" here, "4" there"#);
}
