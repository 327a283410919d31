//! The page: one HTML file with everything in it.

use super::Document;

const SKELETON: &str = include_str!("../page/page.html");

/// The style sheet of all pages.
pub const STYLE: &str = include_str!("../page/page.css");

/// The scripts of the page, in the order in which they run.
const SCRIPTS: &[&str] = &[
    include_str!("../page/10-data.js"),
    include_str!("../page/15-words.js"),
    include_str!("../page/20-draw.js"),
    include_str!("../page/25-table.js"),
    include_str!("../page/28-choices.js"),
    include_str!("../page/30-layout.js"),
    include_str!("../page/32-fleet.js"),
    include_str!("../page/33-handovers.js"),
    include_str!("../page/34-devices.js"),
    include_str!("../page/36-explain.js"),
    include_str!("../page/40-heat.js"),
    include_str!("../page/50-objective.js"),
    include_str!("../page/60-methods.js"),
    include_str!("../page/65-compare.js"),
    include_str!("../page/70-frontier.js"),
    include_str!("../page/80-targets.js"),
    include_str!("../page/82-settings.js"),
    include_str!("../page/84-server.js"),
    include_str!("../page/86-edit.js"),
    include_str!("../page/87-fields.js"),
    include_str!("../page/90-main.js"),
];

/// The page of a document. It needs no network, and holds no text of the data outside of its JSON.
pub fn html(document: &Document) -> String {
    // A JSON text that no HTML parser sees the end of the script in.
    let data = serde_json::to_string(document).unwrap_or_default().replace('<', "\\u003c");
    let title = document.title.replace('&', "&amp;").replace('<', "&lt;");
    let script = SCRIPTS.concat();
    // Each placeholder is filled in the skeleton alone: what is filled in may hold the others' names.
    let mut page = String::with_capacity(data.len() + script.len() + STYLE.len() + SKELETON.len());
    let mut rest = SKELETON;
    let parts = [
        ("{{title}}", &*title),
        ("{{style}}", STYLE),
        ("{{data}}", &*data),
        ("{{script}}", &*script),
    ];
    while let Some((at, name, text)) = parts
        .iter()
        .filter_map(|(name, text)| rest.find(name).map(|at| (at, *name, *text)))
        .min_by_key(|(at, ..)| *at)
    {
        page.push_str(&rest[..at]);
        page.push_str(text);
        rest = &rest[at + name.len()..];
    }
    page.push_str(rest);
    page
}
