//! Tests of configurations as users write them.

use stlf_data::features::Scale;
use stlf_method::divergence::Embedding;

use super::*;

#[test]
fn the_template_is_the_default() {
    let config = Config::parse(TEMPLATE, Path::new("t")).unwrap();
    assert_eq!(config, Config::default());
    // Every key that is commented out is one that exists.
    let uncommented: String = TEMPLATE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key) if key.contains(" = ") => format!("{key}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert_eq!(uncommented.matches("\n#").count(), 0);
    toml::from_str::<Config>(&uncommented).unwrap();
}

#[test]
fn written_and_read_again_it_is_the_same() {
    let config = Config::default();
    assert_eq!(Config::parse(&config.to_toml().unwrap(), Path::new("t")).unwrap(), config);
}

#[test]
fn what_the_planner_can_be_told_has_the_names_of_the_template() {
    let told = |preset, bound, solver, combine| {
        let changes = [
            format!("planner.preset={preset}"),
            format!("planner.bound={bound}"),
            format!("planner.solver={solver}"),
            format!("planner.combine={combine}"),
        ];
        let config = Config::default().with(changes.iter().map(String::as_str)).unwrap();
        let written = config.to_toml().unwrap();
        for (key, name) in
            [("preset", preset), ("bound", bound), ("solver", solver), ("combine", combine)]
        {
            assert!(written.contains(&format!("\n{key} = \"{name}\"\n")), "{written}");
        }
    };
    told("balanced", "pooled", "exact", "predictions");
    told("paper", "paper", "successive", "corrected");
    told("paper", "paper", "successive", "parameters");
}

#[test]
fn changes_on_the_command_line_win() {
    let config = Config::default()
        .with([
            "training.steps=7",
            "seeds=[3]",
            "data.domains=[\"usps\"]",
            "divergence.estimator=classifier",
        ])
        .unwrap();
    assert_eq!((config.training.steps, &config.seeds[..]), (Some(7), &[3][..]));
    assert_eq!(config.data.domains, ["usps"]);
    assert_eq!(config.divergence.estimator, Some(Estimator::Classifier));
    assert!(Config::default().with(["training.steps"]).is_err());
    let error = Config::default().with(["training.batch=5", "training.steps=many"]).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "-c: training.steps=many: expected a whole number of at least 0, found \"many\""
        ),
        "{error}"
    );
    let dealt = ["partition.kind=dirichlet", "partition.alpha=0.1"];
    assert!(Config::default().with(dealt).is_ok());
    // A key of the partition chooses it; else the data decide.
    assert_eq!(Config::default().partition, None);
    let scaled = Config::default().with(["partition.scale=0.5"]).unwrap();
    assert_eq!(scaled.partition.map(|scheme| scheme.kind()), Some("paper"));
    let error = Config::default().with(["training.stepps=3"]).unwrap_err();
    assert!(
        error.to_string().starts_with("-c: training.stepps=3: unknown field `stepps`"),
        "{error}"
    );
}

#[test]
fn devices_publish_means_unless_told_and_consent_is_a_sentence() {
    let shape = stlf_data::Shape::grey(28);
    let by = |changes: &[&str]| Config::default().with(changes.iter().copied()).unwrap();
    let settings = |changes: &[&str]| by(changes).divergence.settings(Embedding::Inputs, shape);
    let means = stlf_method::divergence::sketch::Settings::means(shape);
    assert_eq!(settings(&[]), stlf_method::divergence::Settings::Sketch(means));
    let moments = stlf_method::divergence::discriminant::Settings::default();
    let moments = stlf_method::divergence::Settings::Discriminant(moments);
    assert_eq!(settings(&["divergence.estimator=discriminant"]), moments);
    let sentence = stlf_method::divergence::disclosure::ACCEPTED;
    let said = format!("divergence.accept=\"{sentence}\"");
    assert!(by(&[&said]).divergence.accepts_disclosure());
    assert!(!Config::default().divergence.accepts_disclosure());
    let other = Config::default().with(["divergence.accept=\"yes\""]).unwrap_err();
    assert!(other.to_string().contains(sentence), "{other}");
}

#[test]
fn windows_have_a_network_along_the_time() {
    let config = |changes: &[&str]| {
        let windows = ["data.features=a.csv", "data.window=64"];
        Config::default().with(windows.iter().chain(changes).copied()).unwrap()
    };
    let shape = Shape { channels: 3, height: 1, width: 64 };
    let of = |config: Config, shape| config.network(shape, 4).map_err(|e| e.to_string());
    assert_eq!(of(config(&[]), shape), Ok(Spec::series_cnn(3, 64, 4).unwrap()));
    assert_eq!(of(config(&["training.model=mlp"]), shape), Ok(Spec::mlp(shape, 4).unwrap()));
    let short = of(config(&["data.window=7"]), Shape { width: 7, ..shape }).unwrap_err();
    assert!(short.contains("windows of at least 8 readings, not 7"), "{short}");
    assert_eq!(config(&[]).training(shape).unwrap().augment, Augment::None);
    let windows = |config: Config| config.data.windows().map(|w| (w.length, w.stride));
    assert_eq!(windows(config(&[])), Some((64, 64)));
    assert_eq!(windows(config(&["data.stride=16"])), Some((64, 16)));
    let scale = |config: Config| config.data.scale();
    assert_eq!((scale(config(&[])), scale(Config::default())), (Some(Scale::Own), None));
    assert_eq!(scale(config(&["data.standardise=fleet"])), Some(Scale::Fleet));
}

