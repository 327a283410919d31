//! Reading a JSON document: fast when it is right, and when it is wrong a second time to say where.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess,
};
use serde_json::de::Read;

use stlf_data::words::{in_words, nearest};
use stlf_planning::error::{Error as ValueError, Field};

use crate::error::Error;

/// What kind of document is expected.
pub(super) struct Kind {
    /// The format's name and version, such as `stlf-problem/1`.
    pub(super) format: &'static str,
    /// Earlier versions that are read as well.
    pub(super) earlier: &'static [&'static str],
    /// The word for it in messages.
    pub(super) noun: &'static str,
}

/// Parses a document. `open` is called again to find out what is wrong with a bad one.
pub(super) fn parse<'de, T, R>(
    kind: &Kind,
    mut open: impl FnMut() -> Result<serde_json::Deserializer<R>, Error>,
) -> Result<T, Error>
where
    T: DeserializeOwned,
    R: Read<'de>,
{
    let mut json = open()?;
    let error = match T::deserialize(&mut json).and_then(|value| json.end().map(|()| value)) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut head = Head::default();
    // The head is filled as far as the text can be read; where it ends is of no interest.
    let _ = HeadSeed(&mut head).deserialize(&mut open()?);
    if let Some(wrong) = head.wrong_format(kind) {
        return Err(wrong);
    }
    let (path, error) = match serde_path_to_error::deserialize::<_, T>(&mut open()?) {
        Err(located) => (located.path().clone(), located.into_inner()),
        Ok(_) => return Err(syntax(&error, kind, &head)),
    };
    let steps: Vec<&serde_path_to_error::Segment> = path.iter().collect();
    if steps.is_empty() && !head.is_object {
        return Err(syntax(&error, kind, &head));
    }
    Err(locate(&path.to_string(), &steps, &head, &error, kind))
}

/// An error at a known place of the document.
fn locate(
    path: &str,
    steps: &[&serde_path_to_error::Segment],
    head: &Head,
    error: &serde_json::Error,
    kind: &Kind,
) -> Error {
    if steps.is_empty() && !error.is_data() || error.is_eof() {
        return syntax(error, kind, head);
    }
    let message = shorten(&in_words(&bare_message(error)));
    let form = |field: Field, message: String, hint: String| {
        let (line, column) = (error.line(), error.column());
        Error::Form { field, message, line, column, hint }
    };
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let quoted = backticked(rest);
        let field = if steps.is_empty() { quoted.first().copied().unwrap_or("?") } else { path };
        let hint = suggestion(&quoted, kind);
        return form(shorten(field).into(), "unknown field".to_owned(), hint);
    }
    if let Some(rest) = message.strip_prefix("unknown value ") {
        let quoted = backticked(rest);
        let given = quoted.first().copied().unwrap_or("?");
        let hint = suggestion(&quoted, kind);
        return form(path.into(), format!("{given:?} is not known"), hint);
    }
    if let Some(name) = message.strip_prefix("missing field `").and_then(|m| m.strip_suffix('`')) {
        let path = if steps.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let field = Field { path, devices: who(steps, &head.names) };
        return ValueError::missing(field, "is missing").with_hint(schema_hint(kind)).into();
    }
    if let Some(name) = message.strip_prefix("duplicate field `").and_then(|m| m.strip_suffix('`'))
    {
        let path = if steps.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let field = Field { path, devices: who(steps, &head.names) };
        return form(field, "is given twice".to_owned(), "keep one of the two".to_owned());
    }
    if steps.is_empty() {
        return syntax(error, kind, head);
    }
    let hint = match message.as_str() {
        "expected value" => {
            "JSON has no NaN and no Infinity: null stands for a link that does not exist".to_owned()
        }
        "number out of range" => "no measurement is that large".to_owned(),
        _ => schema_hint(kind),
    };
    form(Field { path: shorten(path), devices: who(steps, &head.names) }, message, hint)
}

/// An error about the text as a whole.
fn syntax(error: &serde_json::Error, kind: &Kind, head: &Head) -> Error {
    let message = bare_message(error);
    let (message, hint) = if message == "EOF while parsing a value" && !head.is_object {
        ("the file is empty".to_owned(), schema_hint(kind))
    } else if error.is_io() {
        (format!("cannot be read: {message}"), "try again".to_owned())
    } else if error.is_eof() {
        ("the text ends too early".to_owned(), "is the file complete?".to_owned())
    } else if error.is_data() {
        (format!("a {} is a JSON object", kind.noun), schema_hint(kind))
    } else {
        (format!("not JSON: {}", shorten(&message)), schema_hint(kind))
    };
    Error::Syntax { line: error.line().max(1), column: error.column().max(1), message, hint }
}

