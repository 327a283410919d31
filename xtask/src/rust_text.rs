//! Rust source as text: code without comments and strings, doc comments with the item they document.

/// The source with comments, string and character literals blanked and lines kept.
pub(crate) fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut i = 0;
    while i < chars.len() {
        let end = literal_end(&chars, i);
        if end > i {
            out.extend(chars[i..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            i = end;
        } else {
            out.push(chars[i]);
            i += 1;
        }
    }
    out
}

/// Where the comment or literal that starts at `i` ends; `i` itself where none does.
fn literal_end(chars: &[char], i: usize) -> usize {
    let at = |k: usize| chars.get(k).copied().unwrap_or('\0');
    let after_word = i > 0 && (at(i - 1).is_alphanumeric() || at(i - 1) == '_');
    match at(i) {
        '/' if at(i + 1) == '/' => find(chars, i, '\n'),
        '/' if at(i + 1) == '*' => block_comment_end(chars, i),
        '"' => string_end(chars, i),
        'r' if !after_word || at(i - 1) == 'b' => {
            let hashes = chars[i + 1..].iter().take_while(|&&c| c == '#').count();
            if at(i + 1 + hashes) == '"' {
                raw_string_end(chars, i + 2 + hashes, hashes)
            } else {
                i
            }
        }
        // 'a' is a character, 'a a lifetime.
        '\'' if at(i + 1) == '\\' => find(chars, i + 3, '\'') + 1,
        '\'' if at(i + 2) == '\'' => i + 3,
        _ => i,
    }
    .min(chars.len())
}

fn find(chars: &[char], from: usize, wanted: char) -> usize {
    (from..chars.len()).find(|&k| chars[k] == wanted).unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut i) = (0, start);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                i += 1;
                continue;
            }
        }
        i += 2;
        if depth == 0 {
            break;
        }
    }
    i
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn raw_string_end(chars: &[char], start: usize, hashes: usize) -> usize {
    (start..chars.len())
        .find(|&k| {
            chars[k] == '"' && chars[k + 1..].iter().take_while(|&&c| c == '#').count() >= hashes
        })
        .map_or(chars.len(), |k| k + 1 + hashes)
}

/// `code_only` with every item behind `#[cfg(test)]` blanked too.
pub(crate) fn shipped_code(source: &str) -> String {
    let mut code = code_only(source);
    while let Some(start) = code.find("#[cfg(test)]") {
        let end = item_end(&code, start);
        let blank: String =
            code[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        code.replace_range(start..end, &blank);
    }
    code
}

/// The end of the item that starts at `start`: its closing brace, or its semicolon.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (offset, c) in code[start..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return start + offset + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return start + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// A doc comment and what it documents.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Documented {
    /// The item's name; empty for the file's own `//!`.
    pub(crate) name: String,
    pub(crate) doc: String,
    /// The comment's first line, counted from 1.
    pub(crate) line: usize,
}

/// Every documented item of a file, those of its test modules left out.
pub(crate) fn documented(source: &str) -> Vec<Documented> {
    let shipped = shipped_code(source);
    let mut items = Vec::new();
    let mut module = Documented { name: String::new(), doc: String::new(), line: 1 };
    let mut open: Option<Documented> = None;
    let mut attribute = 0;
    for (k, (line, code)) in source.lines().zip(shipped.lines()).enumerate() {
        let text = line.trim_start();
        if attribute > 0 || text.starts_with("#[") {
            attribute += code.matches('[').count();
            attribute = attribute.saturating_sub(code.matches(']').count());
            continue;
        }
        if let Some(doc) = text.strip_prefix("//!") {
            module.doc += doc;
            module.doc.push('\n');
        } else if let Some(doc) = text.strip_prefix("///") {
            let item = open.get_or_insert(Documented {
                name: String::new(),
                doc: String::new(),
                line: k + 1,
            });
            item.doc += doc;
            item.doc.push('\n');
        } else if code.trim().is_empty() && !text.is_empty() && !text.starts_with("//") {
            // The documented item is part of a test.
            open = None;
        } else if let Some(name) = item_name(code)
            && let Some(item) = open.take()
        {
            items.push(Documented { name, ..item });
        }
    }
    items.insert(0, module);
    items
}

/// The name that a line of code declares: of a function, type, constant, module, variant or field.
fn item_name(code: &str) -> Option<String> {
    const QUALIFIERS: [&str; 5] = ["pub", "async", "unsafe", "default", "extern"];
    const KINDS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules"];
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty());
    let mut words = words.skip_while(|w| QUALIFIERS.contains(w) || ["crate", "super"].contains(w));
    let first = words.next()?;
    let name = if KINDS.contains(&first) {
        // `const fn` names two kinds.
        words.find(|w| !KINDS.contains(w))?
    } else {
        first
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let source =
            "let a = \"fs \\\" x\"; // std::fs\n/* std /* env */ std::time */ let b = 'x';\n";
        let code = code_only(source);
        assert!(!code.contains("fs") && !code.contains("env") && !code.contains("time"));
        assert!(code.contains("let a =") && code.contains("let b ="));
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn raw_strings_quotes_and_lifetimes_are_told_apart() {
        let code =
            code_only(r##"fn f<'a>(x: &'a str) { g('"', r#"todo!("x")"#, b'\'', '\\'); h() }"##);
        assert!(code.contains("fn f<'a>(x: &'a str)") && code.ends_with("h() }"));
        assert!(!code.contains("todo"));
        assert!(code_only("let for_r = bar;").contains("bar"));
    }

    #[test]
    fn test_modules_are_not_shipped() {
        let source =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn t() { println!(\"{}\", 1); }\n}\nfn b() {}";
        let code = shipped_code(source);
        assert!(code.contains("fn a") && code.contains("fn b") && !code.contains("println"));
        assert_eq!(code.lines().count(), source.lines().count());
        assert!(shipped_code("#[cfg(test)]\nuse x::y;\nfn c() {}").contains("fn c"));
    }

    #[test]
    fn an_item_is_found_with_its_documentation() {
        let source = "//! Module, `eq:a`.\n\n/// One, `eq:b`.\n/// More.\n#[must_use = \n\"x\"]\npub const fn one() {}\n\
            /// Two.\npub(crate) struct Two;\n#[cfg(test)]\nmod tests {\n/// Hidden.\nfn hidden() {}\n}\nfn bare() {}\n";
        let items = documented(source);
        let names: Vec<_> = items.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["", "one", "Two"]);
        assert!(items[1].doc.contains("eq:b") && items[1].doc.contains("More"));
        assert_eq!(items[1].line, 3);
    }

    #[test]
    fn names_of_all_kinds_of_items() {
        let name = |code| item_name(code).unwrap_or_default();
        assert_eq!(name("    pub fn source(&self) {"), "source");
        assert_eq!(name("pub(crate) const LARGEST: u64 = 1;"), "LARGEST");
        assert_eq!(name("    Massart,"), "Massart");
        assert_eq!(name("    pub delta: f64,"), "delta");
    }
}
