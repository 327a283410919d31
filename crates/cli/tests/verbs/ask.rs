//! Which samples somebody should label, from the command line.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::run;
use crate::predict::Done;

/// Pictures of two devices, of other sizes than the mixture takes: bright ones have a cup. `garden` has no labels.
fn photos(folder: &Path) {
    for k in 0..60u32 {
        let (is_cup, side) = (k % 2 == 0, 9 + k % 3);
        let shade = if is_cup { 150 } else { 60 } + (k * 37 % 40) as u8;
        let class = ["spoon", "cup"][usize::from(is_cup)];
        let place =
            if k % 3 == 0 { "garden/unlabeled".to_owned() } else { format!("kitchen/{class}") };
        let at = folder.join(place);
        std::fs::create_dir_all(&at).unwrap();
        let picture = image::GrayImage::from_pixel(side, side + 1, image::Luma([shade]));
        picture.save(at.join(format!("{k}.png"))).unwrap();
    }
}

/// The cells of a column, in every row.
fn column<'t>(table: &'t str, name: &str) -> Vec<&'t str> {
    let mut lines = table.lines().map(|line| line.split(','));
    let at = lines.next().unwrap().position(|column| column == name).unwrap();
    lines.map(|mut cells| cells.nth(at).unwrap()).collect()
}

#[test]
fn pictures_that_training_resized_are_asked_about_by_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    photos(&folder.path().join("photos"));
    let settings = format!(
        "data.images={} data.image-size=8 seeds=[3] partition.kind=by-domain training.model=mlp training.steps=50 \
         divergence.features=16 compare.methods=[\"st-lf\"]",
        at("photos")
    );
    let ran = run(&["run", "-c", &settings, "--to", &at("run")], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    // The run knows where its pictures are.
    let asked = run(&["ask", &at("run"), "--labels", "99"], "");
    assert_eq!((asked.code, asked.err.as_str()), (0, ""));
    let (files, samples) = (column(&asked.out, "file"), column(&asked.out, "sample"));
    // Of the garden, whose pictures are the first ones, by their names.
    let mut names: Vec<String> = (0..20).map(|k| format!("{}.png", 3 * k)).collect();
    names.sort();
    let garden = |name: &str| folder.path().join("photos/garden/unlabeled").join(name);
    for (file, sample) in files.iter().zip(&samples) {
        assert_eq!(Path::new(file), garden(&names[sample.parse::<usize>().unwrap()]));
    }
    assert_eq!(files.len(), 20);
    let bundle = at("run/seed-3/mixtures/garden");
    // The device's own folder, with its pictures alone.
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::rename(folder.path().join("photos/garden"), own.join("garden")).unwrap();
    let asked = run(&["ask", &bundle, own.to_str().unwrap(), "--labels", "3"], "");
    assert_eq!((asked.code, asked.err.as_str()), (0, ""));
    let files = column(&asked.out, "file");
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| Path::new(file).is_file()), "{files:?}");
    // Pictures in the folder of a class are not asked about.
    for (at, class) in ["cup", "spoon"].into_iter().enumerate() {
        std::fs::create_dir(own.join("garden").join(class)).unwrap();
        let [file, to] = ["unlabeled", class].map(|folder| {
            own.join("garden").join(folder).join(Path::new(files[at]).file_name().unwrap())
        });
        std::fs::rename(file, to).unwrap();
    }
    let rest = run(&["ask", &bundle, own.to_str().unwrap(), "--labels", "99"], "");
    let rest = column(&rest.out, "file");
    assert_eq!(rest.len(), 18);
    assert!(rest.iter().all(|file| file.contains("unlabeled")), "{rest:?}");
}

