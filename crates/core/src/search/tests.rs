//! Queries as people write them: what they mean, what they print as, and what is said about wrong ones.

use bytes::Bytes;
use proptest::prelude::*;

use super::{
    AttributeKind, Check, Comparison, Condition, Definitions, Field, Finite, Order, OrderField,
    Query, Subject, SystemField, Test, Value,
    attribute::{check_entries, entries},
};
use crate::{
    ids::RunId,
    limits::Limits,
    list::{AttributeRow, RunParent, RunRow, RunStatus, WaitKind, WaitRow},
    payload::{Payload, PayloadMap},
    time::Timestamp,
};

fn attributes() -> Definitions {
    [
        ("Amount", AttributeKind::Int),
        ("Customer", AttributeKind::Keyword),
        ("Labels", AttributeKind::KeywordList),
        ("Note", AttributeKind::Text),
        ("Rate", AttributeKind::Double),
        ("Paid", AttributeKind::Bool),
        ("Due", AttributeKind::Time),
    ]
    .map(|(name, kind)| (name.to_owned(), kind))
    .into_iter()
    .collect()
}

fn parse(text: &str) -> Result<Query, String> {
    Query::parse(text, &attributes()).map_err(|error| error.to_string())
}

#[test]
fn a_query_prints_in_one_form() {
    for (text, printed) in [
        ("", ""),
        ("  ", ""),
        ("WorkflowType = 'X'", "WorkflowType = 'X'"),
        (
            "workflowtype_x = 1 or Amount>100",
            "column 1: there is no field workflowtype_x; did you mean WorkflowType?",
        ),
        (
            "WorkflowType = \"X\" and ExecutionStatus = 'running' AND Amount > 100 AND \
             StartTime > '2026-01-01' ORDER BY StartTime DESC",
            "WorkflowType = 'X' AND ExecutionStatus = 'Running' AND Amount > 100 AND \
             StartTime > '2026-01-01T00:00:00Z'",
        ),
        ("(Amount <> 1)", "Amount != 1"),
        ("NOT Amount != 1", "Amount = 1"),
        ("NOT (Amount IN (1, 2))", "Amount NOT IN (1, 2)"),
        ("NOT Amount > 1", "NOT Amount > 1"),
        ("Amount NOT BETWEEN -5 AND 5", "Amount NOT BETWEEN -5 AND 5"),
        ("`Customer` NOT STARTS_WITH 'it''s'", "Customer NOT STARTS_WITH 'it''s'"),
        ("Customer IS NULL OR Paid IS NOT NULL", "Customer IS NULL OR Paid IS NOT NULL"),
        ("Paid = TRUE AND Paid = 'false'", "Paid = true AND Paid = false"),
        ("Rate >= 5 AND Rate < 1e3", "Rate >= 5.0 AND Rate < 1000.0"),
        ("Note = 'Late delivery, late!'", "Note IN ('delivery', 'late')"),
        ("ExecutionStatus = 'Canceled'", "ExecutionStatus = 'Cancelled'"),
        (
            "Amount = 1 AND (Amount = 2 AND Amount = 3) OR (Amount = 4 OR Amount = 5)",
            "Amount = 1 AND Amount = 2 AND Amount = 3 OR Amount = 4 OR Amount = 5",
        ),
        (
            "NOT (Amount = 1 OR Paid = true) AND (Amount = 2 OR Paid = false)",
            "NOT (Amount = 1 OR Paid = true) AND (Amount = 2 OR Paid = false)",
        ),
        (
            "WaitKind = 'Signal' AND Amount = 1 AND (WaitName = 'pay')",
            "WaitKind = 'Signal' AND WaitName = 'pay' AND Amount = 1",
        ),
        (
            "CloseTime > '2026-01-01T12:00:00+01:00' ORDER BY CloseTime",
            "CloseTime > \
          '2026-01-01T11:00:00Z' ORDER BY CloseTime ASC",
        ),
        ("ORDER BY StartTime ASC", "ORDER BY StartTime ASC"),
        ("GROUP BY Customer", "GROUP BY Customer"),
        ("Blocked = true GROUP BY WorkflowType", "Blocked = true GROUP BY WorkflowType"),
    ] {
        let shown = parse(text).map_or_else(|error| error, |query| query.to_string());
        assert_eq!(shown, printed, "{text}");
    }
}