fn schema_hint(kind: &Kind) -> String {
    format!("`stlf schema {}` describes the file", kind.noun)
}

/// The message without serde_json's " at line 1 column 2".
fn bare_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&suffix).unwrap_or(&message).to_owned()
}

/// Sentences in backticks: what was met, then what would have been right.
fn backticked(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

fn suggestion(quoted: &[&str], kind: &Kind) -> String {
    let Some((given, known)) = quoted.split_first() else { return schema_hint(kind) };
    match near(given, known.iter().copied()) {
        Some(best) => format!("did you mean `{best}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// [`nearest`] for words of a sane length: the distance costs their product.
pub(super) fn near<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const LONGEST: usize = 100;
    if word.len() > LONGEST {
        return None;
    }
    nearest(word, candidates.into_iter().filter(|c| c.len() <= LONGEST))
}

/// Keeps a message that quotes the file to one readable line.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 300;
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(LONGEST).map(clean).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// The devices that a path is about: sender and receiver for a cell of a matrix, one for a device.
fn who(steps: &[&serde_path_to_error::Segment], names: &[String]) -> Vec<String> {
    use serde_path_to_error::Segment;
    let key = match steps.first() {
        Some(Segment::Map { key }) => key.as_str(),
        _ => return Vec::new(),
    };
    let place = |step: &&&serde_path_to_error::Segment| matches!(step, Segment::Seq { .. });
    let at = |k: usize| match steps.iter().filter(place).nth(k) {
        Some(Segment::Seq { index }) => {
            names.get(*index).filter(|n| !n.is_empty()).map(|n| shorten(n))
        }
        _ => None,
    };
    match (key, at(0), at(1)) {
        ("devices", Some(device), _) | ("costs", Some(device), None) => vec![device],
        ("divergence" | "link_energy" | "costs", Some(from), Some(to)) => vec![from, to],
        _ => Vec::new(),
    }
}

/// What an error message needs of a document that cannot be parsed as a whole.
#[derive(Default)]
struct Head {
    is_object: bool,
    format: Option<String>,
    names: Vec<String>,
}

impl Head {
    fn wrong_format(&self, kind: &Kind) -> Option<Error> {
        let given = self.format.as_deref()?;
        if given == kind.format || kind.earlier.contains(&given) {
            return None;
        }
        let known = ["stlf-problem/1", "stlf-plan/1", "stlf-plan/2", "stlf-mixture/1"];
        let hint = if known.contains(&given) {
            format!("this command reads a {}, not a {}", kind.noun, &given[5..given.len() - 2])
        } else if given.split('/').next() == kind.format.split('/').next() {
            let read: Vec<&str> = kind.earlier.iter().copied().chain([kind.format]).collect();
            format!("this program reads version {} only", read.join(" and "))
        } else {
            format!("write \"format\": {:?}", kind.format)
        };
        Some(Error::Format { found: shorten(given), expected: kind.format, hint })
    }
}

struct HeadSeed<'a>(&'a mut Head);

impl<'de> DeserializeSeed<'de> for HeadSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> serde::de::Visitor<'de> for HeadSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.is_object = true;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => self.0.format = map.next_value::<Lenient>()?.0,
                "devices" => map.next_value_seed(NamesSeed(&mut self.0.names))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct NamesSeed<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for NamesSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> serde::de::Visitor<'de> for NamesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of devices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        #[derive(serde::Deserialize)]
        struct Named {
            #[serde(default)]
            name: Lenient,
        }
        while let Some(device) = seq.next_element::<Named>()? {
            self.0.push(device.name.0.unwrap_or_default());
        }
        Ok(())
    }
}

/// A string, or anything else, which is skipped.
#[derive(Default)]
struct Lenient(Option<String>);

impl<'de> serde::Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lenient, D::Error> {
        struct Anything;
        impl<'de> serde::de::Visitor<'de> for Anything {
            type Value = Lenient;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_str<E>(self, text: &str) -> Result<Lenient, E> {
                Ok(Lenient(Some(text.to_owned())))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Lenient, E> {
                Ok(Lenient(None))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Lenient, E> {
                Ok(Lenient(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Lenient, E> {
                Ok(Lenient(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Lenient, E> {
                Ok(Lenient(None))
            }
            fn visit_unit<E>(self) -> Result<Lenient, E> {
                Ok(Lenient(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Lenient, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Lenient(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lenient, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Lenient(None))
            }
        }
        deserializer.deserialize_any(Anything)
    }
}
