//! The page of a device of a real fleet. It has no scripts: the browser loads it again every two seconds.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;
use stlf_lab::report::page::STYLE;
use stlf_node::status::Peer;
use stlf_node::status_file::StatusFile;
use stlf_planning::number_format::{clean, counted, percent, size};

use super::super::node::status::{OWN_SAMPLES, connected, stopped_for, with_cost};
use crate::comparison::ask_for_labels;

/// The log of a device, in its folder.
const EVENTS: &str = "events.jsonl";

/// The most bytes of the log that are looked at, from its end.
const LAST_BYTES: u64 = 1 << 16;

/// The most refusals that are shown.
const MOST_REFUSALS: usize = 10;

/// Returns the last messages that a device refused, with who sent them, the newest first.
pub(super) fn refusals(folder: &Path) -> Vec<String> {
    let Ok(mut file) = std::fs::File::open(folder.join(EVENTS)) else { return Vec::new() };
    let length = file.metadata().map_or(0, |found| found.len());
    let mut bytes = Vec::new();
    let start = SeekFrom::Start(length.saturating_sub(LAST_BYTES));
    if file.seek(start).and_then(|_| file.read_to_end(&mut bytes)).is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let refusal = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let refused = &line["event"]["refused"];
        Some(format!("{}: {}", refused["from"].as_str()?, refused["reason"].as_str()?))
    };
    text.lines().rev().filter_map(refusal).take(MOST_REFUSALS).collect()
}

/// Returns the page of a device, with its latest refusals.
pub(super) fn html(shown: &StatusFile, refusals: &[String]) -> String {
    let status = &shown.status;
    let title = escaped(&format!("{} of {}", status.device, status.fleet));
    let mut notes = Vec::new();
    if let Some(seconds) = stopped_for(shown) {
        notes.push(format!("not running, last seen {seconds:.0} s ago"));
    }
    notes.extend(status.no_plan.iter().map(|reason| format!("there is no plan: {reason}")));
    for peer in &status.devices {
        let name = &peer.name;
        notes.extend(peer.differs.iter().map(|what| format!("{name} takes no part: {what}")));
        notes.extend(peer.absence.iter().map(|absence| format!("{name} {absence}")));
        notes.extend(peer.key_trouble().map(|trouble| format!("{name}: {trouble}")));
    }
    if !status.refuses.is_empty() {
        notes.push(format!("refuses the model of {}", status.refuses.join(", ")));
    }
    for peer in status.devices.iter().filter(|peer| peer.refused_by.len() > 1) {
        let (name, by) = (&peer.name, peer.refused_by.join(", "));
        notes.push(format!("{by} got no usable model from {name}: look at {name}"));
    }
    if !status.waits_for.is_empty() {
        notes.push(format!("waits for the model of {}", status.waits_for.join(", ")));
    }
    notes.extend(shown.data.iter().map(ToString::to_string));
    notes.extend(status.guessing.clone());
    notes.extend(status.warning.iter().map(|warning| ask_for_labels(warning, OWN_SAMPLES)));
    let here = status.devices.iter().filter(|peer| peer.here).count();
    let t = status.traffic;
    let (refused, strangers) = (t.refused as usize, t.turned_away as usize);
    let turned_away = counted(strangers, "stranger");
    let facts = [
        ("devices here", format!("{here} of {}", status.devices.len())),
        ("planner", status.planner.clone().unwrap_or("–".to_owned())),
        ("roster", format!("version {}", status.roster)),
        ("sent", size(t.sent as f64)),
        ("received", size(t.received as f64)),
        ("refused", format!("{}, {turned_away}", counted(refused, "message"))),
    ];
    let protection = shown.protection.iter().map(|p| format!("privacy: {p}")).collect::<String>();
    let expected = status.expected.map(|expected| ("expect", expected.to_string()));
    let cost = shown.student_cost.as_ref();
    let student = status.student.as_ref().map(|told| ("student", with_cost(told, cost)));
    let facts: String = facts.iter().chain(&student).chain(&expected).map(fact).collect();
    let rows: String = status.devices.iter().map(row).collect();
    let now = escaped(&format!("epoch {}, {}", status.epoch, status.stage));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta http-equiv=\"refresh\" content=\"2\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n\
         <header class=\"top\"><div class=\"bar\"><h1>{title}</h1><p class=\"quiet\">{now}</p></div></header>\n<main>\n\
         {}<section><h2>Fleet</h2><dl class=\"facts\">{facts}</dl>\n\
         <div class=\"scroll table\"><table><thead><tr><th scope=\"col\">device</th><th scope=\"col\">connected</th>\
         <th scope=\"col\">in the epoch</th><th scope=\"col\">role</th><th scope=\"col\">done</th>\
         <th scope=\"col\">receives</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n\
         <p class=\"quiet\">{}</p></section>\n{}</main>\n</body>\n</html>\n",
        list("Waiting and trouble", &notes),
        escaped(&protection),
        list("Messages refused, the newest first", refusals),
    )
}

fn fact((name, value): &(&str, String)) -> String {
    format!("<div><dt>{name}</dt><dd>{}</dd></div>", escaped(value))
}

fn row(peer: &Peer) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let links = peer.from.iter().map(|(name, weight)| format!("{} {name}", percent(*weight)));
    let handed = peer.handed_from.iter().map(|name| format!("{name}, to train on"));
    let cells = [
        peer.name.clone(),
        connected(peer).to_owned(),
        yes(peer.takes_part).to_owned(),
        peer.role.clone().unwrap_or("–".to_owned()),
        peer.done.map_or("–", yes).to_owned(),
        links.chain(handed).collect::<Vec<_>>().join(", "),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
    format!("<tr>{cells}</tr>\n")
}

fn list(heading: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li>{}</li>", escaped(item))).collect();
    format!("<section><h2>{heading}</h2><ul>{items}</ul></section>\n")
}

/// Returns text that other devices may have chosen as text of a page, in which nothing of it is markup.
fn escaped(text: &str) -> String {
    let text = clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_says_what_to_expect_and_what_to_do_if_that_is_little() {
        let mut status = json!({
            "seconds": 4e9, "most_memory": null, "format": "stlf-status/1", "fleet": "harbour", "roster": 3,
            "device": "dock", "epoch": 1, "stage": "complete", "planner": "gate", "no_plan": null, "devices": [],
            "traffic": { "sent": 0, "received": 0, "refused": 0, "turned_away": 0 },
        });
        let page = |status: &Value| html(&serde_json::from_value(status.clone()).unwrap(), &[]);
        assert!(!page(&status).contains("expect"));
        status["expected"] = json!({ "accuracy": 0.91, "low": 0.25, "high": 0.95 });
        status["warning"] = json!("no source is near");
        let told = page(&status);
        assert!(
            told.contains("<dt>expect</dt><dd>91 %, 90 % interval 25 % to 95 %</dd>"),
            "{told}"
        );
        let advice = "<li>no source is near: ask for labels with stlf ask node SAMPLES</li>";
        assert!(told.contains(advice), "{told}");
        status["student"] = json!("used (+0.081; asked +0.020)");
        assert!(page(&status).contains("<dt>student</dt><dd>used (+0.081; asked +0.020)</dd>"));
        status["student_cost"] = json!({ "gflop": 16.24, "joules": 1.624 });
        let cost =
            "<dd>used (+0.081; asked +0.020), which took 16.24 GFLOP of computing, 1.624 J</dd>";
        assert!(page(&status).contains(cost), "{}", page(&status));
        status["guessing"] = json!("its own model is no better than guessing");
        assert!(page(&status).contains("<li>its own model is no better than guessing</li>"));
    }
}
