//! Values as a query writes them, read as the type of their field.

use super::{
    Field, Finite, QueryError, Value,
    attribute::words,
    error::meant,
    field::FieldType,
    lexer::{Token, TokenKind},
};
use crate::{
    ids::RunId,
    list::{RunStatus, WaitKind},
    time::Timestamp,
};

/// The values that a token stands for: one, or the words of a text.
pub(super) fn values(field: &Field, token: &Token) -> Result<Vec<Value>, QueryError> {
    let value = match (field.field_type(), &token.kind) {
        (FieldType::Words, TokenKind::Text(text)) => return words_of(text, token.column),
        (FieldType::Keyword | FieldType::KeywordList, TokenKind::Text(text)) => {
            Some(Value::Text(text.clone()))
        }
        (FieldType::Int, TokenKind::Number(number)) => number.parse().ok().map(Value::Int),
        (FieldType::Double, TokenKind::Number(number)) => {
            number.parse().ok().and_then(Finite::new).map(Value::Double)
        }
        (FieldType::Bool, TokenKind::Word(word) | TokenKind::Text(word)) => {
            word.to_lowercase().parse().ok().map(Value::Bool)
        }
        (FieldType::Time, TokenKind::Text(text)) => return time(text, token.column),
        (FieldType::Status, TokenKind::Text(text)) => {
            return choice(text, token.column, &statuses()).map(Value::Status).map(one);
        }
        (FieldType::WaitKind, TokenKind::Text(text)) => {
            return choice(text, token.column, &kinds()).map(Value::Wait).map(one);
        }
        (FieldType::Run, TokenKind::Text(text)) => {
            text.parse().ok().map(|id| Value::Run(RunId::new(id)))
        }
        _ => None,
    };
    value.map(one).ok_or_else(|| unfit(field, token))
}

/// A text as it stands for a prefix.
pub(super) fn prefix(field: &Field, token: &Token) -> Result<String, QueryError> {
    match &token.kind {
        TokenKind::Text(text) => Ok(text.clone()),
        TokenKind::Word(_)
        | TokenKind::Quoted(_)
        | TokenKind::Number(_)
        | TokenKind::Sign(_)
        | TokenKind::End => Err(unfit(field, token)),
    }
}

fn one(value: Value) -> Vec<Value> {
    vec![value]
}

fn unfit(field: &Field, token: &Token) -> QueryError {
    let (name, found) = (field.name(), token.kind.shown());
    let (is, write) = match field.field_type() {
        FieldType::Keyword => ("a keyword", "write a text in quotes: 'eu-west'"),
        FieldType::KeywordList => ("a list of keywords", "write a text in quotes: 'urgent'"),
        FieldType::Words => ("a text", "write words in quotes: 'late delivery'"),
        FieldType::Int => ("an int", "write a whole number without quotes: 100"),
        FieldType::Double => ("a double", "write a number without quotes: 99.5"),
        FieldType::Bool => ("a bool", "write true or false"),
        FieldType::Time => ("a time", "write it in quotes: '2026-11-30T12:00:00Z' or '2026-11-30'"),
        FieldType::Status => ("a status", "write it in quotes: 'Running'"),
        FieldType::WaitKind => ("a kind of wait", "write it in quotes: 'Signal'"),
        FieldType::Run => ("the id of a run", "write all 36 characters of it in quotes"),
    };
    QueryError::new(token.column, format!("{name} is {is}, and {found} is not")).hint(write)
}

/// A moment, or the midnight in UTC with which a day begins.
fn time(text: &str, column: usize) -> Result<Vec<Value>, QueryError> {
    let day = text.len() == "2026-11-30".len();
    let whole = if day { format!("{text}T00:00:00Z") } else { text.to_owned() };
    match whole.parse::<Timestamp>() {
        Ok(at) => Ok(one(Value::Time(at))),
        Err(_) => {
            let hint = "write it as '2026-11-30T12:00:00Z', with its zone, or as '2026-11-30'";
            Err(QueryError::new(column, format!("'{text}' is not a time")).hint(hint))
        }
    }
}

fn words_of(text: &str, column: usize) -> Result<Vec<Value>, QueryError> {
    let words: Vec<_> = words(text).into_iter().map(Value::Text).collect();
    if words.is_empty() {
        let hint = "a text is found by its words: letters and digits";
        return Err(QueryError::new(column, format!("'{text}' has no words")).hint(hint));
    }
    Ok(words)
}

/// The choice of this name, in any case.
fn choice<T: Copy>(
    text: &str,
    column: usize,
    choices: &[(&'static str, T)],
) -> Result<T, QueryError> {
    let named = |(name, _): &&(&str, T)| name.eq_ignore_ascii_case(text);
    if let Some((_, choice)) = choices.iter().find(named) {
        return Ok(*choice);
    }
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let error = QueryError::new(column, format!("'{text}' is none of {}", names.join(", ")));
    Err(match meant(text, names.into_iter()) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error,
    })
}

/// The name of a status in queries.
pub(super) const fn status_name(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "Running",
        RunStatus::Paused => "Paused",
        RunStatus::ReplayBlocked => "ReplayBlocked",
        RunStatus::Completed => "Completed",
        RunStatus::Failed => "Failed",
        RunStatus::TimedOut => "TimedOut",
        RunStatus::Cancelled => "Cancelled",
        RunStatus::Terminated => "Terminated",
        RunStatus::ContinuedAsNew => "ContinuedAsNew",
    }
}

/// The name of a kind of wait in queries.
pub(super) const fn kind_name(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Timer => "Timer",
        WaitKind::Signal => "Signal",
        WaitKind::Condition => "Condition",
        WaitKind::ActivityRetry => "ActivityRetry",
        WaitKind::ChildRetry => "ChildRetry",
        WaitKind::Approval => "Approval",
        WaitKind::Schedule => "Schedule",
    }
}

/// All names of statuses. Others spell one of them with a single l.
fn statuses() -> Vec<(&'static str, RunStatus)> {
    let named = RunStatus::ALL.into_iter().map(|status| (status_name(status), status));
    named.chain([("Canceled", RunStatus::Cancelled)]).collect()
}

fn kinds() -> Vec<(&'static str, WaitKind)> {
    WaitKind::ALL.into_iter().map(|kind| (kind_name(kind), kind)).collect()
}