#[test]
fn coloured_pictures_are_grey_where_that_is_asked_for() {
    let channels = |changes: &[&str]| {
        let textured = ["data.domains=[\"strokes-textured\"]", "data.samples=20"];
        let config = Config::default().with(textured.iter().chain(changes).copied()).unwrap();
        crate::fleet::load(&config).unwrap().shape().channels
    };
    assert_eq!((channels(&[]), channels(&["data.colour=grey"])), (3, 1));
}

#[test]
fn pictures_of_28_to_96_pixels_have_a_convolutional_network() {
    let of = |channels, height, width| {
        let shape = Shape { channels, height, width };
        Config::default().network(shape, 4).map_err(|e| e.to_string())
    };
    for side in [28, 32, 64, 96] {
        let shape = Shape { channels: 3, height: side, width: side };
        assert_eq!(of(3, side, side), Ok(Spec::cnn(shape, 4).unwrap()));
    }
    for (height, width) in [(27, 28), (97, 96), (64, 224)] {
        let told = format!(
            "the cnn takes pictures of 28 to 96 pixels a side, not 1×{height}×{width}; \
             set data.image-size = 28 to resize them (or 32, 64, 96, which take longer), or use model = \"mlp\""
        );
        assert_eq!(of(1, height, width), Err(told));
    }
    let table = of(1, 1, 40).unwrap_err();
    assert!(table.ends_with("not 1×1×40; use model = \"mlp\""), "{table}");
}

#[test]
fn errors_name_the_line_and_what_was_meant() {
    let error = Config::parse("\n[training]\nstep = 3\n", Path::new("a.toml")).unwrap_err();
    assert!(error.to_string().starts_with("a.toml, line 3: unknown field `step`"), "{error}");
    assert_eq!(error.hint(), Some("did you mean steps?"));
    let error = Config::parse("[partition]\ndevices = 3", Path::new("a.toml")).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("kind = \"paper\"")), "{error}");
    for (text, part) in [
        ("seeds = []", "seeds: the list is empty"),
        ("seeds = [1, 1]", "listed twice"),
        ("[training]\nheld-out = 1.0", "held-out"),
        ("[training]\nbatch = 0", "batch"),
        (
            "[training]\naugment = \"convolution\"",
            "`convolution`, expected one of `none`, `shift`, `convolutions`, `both`",
        ),
        (
            "[data]\nfeatures = \"a.csv\"\n[training]\naugment = \"shift\"",
            "training.augment: shift is for pictures, and data.features is a table",
        ),
        ("[data]\nimage-size = 28", "data.image-size: is only for a folder of pictures"),
        ("[data]\nimages = \"p\"\nimage-size = 0", "data.image-size: 0 is not between 1"),
        ("[data]\ncolour = \"gray\"", "`gray`, expected `grey` or `rgb`"),
        (
            "[data]\nfeatures = \"a.csv\"\ncolour = \"grey\"",
            "data.colour: is for pictures, and data.features is a table",
        ),
        ("[data]\nwindow = 9", "data.window: is only for a table of readings"),
        ("[data]\nfeatures = \"a.csv\"\nwindow = 0", "data.window: is not between 1"),
        ("[data]\nfeatures = \"a.csv\"\nwindow = 9\nstride = 0", "data.stride: is not between 1"),
        ("[data]\nfeatures = \"a.csv\"\nstride = 9", "data.stride: is only for windows"),
        ("[data]\nfeatures = \"a.csv\"\ntime = \"t\"", "data.time: is only for windows"),
        ("[compare]\nmethods = [\"fedvag\"]", "compare.methods"),
        ("[divergence]\nrounds = 3", "rounds is only for estimator = \"classifier\""),
        (
            "[divergence]\nestimator = \"classifier\"\nnearest = 3",
            "nearest is only for estimator = \"means\"",
        ),
        ("[divergence]\nfeatures = 3", "divergence.features: 3"),
        ("[compare.fada]\nsteps = 0", "fada.steps: must be at least 1"),
        ("[energy]\nmodel-bits = -1.0", "energy.model-bits: -1"),
        (
            "[transfer]\nask = 3\nadapt = \"off\"",
            "transfer.ask: targets that train no students make nothing of labels",
        ),
        ("[planner]\nbound = \"poled\"", "line 2"),
        ("[planner]\npreset = \"papr\"", "`papr`, expected `balanced` or `paper`"),
        ("[planner]\nbound = \"poled\"", "`poled`, expected `pooled` or `paper`"),
        ("[planner]\ncalibration = 1.5", "planner.calibration: 1.5 is not above 0 and at most 1"),
        (
            "[planner]\nall-links = true\nbound = \"paper\"",
            "planner.all-links: under the paper's bound a target takes one model",
        ),
        (
            "[planner]\nall-links = true\nsolver = \"successive\"",
            "planner.all-links: the successive search does not weigh models by samples",
        ),
        (
            "[planner]\nall-links = true\nhandovers = true",
            "planner.all-links: sources send their own models, so leave out planner.handovers",
        ),
        ("[planner]\nsolver = \"exakt\"", "`exakt`, expected `exact` or `successive`"),
        (
            "[planner]\ncombine = \"mix\"",
            "`mix`, expected one of `predictions`, `corrected`, `parameters`",
        ),
    ] {
        let error = Config::parse(text, Path::new("a.toml")).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
