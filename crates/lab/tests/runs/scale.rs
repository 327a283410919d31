//! Tables whose devices measure in units of their own.

use std::ops::ControlFlow;

use stlf_config::Config;
use stlf_lab::run;

/// A source and a target that measure the same in other units and from another zero; the class follows from which of two numbers
/// is the larger.
fn table() -> String {
    let mut rows = "device,label,x,y\n".to_owned();
    for (device, times, plus) in [("here", 1.0, 0.0), ("there", 1000.0, 5.0)] {
        for k in 0..200 {
            let (x, y) = (((k * 37) % 101) as f64, ((k * 53) % 103) as f64);
            let label = if x > y { "calm" } else { "storm" };
            rows += &format!("{device},{label},{},{}\n", x * times + plus, y * times + plus);
        }
    }
    rows
}

#[test]
fn own_scales_bring_devices_together_and_both_train_on_twice_the_features() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, table()).unwrap();
    let accuracy = |scale: &str| {
        let changes = [
            &format!("data.features={}", path.display()),
            &format!("data.standardise={scale}"),
            "seeds=[3]",
            "partition.kind=by-domain",
            "partition.labeled=[1, 0]",
            "training.model=mlp",
            "training.steps=600",
            "divergence.features=16",
            "compare.methods=[\"st-lf\"]",
        ];
        let config = Config::default().with(changes).unwrap();
        let to = folder.path().join(scale);
        let outcome = run(&config, &to, &|_| ControlFlow::Continue(())).unwrap();
        let [row] = &outcome.rows[..] else { panic!("one target: {:?}", outcome.rows) };
        let model = std::fs::metadata(to.join("seed-3/models/here.safetensors")).unwrap().len();
        (row.accuracy.unwrap(), model)
    };
    let (fleet, model) = accuracy("fleet");
    let (own, _) = accuracy("own");
    assert!(own > 0.9 && fleet < 0.7, "own {own}, fleet {fleet}");
    let (both, larger) = accuracy("both");
    assert!((0.0..=1.0).contains(&both));
    // Two inputs more into each of 64 hidden units, at four bytes.
    assert_eq!(larger - model, 2 * 64 * 4);
}