/// Queries that are refused, and what is said.
const REFUSED: &[(&str, &str)] = &[
    ("Amout = 1", "column 1: there is no field Amout; did you mean Amount?"),
    ("amount = 1", "column 1: there is no field amount; did you mean Amount?"),
    (
        "Paid = true AND Tea = 'x'",
        "column 17: there is no field Tea; register it as a search attribute of the namespace first",
    ),
    (
        "Amount = '5'",
        "column 10: Amount is an int, and '5' is not; write a whole number without quotes: 100",
    ),
    (
        "Amount = 9223372036854775808",
        "column 10: Amount is an int, and 9223372036854775808 is not; write a whole number without \
             quotes: 100",
    ),
    (
        "Customer = eu",
        "column 12: Customer is a keyword, and eu is not; write a text in quotes: 'eu-west'",
    ),
    (
        "StartTime > 2026-01-01",
        "column 13: StartTime is a time, and 2026-01-01 is not; write it in quotes: \
             '2026-11-30T12:00:00Z' or '2026-11-30'",
    ),
    (
        "StartTime > '2026-01-01T00:00:00'",
        "column 13: '2026-01-01T00:00:00' is not a time; write it as '2026-11-30T12:00:00Z', with its \
             zone, or as '2026-11-30'",
    ),
    (
        "ExecutionStatus = 'Runing'",
        "column 19: 'Runing' is none of Running, Paused, ReplayBlocked, Completed, Failed, TimedOut, \
             Cancelled, Terminated, ContinuedAsNew, Canceled; did you mean 'Running'?",
    ),
    (
        "ExecutionStatus > 'Running'",
        "column 17: ExecutionStatus cannot be compared with >; it has =, !=, IN and IS NULL",
    ),
    (
        "Amount STARTS_WITH '1'",
        "column 8: Amount cannot be compared with STARTS_WITH; it has =, !=, <, <=, >, >=, IN, BETWEEN \
             and IS NULL",
    ),
    (
        "RunId = 'abc'",
        "column 9: RunId is the id of a run, and 'abc' is not; write all 36 characters of it in quotes",
    ),
    (
        "Amount",
        "column 7: expected an operator; Amount has =, !=, <, <=, >, >=, IN, BETWEEN and IS NULL, \
          found the end",
    ),
    ("Amount NOT 5", "column 12: expected IN, BETWEEN or STARTS_WITH, found 5"),
    ("Amount IN (1, 2", "column 16: expected , or ), found the end"),
    ("Amount IN 1", "column 11: expected ( and a list of values, found 1"),
    ("Amount = NULL", "column 10: nothing equals NULL; write IS NULL or IS NOT NULL"),
    ("(Amount = 1", "column 12: expected AND, OR or ), found the end"),
    ("Amount = 1)", "column 11: there is no ( for this )"),
    (
        "Amount = 1 Paid = true",
        "column 12: expected AND, OR, ORDER BY, GROUP BY or the end, found Paid",
    ),
    ("AND", "column 1: expected a field, found AND"),
    (
        "Customer = 'x",
        "column 12: the ' that opens here is never closed; write a ' within a text twice: ''",
    ),
    ("Amount = 1; DROP", "column 11: ';' has no meaning here; texts stand in quotes: 'like this'"),
    ("Note = '!'", "column 8: '!' has no words; a text is found by its words: letters and digits"),
    (
        "ORDER BY CloseTime",
        "column 10: open runs have no CloseTime to order them by; leave them out: AND CloseTime IS NOT NULL",
    ),
    (
        "ORDER BY Amount",
        "column 10: lists cannot be ordered by Amount; order them by StartTime or CloseTime",
    ),
    (
        "GROUP BY Due",
        "column 10: runs cannot be counted by Due; count them by ExecutionStatus, WorkflowType, TaskQueue \
             or an attribute of type keyword, keyword list, int or bool",
    ),
    (
        "GROUP BY Paid ORDER BY StartTime",
        "column 15: a query has ORDER BY or GROUP BY, not both; lists are ordered, counts are grouped",
    ),
    (
        "Paid = true LIMIT 5",
        "column 13: a query has no LIMIT; the list itself takes the number of rows: \
          --limit 10",
    ),
    (
        "ä = 1",
        "column 1: there is no field ä; register it as a search attribute of the namespace first",
    ),
    ("Customer = 'ä' x", "column 16: expected AND, OR, ORDER BY, GROUP BY or the end, found x"),
];

#[test]
fn an_error_names_the_column_and_what_would_be_right() {
    for (text, said) in REFUSED {
        assert_eq!(parse(text).map(|query| query.to_string()), Err((*said).to_owned()), "{text}");
    }
}