#[test]
fn a_table_is_written_that_can_be_filled_in() {
    let done = Done::new();
    let (run_folder, asked) = (done.text("run"), done.text("asked.csv"));
    let printed = run(&["ask", &run_folder, "--labels", "4"], "");
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    let lines: Vec<&str> = printed.out.lines().collect();
    assert_eq!(lines[0], "device,sample,file,class,probability,or,label");
    // The one target of the run, whose rows are every third one; nothing is filled in.
    assert_eq!(lines.len(), 5);
    for line in &lines[1..] {
        let cells: Vec<&str> = line.split(',').collect();
        let (sample, probability): (usize, f64) =
            (cells[1].parse().unwrap(), cells[4].parse().unwrap());
        assert!(cells[0] == "d2" && sample % 3 == 2 && (0.5..1.0).contains(&probability), "{line}");
        assert!(cells[3] != cells[5] && cells[2].is_empty() && cells[6].is_empty(), "{line}");
    }
    let written = run(&["ask", &run_folder, "--labels", "4", "-o", &asked], "");
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    assert!(written.out.contains("4 samples. Fill in the column label"), "{}", written.out);
    assert_eq!(std::fs::read_to_string(done.path("asked.csv")).unwrap(), printed.out);

    // A device with its samples beside it asks the same of rows of its own that have no label; what was answered is not asked again.
    let labeled = std::fs::read_to_string(done.path("table.csv")).unwrap();
    let open: String = labeled.lines().map(|row| row.replace(",calm,", ",,") + "\n").collect();
    std::fs::write(done.path("open.csv"), &open).unwrap();
    let [bundle, table] = ["run/seed-3/mixtures/d2", "open.csv"].map(|name| done.text(name));
    let first = run(&["ask", &bundle, &table, "--labels", "2"], "");
    assert_eq!((first.code, first.out.lines().count()), (0, 3), "{}", first.err);
    let filled = first.out.replace(",\n", ",calm\n");
    std::fs::write(done.path("answers.csv"), &filled).unwrap();
    let answers = done.text("answers.csv");
    let next = run(&["ask", &bundle, &table, "--labels", "2", "--answers", &answers], "");
    let of = |text: &str| -> Vec<String> {
        text.lines().skip(1).filter_map(|line| line.split(',').nth(1).map(str::to_owned)).collect()
    };
    assert!(of(&next.out).iter().all(|sample| !of(&first.out).contains(sample)), "{}", next.out);
    let all = run(&["ask", &bundle, &table, "--labels", "999"], "");
    let is_open = |row: &(usize, &str)| row.1.contains(",,");
    let open = open.lines().skip(1).enumerate().filter(is_open).map(|(at, _)| at.to_string());
    assert_eq!(of(&all.out).into_iter().collect::<BTreeSet<_>>(), open.collect());
    // Labels may have another name.
    let renamed = std::fs::read_to_string(done.path("open.csv")).unwrap();
    std::fs::write(done.path("open.csv"), renamed.replacen("label", "weather", 1)).unwrap();
    let weather = ["--labels", "999", "--label-column", "weather"];
    let ask = [&["ask", &bundle, &table], &weather[..]].concat();
    assert_eq!(run(&ask, "").out, all.out);
    let message = done.refused(&ask[..6].iter().copied().chain(["wether"]).collect::<Vec<_>>());
    assert!(message.contains("column \"wether\" is missing"), "{message}");
}

#[test]
fn what_cannot_be_asked_is_said() {
    let done = Done::new();
    let [run_folder, bundle] = ["run", "run/seed-3/mixtures/d2"].map(|name| done.text(name));
    let message = done.refused(&["ask", &bundle]);
    assert!(message.contains("does not hold its samples"), "{message}");
    assert!(message.contains("SAMPLES"), "{message}");
    let message = done.refused(&["ask", &run_folder, "--labels", "0"]);
    assert!(message.contains("--labels: 0 would ask for nothing"), "{message}");
    let message = done.refused(&["ask", &run_folder, "--device", "d9"]);
    assert!(message.contains("there is no mixture of a device \"d9\""), "{message}");
    let message = done.refused(&["ask", &run_folder, "--device", "d0"]);
    assert!(message.contains("there is nothing to ask"), "{message}");
    let message = done.refused(&["ask", &done.text("nowhere")]);
    assert!(message.contains("there is no such folder"), "{message}");
    std::fs::write(done.path("wrong.csv"), "sample,label\n2,strom\n").unwrap();
    let (table, wrong) = (done.text("table.csv"), done.text("wrong.csv"));
    let message = done.refused(&["ask", &run_folder, "-o", &wrong]);
    assert!(message.contains("has answers already"), "{message}");
    assert_eq!(std::fs::read_to_string(&wrong).unwrap(), "sample,label\n2,strom\n");
    let message = done.refused(&["ask", &bundle, &table, "--answers", &wrong]);
    assert!(message.contains("line 2: \"strom\" is not a class of the data"), "{message}");
    assert!(message.contains("did you mean storm?"), "{message}");
}
