//! Arguments of workflows, signals, queries and updates, as typed on the command line: JSON.

use std::{fs, io::Read as _, path::PathBuf};

use abide::payload::PayloadValue as _;
use abide_command::Failed;
use abide_core::payload::{Payload, Payloads};
use clap::Args;
use serde_json::Value;

/// The arguments of a request.
#[derive(Args, Debug, Default)]
pub(crate) struct Input {
    /// Argument as JSON; repeat for several, in order
    #[arg(short, long, value_name = "JSON", conflicts_with = "input_file")]
    input: Vec<String>,
    /// File with one argument as JSON; "-" for standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
}

impl Input {
    /// Arguments that were given under another name.
    pub(crate) const fn of(input: Vec<String>) -> Self {
        Self { input, input_file: None }
    }

    /// One payload per argument.
    pub(crate) fn payloads(&self) -> Result<Payloads, Failed> {
        if let Some(path) = &self.input_file {
            let text = read(path)?;
            return Ok(vec![payload(&text, &format!("{}", path.display()))?]);
        }
        self.input.iter().map(|text| payload(text, "--input")).collect()
    }
}

fn read(path: &PathBuf) -> Result<String, Failed> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failed::usage(format_args!("cannot read {}: {error}", path.display()))),
    }
}

fn payload(text: &str, place: &str) -> Result<Payload, Failed> {
    let value = parse_json(text, place).map_err(|failed| {
        let quoted = text.trim_start().starts_with(['"', '[', '{']);
        let hint = "a JSON string needs its own quotes: --input '\"Ada\"'";
        if quoted { failed } else { failed.hint(hint) }
    })?;
    let payload = value.to_payload().map_err(Failed::usage)?;
    Ok(payload.unwrap_or_default())
}

/// Reads values of the form NAME=JSON.
pub(crate) fn named(texts: &[String], option: &str) -> Result<Vec<(String, Value)>, Failed> {
    let read = |text: &String| match text.split_once('=') {
        Some((name, json)) if !name.is_empty() => {
            Ok((name.to_owned(), parse_json(json, &format!("{option} {name}"))?))
        }
        _ => {
            let what = format!("{option} {text:?} is not a name and a value");
            Err(Failed::usage(what).hint(format!("write it as {option} Region='\"eu\"'")))
        }
    };
    texts.iter().map(read).collect()
}

/// Reads JSON. It may be nested 127 levels deep, which is the bound of the parser.
pub(crate) fn parse_json(text: &str, place: &str) -> Result<Value, Failed> {
    serde_json::from_str(text)
        .map_err(|error| Failed::usage(format_args!("{place} is not valid JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(input: &[&str]) -> Result<Payloads, Failed> {
        let input = input.iter().map(|&text| text.to_owned()).collect();
        Input::of(input).payloads()
    }

    #[test]
    fn one_payload_per_argument() {
        let payloads = payloads(&["\"Ada\"", " 7 "]).unwrap();
        assert_eq!(payloads[0].data, "\"Ada\"");
        assert_eq!(payloads[1].data, "7");
        assert_eq!(payloads[0].metadata["encoding"], "json/plain");
    }

    #[test]
    fn what_is_not_json_is_refused_with_a_hint() {
        let error = payloads(&["Ada"]).unwrap_err().to_string();
        assert!(error.starts_with("error: --input is not valid JSON"), "{error}");
        assert!(error.contains("hint: a JSON string needs its own quotes"), "{error}");
    }

    #[test]
    fn json_that_is_nested_too_deeply_is_refused() {
        let deepest = format!("{}{}", "[".repeat(127), "]".repeat(127));
        assert_eq!(payloads(&[&deepest]).unwrap()[0].data, deepest);
        let error = payloads(&[&"[".repeat(1 << 20)]).unwrap_err().to_string();
        assert!(error.contains("--input is not valid JSON: recursion limit exceeded"), "{error}");
        assert!(!error.contains("hint"), "{error}");
    }
}