#[test]
fn length_depth_and_number_of_comparisons_are_bounded() {
    let long = format!("Customer = '{}'", "x".repeat(5_000));
    assert!(parse(&long).unwrap_err().contains("the limit is 4096"));
    let nested = |depth: usize| format!("{}Paid = true{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(32)).is_ok());
    assert!(parse(&nested(33)).unwrap_err().contains("more than 32 parentheses"));
    assert!(parse(&format!("{}Paid = true", "NOT ".repeat(1_000))).is_ok());
    let many = |count: usize| vec!["Amount = 1"; count].join(" OR ");
    assert!(parse(&many(100)).is_ok());
    assert!(parse(&many(101)).unwrap_err().contains("at most 100 comparisons"));
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + seconds, 0).unwrap()
}

fn payload(json: &str) -> Payload {
    Payload::new(json.to_owned())
}

/// Queries, and whether they hold of the run of the next test.
const HELD: &[(&str, bool)] = &[
    ("", true),
    ("Amount = 120 AND Customer = 'ada'", true),
    ("Amount > 120 OR Amount < 120", false),
    ("Amount BETWEEN 100 AND 120", true),
    ("Paid = true OR Paid = false", false),
    ("Paid != true", true),
    ("Paid IS NULL AND Amount IS NOT NULL", true),
    ("Labels = 'eu' AND Labels = 'urgent'", true),
    ("Labels != 'eu'", false),
    ("Labels IN ('us', 'eu')", true),
    ("Labels STARTS_WITH 'urg'", true),
    ("Note = 'early DELIVERY'", true),
    ("Note = 'early'", false),
    ("Rate <= 0.5", true),
    ("Due > '2027-01-15T08:00:00Z'", true),
    ("WorkflowId STARTS_WITH 'order-' AND TaskQueue = 'orders'", true),
    ("ParentWorkflowId = 'shop' AND ParentRunId != 'ffffffff-ffff-ffff-ffff-ffffffffffff'", true),
    ("CloseTime IS NULL AND NOT CloseTime > '2026-01-01'", true),
    ("Blocked = false AND ExecutionStatus IN ('Running', 'Paused')", true),
    ("WaitKind = 'Signal' AND WaitName = 'pay'", true),
    ("WaitKind = 'Signal' AND WaitName = 'all'", false),
    ("WaitKind = 'Signal' AND WaitUntil > '2027-01-15T08:00:59Z'", true),
    ("WaitKind = 'Condition' AND WaitUntil IS NOT NULL", false),
    ("WaitKind != 'Condition'", false),
    ("WaitKind = 'Timer'", false),
];

#[test]
fn a_condition_holds_of_what_a_run_has() {
    let run = RunId::from_parts(at(0), 7);
    let row = RunRow {
        run,
        namespace: "default".into(),
        workflow: "order-7".into(),
        ordinal: 1,
        workflow_type: "Order".into(),
        status: RunStatus::Running,
        start_key: None,
        started_at: at(0),
        closed_at: None,
        details: Bytes::new(),
        queue: "orders".into(),
        parent: Some(RunParent { workflow: "shop".into(), run: RunId::MIN }),
    };
    let mut map: PayloadMap = [
        ("Amount", "120"),
        ("Customer", "\"ada\""),
        ("Labels", "[\"urgent\", \"eu\"]"),
        ("Note", "\"Late delivery\""),
        ("Rate", "0.5"),
        ("Due", "\"2027-01-15T08:00:10Z\""),
    ]
    .map(|(name, json)| (name.to_owned(), payload(json)))
    .into();
    attributes().check(&mut map, &Limits::default()).unwrap();
    let found: Vec<_> = entries(&map)
        .into_iter()
        .map(|(name, value)| AttributeRow {
            run,
            namespace: "default".into(),
            name: name.to_owned(),
            value: value.into(),
            started_at: at(0),
        })
        .collect();
    let wait = |kind, name: &str, until| WaitRow {
        run,
        wait: Bytes::new(),
        namespace: "default".into(),
        workflow: "order-7".into(),
        workflow_type: "Order".into(),
        kind,
        name: name.into(),
        since: at(0),
        until,
        timer: None,
        details: Bytes::new(),
    };
    let waits =
        [wait(WaitKind::Signal, "pay", at(60)), wait(WaitKind::Condition, "all", Timestamp::NEVER)];
    let subject = Subject {
        row: &row,
        attributes: &found.iter().collect::<Vec<_>>(),
        waits: &waits.iter().collect::<Vec<_>>(),
    };
    for (query, expected) in HELD {
        let parsed = parse(query).unwrap();
        assert_eq!(parsed.condition.holds(subject), *expected, "{query}");
    }
}

