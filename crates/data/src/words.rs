//! What parsers of text say, in words for people, and what a user likely meant. It stands here because everything that reads what users
//! write sees this crate: configurations, documents, tables, and the lines of learners.

/// The candidate that `word` was most likely meant to be.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase()), c))
        .min()
        .filter(|(distance, c)| *distance <= c.len().max(word.len()) / 3 + 1)
        .map(|(_, c)| c)
}

/// The candidate that is the same word but for capital letters.
pub fn but_for_case<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates.into_iter().find(|candidate| candidate.to_lowercase() == word)
}

/// What a parser of JSON or TOML says, in words for people: what was expected, then what was found, and no type of Rust.
pub fn in_words(message: &str) -> String {
    let message = message.trim();
    if let Some((said, line, column)) = placed(message) {
        return format!("{} (line {line}, column {column})", in_words(said));
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown value {rest}");
    }
    let mismatch =
        ["invalid type: ", "invalid value: "].iter().find_map(|kind| message.strip_prefix(kind));
    match mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("expected {}, found {}", wanted(expected), met(found)),
        None => message.to_owned(),
    }
}

/// The message before the place that a parser of JSON adds, and that place.
fn placed(message: &str) -> Option<(&str, usize, usize)> {
    let (said, place) = message.rsplit_once(" at line ")?;
    let (line, column) = place.split_once(" column ")?;
    Some((said, line.parse().ok()?, column.parse().ok()?))
}

/// Returns in plain words what a parser expected, as "a number" for `f64`.
fn wanted(expected: &str) -> &str {
    match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number of at least 0",
        "i64" | "i32" | "isize" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a string" | "string only" => "a text",
        "a map" => "keys with values",
        named if named.starts_with("struct ") || named.contains(" enum ") => "keys with values",
        other if other.starts_with("a nonzero ") => "a whole number of at least 1",
        other => other,
    }
}

/// Returns in plain words what a parser found, as "a list" for a sequence.
fn met(found: &str) -> &str {
    let quoted = ["integer ", "floating point ", "boolean "]
        .iter()
        .find_map(|kind| found.strip_prefix(kind))
        .map(|value| value.trim_matches('`'));
    match found {
        "map" => "keys with values",
        "sequence" => "a list",
        "unit value" => "nothing",
        "unit variant" => "something else",
        _ => quoted.or(found.strip_prefix("string ")).unwrap_or(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_of_rust_is_named() {
        for (parser, words) in [
            (
                "invalid value: integer `-1`, expected usize\n",
                "expected a whole number of at least 0, found -1",
            ),
            ("invalid type: string \"x\", expected f64", "expected a number, found \"x\""),
            (
                "invalid type: integer `3`, expected struct Data",
                "expected keys with values, found 3",
            ),
            ("invalid type: null, expected a sequence", "expected a list, found null"),
            (
                "invalid type: unit variant, expected string only",
                "expected a text, found something else",
            ),
            (
                "invalid type: map, expected u64 at line 2 column 7",
                "expected a whole number of at least 0, found keys with values (line 2, column 7)",
            ),
            ("unknown variant `x`, expected `a` or `b`", "unknown value `x`, expected `a` or `b`"),
            ("unknown field `stepz`", "unknown field `stepz`"),
        ] {
            assert_eq!(in_words(parser), words);
        }
    }
}
