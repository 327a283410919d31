//! One run on several machines: every machine does a shard, and the folders are joined.

use std::path::Path;

use stlf_config::Config;

use crate::data_source;
use crate::folder::copy;
use crate::run::{open, seed_folder};
use crate::{Error, Folder};

/// A shard of a run, for one of several machines.
///
/// With at most as many shards as seeds, a shard is some of the seeds. With more, several shards divide a seed:
/// each trains some of its devices and measures some of its pairs, and the rest, which is quick, is left to whoever
/// joins them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// The number of this shard, counted from 1.
    pub number: usize,
    /// The number of shards that the run has.
    pub of: usize,
}

/// A part of one seed's work: every `of`-th device or row of pairs, from the `number`-th on, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The number of this part, counted from 0.
    pub number: usize,
    /// The number of parts that the work is divided into.
    pub of: usize,
}

impl Block {
    /// The block that has all of the work.
    pub const WHOLE: Block = Block { number: 0, of: 1 };

    /// Returns whether the block has all of the work.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// Returns whether the item with this number is in the block.
    pub fn has(self, item: usize) -> bool {
        item % self.of == self.number
    }
}

impl Shard {
    /// The whole run, as its only shard.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    /// What this shard does: seeds, each with the part of it.
    pub fn units(self, seeds: &[u64]) -> Vec<(u64, Block)> {
        let first = self.number - 1;
        if self.of <= seeds.len() {
            let own = seeds.iter().skip(first).step_by(self.of);
            return own.map(|&seed| (seed, Block::WHOLE)).collect();
        }
        // Shards first, first + seeds, first + 2·seeds … have the same seed.
        let seed = first % seeds.len();
        let of = (self.of - seed).div_ceil(seeds.len());
        vec![(seeds[seed], Block { number: first / seeds.len(), of })]
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts =
            text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((number, of)) if 1 <= number && number <= of => Ok(Shard { number, of }),
            _ => Err("write K/N, such as 3/16".to_owned()),
        }
    }
}

/// Brings the finished stages of several folders of one configuration into one, and returns that configuration.
///
/// # Errors
/// Names the folder whose configuration is another, or that is none.
pub fn merge(parts: &[impl AsRef<Path>], to: &Path) -> Result<Config, Error> {
    let mut config: Option<(Config, String)> = None;
    for part in parts {
        let path = part.as_ref().join("config.toml");
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        match &config {
            None => config = Some((Config::parse(&text, &path)?, text)),
            Some((_, first)) if *first == text => {}
            Some(_) => {
                let message = "this folder holds a run of another configuration";
                return Err(Error::folder(&path, message, "merge only shards of one run"));
            }
        }
    }
    let none = || Error::folder(to, "there is nothing to merge", "name the folders of the shards");
    let (config, _) = config.ok_or_else(none)?;
    let folder = open(&config, to)?;
    for part in parts {
        let part = Folder::open(part.as_ref())?;
        if let Some(data) = part.read(data_source::FILE)? {
            match folder.read(data_source::FILE)? {
                None => folder.write(data_source::FILE, &data)?,
                Some(known) if known == data => {}
                Some(_) => {
                    let message = "this folder holds a run of other data";
                    return Err(Error::folder(
                        part.path(),
                        message,
                        "merge only shards of one run",
                    ));
                }
            }
        }
        for seed in &config.seeds {
            let name = seed_folder(*seed);
            if part.file(&name).is_dir() {
                copy(&part.folder(&name)?, &folder.folder(&name)?)?;
            }
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_everything_once() {
        let seeds = [7, 8, 9];
        for of in 1..=11 {
            let parts: Vec<(u64, Block)> =
                (1..=of).flat_map(|number| Shard { number, of }.units(&seeds)).collect();
            for seed in seeds {
                let blocks: Vec<Block> =
                    parts.iter().filter(|(s, _)| *s == seed).map(|(_, block)| *block).collect();
                for item in 0..20 {
                    assert_eq!(blocks.iter().filter(|b| b.has(item)).count(), 1, "{of} {blocks:?}");
                }
            }
        }
    }
}
