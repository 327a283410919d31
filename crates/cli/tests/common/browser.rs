//! A real browser, driven over the WebDriver protocol; ended with the test.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::http;

/// A window of headless Chromium.
pub(crate) struct Browser {
    driver: Child,
    /// Kept open, so that the driver can go on writing.
    _said: BufReader<ChildStdout>,
    port: u16,
    session: String,
}

impl Browser {
    /// Opens a window of this width; `None`, with a line that says so, where there is no chromedriver.
    pub(crate) fn open(width: u32) -> Option<Browser> {
        let mut browser = Browser::driven()?;
        let window = format!("--window-size={width},900");
        let options =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", &window];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": options},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let reply = browser.command("POST", "", &wanted);
        browser.session = reply["sessionId"].as_str().unwrap().to_owned();
        // A headless window has a least width; the page must see this one.
        browser.command(
            "POST",
            "/goog/cdp/execute",
            &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": {
                "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}}),
        );
        Some(browser)
    }

    /// A driver that listens on a port of its own choice, without a window yet. To choose the port
    /// for it would be a race with whoever else may take it before it does.
    fn driven() -> Option<Browser> {
        // Its port may be free for one family of addresses and taken for the other; then it ends.
        for _ in 0..5 {
            let driver = Command::new("chromedriver")
                .arg("--port=0")
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut driver) = driver else {
                stlf_testing::skip("no chromedriver (Debian: apt-get install chromium-driver)");
                return None;
            };
            let mut said = BufReader::new(driver.stdout.take().unwrap());
            if let Some(port) = started_on(&mut said) {
                return Some(Browser { driver, _said: said, port, session: String::new() });
            }
            driver.wait().unwrap();
        }
        panic!("chromedriver ended five times before it listened");
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let session =
            if self.session.is_empty() { String::new() } else { format!("/{}", self.session) };
        let request = format!("{method} /session{session}{path}");
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let reply = http::ask(self.port, &request, &body);
        let value = reply.json()["value"].clone();
        assert_eq!(reply.status, 200, "{request}: {value}");
        value
    }

    /// Goes to an address and waits until it is loaded.
    pub(crate) fn visit(&self, address: &str) {
        self.command("POST", "/url", &json!({"url": address}));
    }

    /// Runs a script in the page and returns its value.
    pub(crate) fn script(&self, script: &str) -> Value {
        self.command("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script until it returns true; panics after thirty seconds.
    pub(crate) fn wait_for(&self, what: &str, script: &str) {
        let is_true = || (self.script(script) == Value::Bool(true)).then_some(());
        stlf_testing::wait_for(stlf_testing::DEADLINE, is_true, || what.to_owned());
    }

    /// What axe-core finds wrong with the page for people who cannot see, hear or point: rules with the elements that break them. `None`,
    /// with a line that says so, where the check has not installed it.
    pub(crate) fn barriers(&self) -> Option<Vec<String>> {
        // The test lies in target/debug/deps.
        let program = std::env::current_exe().unwrap();
        let target = program.ancestors().nth(3).unwrap();
        let axe = target.join("axe-core-4.11.0/node_modules/axe-core/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(axe) else {
            stlf_testing::skip("no axe-core (`cargo xtask check --fast` installs it)");
            return None;
        };
        self.script(&axe);
        self.script(
            "window.barriers = null; axe.run(document).then((found) => { window.barriers = found.violations.map((rule) => \
             `${rule.id}: ${rule.nodes.map((node) => node.target.join(' ')).join(', ')}`); })",
        );
        self.wait_for("axe-core", "return window.barriers !== null");
        let found = self.script("return window.barriers");
        let text = |rule: &Value| rule.as_str().unwrap().to_owned();
        Some(found.as_array().unwrap().iter().map(text).collect())
    }

    fn element(&self, selector: &str) -> String {
        let found =
            self.command("POST", "/element", &json!({"using": "css selector", "value": selector}));
        let id = found.as_object().and_then(|o| o.values().next()).and_then(Value::as_str);
        id.unwrap().to_owned()
    }

    /// Clicks where the element is, as a user does.
    pub(crate) fn click(&self, selector: &str) {
        let id = self.element(selector);
        self.command("POST", &format!("/element/{id}/click"), &json!({}));
    }

    /// Types into an element; `\u{e012}` and the like are keys without a letter.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        let id = self.element(selector);
        self.command("POST", &format!("/element/{id}/value"), &json!({"text": text}));
    }

    /// Presses a key wherever the focus is.
    pub(crate) fn press(&self, key: &str) {
        let down = json!({"type": "keyDown", "value": key});
        let up = json!({"type": "keyUp", "value": key});
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": [down, up]});
        self.command("POST", "/actions", &json!({"actions": [keyboard]}));
    }

    /// Chooses the option with this text or value.
    pub(crate) fn choose(&self, selector: &str, text: &str) {
        let found = self.script(&format!(
            "const s = document.querySelector({selector:?}); \
             const o = Array.from(s.options).find((o) => o.textContent.trim() === {text:?} || o.value === {text:?}); \
             if (!o) return false; s.value = o.value; \
             s.dispatchEvent(new Event('change', {{bubbles: true}})); return true"
        ));
        assert_eq!(found, true, "{selector} has no option {text}");
    }

    /// Returns the warnings and errors that the page has logged.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.command("POST", "/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING")
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Keeps what the window shows, where `STLF_SCREENSHOTS` names a folder.
    pub(crate) fn screenshot(&self, name: &str) {
        let Ok(folder) = std::env::var("STLF_SCREENSHOTS") else { return };
        let shot = self.command(
            "POST",
            "/goog/cdp/execute",
            &json!({"cmd": "Page.captureScreenshot", "params": {"captureBeyondViewport": true}}),
        );
        let path = std::path::Path::new(&folder).join(format!("{name}.png.base64"));
        std::fs::write(path, shot["data"].as_str().unwrap()).unwrap();
    }
}

/// The port that the driver says it has; `None` where it ends without one.
fn started_on(said: &mut impl BufRead) -> Option<u16> {
    let mut line = String::new();
    while said.read_line(&mut line).unwrap() > 0 {
        if let Some((_, port)) = line.trim_end().split_once("successfully on port ") {
            return Some(port.trim_end_matches('.').parse().unwrap());
        }
        line.clear();
    }
    None
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let path = format!("DELETE /session/{}", self.session);
            http::ask(self.port, &path, "");
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
