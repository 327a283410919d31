use std::ops::ControlFlow;

use stlf_data::Dataset;

use super::super::Options;
use super::*;

#[test]
fn a_device_with_labels_of_its_own_sees_what_all_others_see() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        data: None,
        seeds: 1,
        quick: true,
        paper_faithful: false,
        settings: vec!["MM".to_owned()],
    };
    let lab = Lab {
        options: &options,
        folder: &Folder::open(folder.path()).unwrap(),
        heard: &|_, _, _| {},
        observer: &|_| ControlFlow::Continue(()),
    };
    let spec = super::super::spec::of(Artifact::Strangers);
    let case = cases(&spec, &lab).unwrap()[0];
    let data = |kind: Kind| -> Dataset {
        let config = case.config(kind, &lab).with(["data.samples=20"]).unwrap();
        load(&config).unwrap()
    };
    let (others, own) = (data(Kind::Views), data(Kind::OwnLabels));
    assert_eq!(own.shape(), others.shape());
    // The samples of the unseen domain are the last ones of all.
    let unseen: Vec<usize> = (others.len() - own.len()..others.len()).collect();
    assert_eq!(own.inputs(&(0..own.len()).collect::<Vec<_>>()), others.inputs(&unseen));
}