#[test]
fn attributes_are_checked_against_their_types() {
    let check = |name: &str, payload: Payload| {
        let mut map: PayloadMap = [(name.to_owned(), payload)].into();
        attributes().check(&mut map, &Limits::default()).map_err(|error| error.to_string())?;
        Ok::<_, String>(map.remove(name).unwrap())
    };
    let said = check("Amount", payload("5")).unwrap();
    assert_eq!(said.metadata["type"], "int");
    assert_eq!(said.metadata["encoding"], "json/plain");
    assert_eq!(check("Amount", said.clone()), Ok(said));
    for gone in ["null", ""] {
        assert!(check("Note", payload(gone)).unwrap().data.is_empty());
    }
    assert!(check("Labels", payload("[]")).unwrap().data.is_empty());
    assert!(!check("Note", payload("\"\"")).unwrap().data.is_empty());
    let mut other = payload("\"x\"");
    other.metadata.insert("type".into(), "keyword".into());
    let mut encrypted = payload("5");
    encrypted.metadata.insert("encoding".into(), "binary/encrypted".into());
    for (name, wrong, said) in [
        ("Amount", payload("5.5"), "is registered as int; write a whole number: 100"),
        ("Amount", other, "is registered as int, and this value says \"keyword\""),
        (
            "Amount",
            encrypted,
            "is encoded as \"binary/encrypted\"; the engine must read it as JSON",
        ),
        ("Amuont", payload("5"), "is not registered in the namespace; did you mean Amount?"),
        ("Region", payload("5"), "is not registered in the namespace; register it with"),
        ("Labels", payload("\"x\""), "write a list of texts"),
        ("Due", payload("\"tomorrow\""), "write \"2026-11-30T12:00:00Z\""),
        (
            "Customer",
            payload(&format!("\"{}\"", "x".repeat(1_001))),
            "has 1001 bytes, the limit is 1000",
        ),
        ("Note", payload(&"[".repeat(10_000)), "write a text of JSON"),
    ] {
        let error = check(name, wrong).unwrap_err();
        assert!(error.contains(said) && error.contains(name), "{error}");
    }
    let words: Vec<_> = (0..501).map(|word| word.to_string()).collect();
    let many = check("Note", payload(&format!("\"{}\"", words.join(" ")))).unwrap();
    let error = check_entries(&[("Note".to_owned(), many)].into(), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("the limit is 500"), "{error}");
}

