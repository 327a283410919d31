//! The list of everything that is built into the program, as CycloneDX 1.5 writes it: name, version, licence and checksum of every package.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::dist::said;
use crate::steps::{Failure, cargo};

/// The package that the program is made from.
const PROGRAM: &str = "stlf-cli";

/// The list for the program of this version.
pub(crate) fn of(root: &Path, version: &str) -> Result<String, Failure> {
    let failure = |message: String| Failure { message, again: "cargo metadata --locked".into() };
    let manifest = root.join("Cargo.toml");
    let manifest = manifest.to_string_lossy();
    let ask = ["metadata", "--format-version", "1", "--locked", "--manifest-path", &manifest];
    let metadata = said(Path::new(&cargo()), &ask)?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|e| failure(e.to_string()))?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|e| failure(format!("Cargo.lock: {e}")))?;
    let checksums = checksums(&lock).map_err(|e| failure(format!("Cargo.lock: {e}")))?;
    let list = list(&metadata, &checksums, version);
    serde_json::to_string_pretty(&list).map(|text| text + "\n").map_err(|e| failure(e.to_string()))
}

/// The checksum of each package by name and version; our own have none.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>, toml::de::Error> {
    let table: toml::Table = lock.parse()?;
    let packages = table.get("package").and_then(toml::Value::as_array);
    let of = |package: &toml::Value| {
        let text = |key: &str| package.get(key)?.as_str().map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.into_iter().flatten().filter_map(of).collect())
}

fn list(metadata: &Value, checksums: &BTreeMap<(String, String), String>, version: &str) -> Value {
    let needed = needed(metadata);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let components: Vec<Value> = packages
        .filter(|package| {
            package["id"].as_str().is_some_and(|id| needed.contains(id))
                && package["name"] != PROGRAM
        })
        .map(|package| component(package, checksums))
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "stlf", "version": version } },
        "components": components,
    })
}

/// The packages that the program is built from: not those that only tests or builds need.
fn needed(metadata: &Value) -> BTreeSet<&str> {
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let by_id: BTreeMap<&str, &Value> =
        nodes.filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut left: Vec<&str> =
        packages.filter(|p| p["name"] == PROGRAM).filter_map(|p| p["id"].as_str()).collect();
    let mut needed = BTreeSet::new();
    while let Some(id) = left.pop() {
        if !needed.insert(id) {
            continue;
        }
        let Some(node) = by_id.get(id) else { continue };
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            let is_built_in = kinds.into_iter().any(|kind| kind["kind"].is_null());
            left.extend(dependency["pkg"].as_str().filter(|_| is_built_in));
        }
    }
    needed
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let mut component = json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
    });
    if let Some(license) = package["license"].as_str() {
        // Old packages write a slash for OR.
        let license = license.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": license }]);
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_listed_and_what_only_tests_need_is_not() {
        let metadata = json!({
            "packages": [
                { "id": "a", "name": PROGRAM, "version": "1.0.0" },
                { "id": "b", "name": "boat", "version": "2.0.0", "license": "MIT/Apache-2.0" },
                { "id": "c", "name": "crab", "version": "3.0.0", "license": "MIT" },
                { "id": "d", "name": "dock", "version": "4.0.0", "license": "MIT" },
            ],
            "resolve": { "nodes": [
                { "id": "a", "deps": [
                    { "pkg": "b", "dep_kinds": [{ "kind": null }] },
                    { "pkg": "d", "dep_kinds": [{ "kind": "dev" }] },
                ]},
                { "id": "b", "deps": [{ "pkg": "c", "dep_kinds": [{ "kind": "build" }, { "kind": null }] }] },
                { "id": "c", "deps": [] },
                { "id": "d", "deps": [] },
            ]},
        });
        let lock = "[[package]]\nname = \"boat\"\nversion = \"2.0.0\"\nchecksum = \"abc\"\n\
                    [[package]]\nname = \"stlf-cli\"\nversion = \"1.0.0\"\n";
        let list = list(&metadata, &checksums(lock).unwrap(), "1.0.0");
        let names: Vec<&str> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["boat", "crab"]);
        let boat = &list["components"][0];
        assert_eq!(boat["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(boat["hashes"][0]["content"], "abc");
        assert!(list["components"][1].get("hashes").is_none());
    }
}
