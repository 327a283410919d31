//! A device whose disk is full says so, and the others finish. The disk is a small file system in memory that the test makes;
//! skipped, with a printed reason, where it cannot.

use crate::common::fleet::{Fleet, SMALL};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTIONS: [&str; 4] = ["--settle", "0.5", "--patience", "4"];

struct Disk {
    path: PathBuf,
}

impl Disk {
    /// So many bytes, seen at a path.
    fn make(path: &Path, size: &str) -> Option<Disk> {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={size}");
        let made = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "stlf-test"])
            .arg(path)
            .output();
        if made.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Disk { path: path.to_owned() });
        }
        stlf_testing::skip(format!("no file system can be made: {made:?}"));
        None
    }

    /// Fills the disk, so that no byte more can be written.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.path.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        while file.write_all(&[0]).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.path.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).output();
    }
}

/// Four devices of which the disk of the last is full, and the epoch that the others complete without it; nothing where no disk can be made.
fn three_go_on_without_a_full_disk(host: &str) -> Option<(Fleet, Disk, u64)> {
    let mut fleet = Fleet::on(host, 4, 4, SMALL);
    let disk = Disk::make(&fleet.path("node-4"), "16m")?;
    fleet.start(4, &OPTIONS);
    fleet.wait_for_words(4, 0, "listening on");
    disk.fill();
    (1..=3).for_each(|k| fleet.start(k, &OPTIONS));
    let epoch = fleet.wait_for(&[1, 2, 3], 3, 0);
    fleet.wait_for_words(4, 0, "No space left on device");
    Some((fleet, disk, epoch))
}

#[test]
fn with_a_disk_that_gets_full_the_others_finish_and_it_comes_back_with_room() {
    let Some((mut fleet, disk, epoch)) = three_go_on_without_a_full_disk("127.0.8.5") else {
        return;
    };
    disk.empty();
    fleet.kill(4);
    fleet.start(4, &OPTIONS);
    fleet.wait_for(&[1, 2, 3, 4], 4, epoch);
    fleet.one_plan(&[1, 2, 3, 4]);
}

#[test]
fn once_there_is_room_again_it_needs_no_restart() {
    let Some((fleet, disk, epoch)) = three_go_on_without_a_full_disk("127.0.8.42") else { return };
    disk.empty();
    fleet.wait_for(&[1, 2, 3, 4], 4, epoch);
    fleet.one_plan(&[1, 2, 3, 4]);
}

#[test]
fn with_no_room_at_all_it_does_not_start_and_says_why() {
    let mut fleet = Fleet::on("127.0.8.6", 3, 3, SMALL);
    let Some(disk) = Disk::make(&fleet.path("node-3"), "64k") else { return };
    disk.fill();
    let options = [&OPTIONS[..], &["--wait", "3"]].concat();
    (1..=3).for_each(|k| fleet.start(k, &options));
    assert!(!fleet.has_left_well(3));
    assert!(fleet.log(3).contains("No space left on device"), "{}", fleet.log(3));
    fleet.wait_for(&[1, 2], 2, 0);
}