#[test]
fn names_of_attributes_are_words_without_another_meaning() {
    let limits = Limits { search_attributes: 8, ..Limits::default() };
    let add = |name: &str, kind| {
        let added = attributes().add(name, kind, &limits);
        added.map_err(|error| error.to_string())
    };
    assert_eq!(add("Region", AttributeKind::Keyword), Ok(true));
    assert_eq!(add("Amount", AttributeKind::Int), Ok(false));
    for (name, said) in [
        ("Amount", "Amount is registered as int already"),
        ("workflowid", "is a word of the query language"),
        ("And", "is a word of the query language"),
        ("", "is no name"),
        ("1st", "is no name"),
        ("a b", "is no name"),
        ("ä", "is no name"),
        (&"x".repeat(65), "at most 64"),
    ] {
        let error = add(name, AttributeKind::Keyword).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    let mut full = attributes();
    assert_eq!(full.add("Region", AttributeKind::Keyword, &limits), Ok(true));
    let error = full.add("Other", AttributeKind::Keyword, &limits).unwrap_err();
    assert!(error.to_string().contains("at most 8"), "{error}");
    assert!(full.remove("Region") && !full.remove("Region"));
    assert_eq!(
        "keyword-lst".parse::<AttributeKind>().unwrap_err(),
        "\"keyword-lst\" is none of \
        keyword, keyword-list, text, int, double, bool, time; did you mean keyword-list?"
    );
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c' \"\\\\`%?]{0,4}", "\\PC{0,4}"]
}

fn time() -> impl Strategy<Value = Value> {
    (-62_135_596_800_i64..=253_402_300_799, 0..1_000_000_000_u32)
        .prop_map(|(seconds, nanos)| Value::Time(Timestamp::new(seconds, nanos).unwrap()))
}

fn test() -> impl Strategy<Value = Test> {
    let keyword = || text().prop_map(Value::Text).boxed();
    let system = |field| Just(Field::System(field));
    let attribute = |name: &str| {
        let kind = attributes().get(name).unwrap();
        Just(Field::Attribute(name.to_owned(), kind))
    };
    let run = any::<u128>().prop_map(|id| Value::Run(RunId::from_parts(at(0), id)));
    prop_oneof![
        (system(SystemField::WorkflowId), check(keyword(), true, true)),
        (attribute("Customer"), check(keyword(), true, true)),
        (attribute("Labels"), check(keyword(), false, true)),
        (attribute("Note"), check("[a-z0-9]{1,5}".prop_map(Value::Text).boxed(), false, false)),
        (attribute("Amount"), check(any::<i64>().prop_map(Value::Int).boxed(), true, false)),
        (
            attribute("Rate"),
            check(
                any::<f64>()
                    .prop_filter_map("finite", |number| Finite::new(number).map(Value::Double))
                    .boxed(),
                true,
                false
            )
        ),
        (attribute("Paid"), check(any::<bool>().prop_map(Value::Bool).boxed(), false, false)),
        (system(SystemField::StartTime), check(time().boxed(), true, false)),
        (
            system(SystemField::ExecutionStatus),
            check(
                (0..9_usize).prop_map(|it| Value::Status(RunStatus::ALL[it])).boxed(),
                false,
                false
            )
        ),
        (
            system(SystemField::WaitKind),
            check((0..6_usize).prop_map(|it| Value::Wait(WaitKind::ALL[it])).boxed(), false, false)
        ),
        (system(SystemField::WaitUntil), check(time().boxed(), true, false)),
        (system(SystemField::RunId), check(run.boxed(), false, false)),
    ]
    .prop_map(|(field, check)| Test { field, check })
}

fn check(value: BoxedStrategy<Value>, ordered: bool, prefixed: bool) -> BoxedStrategy<Check> {
    let equal = value.clone().prop_map(|value| Check::Compare(Comparison::Equal, value));
    let several = prop::collection::btree_set(value.clone(), 2..4)
        .prop_map(|it| Check::OneOf(it.into_iter().collect()));
    let mut choices = vec![equal.boxed(), several.boxed(), Just(Check::Known).boxed()];
    if ordered {
        let comparison = prop_oneof![
            Just(Comparison::Less),
            Just(Comparison::AtMost),
            Just(Comparison::More),
            Just(Comparison::AtLeast)
        ];
        let compared = (comparison, value.clone());
        choices.push(compared.prop_map(|(how, value)| Check::Compare(how, value)).boxed());
        let between = (value.clone(), value);
        choices.push(between.prop_map(|(from, to)| Check::Between(from, to)).boxed());
    }
    if prefixed {
        choices.push(text().prop_map(Check::StartsWith).boxed());
    }
    prop::strategy::Union::new(choices).boxed()
}

fn condition() -> impl Strategy<Value = Condition> {
    test().prop_map(Condition::of).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Condition::all),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Condition::any),
            inner.prop_map(Condition::negated),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(condition in condition(), ascending in any::<bool>()) {
        let order = Order { by: OrderField::StartTime, descending: !ascending };
        let query = Query { condition, order, group: None };
        let printed = query.to_string();
        if printed.len() <= super::QUERY_BYTES {
            prop_assert_eq!(parse(&printed), Ok(query), "{}", printed);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(words in prop::collection::vec(word(), 0..20)) {
        let text = words.join(" ");
        match parse(&text) {
            Ok(query) => {
                prop_assert_eq!(parse(&query.to_string()), Ok(query));
            }
            Err(error) => prop_assert!(error.starts_with("column "), "{}", error),
        }
    }
}

/// Pieces of queries, and others.
fn word() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "Amount",
        "Customer",
        "Labels",
        "Note",
        "WaitName",
        "WaitKind",
        "StartTime",
        "ExecutionStatus",
        "=",
        "!=",
        "<",
        ">=",
        "IN",
        "(",
        ")",
        ",",
        "NOT",
        "AND",
        "OR",
        "BETWEEN",
        "STARTS_WITH",
        "IS",
        "NULL",
        "ORDER",
        "GROUP",
        "BY",
        "DESC",
        "'a'",
        "'Running'",
        "'Timer'",
        "'2026-01-01'",
        "5",
        "-1.5",
        "true",
        "'",
    ]);
    prop_oneof![20 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}
