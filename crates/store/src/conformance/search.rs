//! Checks of queries: random ones over random runs, in every order, in parts, counted and grouped. What the
//! core says about each run is what a store must find.

use abide_core::{
    ids::NamespaceId,
    list::WaitKind,
    search::{
        AttributeKind, Check as FieldCheck, Comparison, Condition, Field, Finite, Order,
        OrderField, Query, SystemField, Test, Value,
    },
};

use crate::{
    Batch, RunFilter, Store, Write,
    conformance::{
        Check, checks, commit,
        random::Random,
        read,
        samples::{attribute_row, run, run_row, shard, time, wait_row},
    },
    memory::Tables,
    rows::{ListLimit, RunParent, RunRow, RunStatus},
};

pub(super) const CHECKS: &[Check] = checks![
    random_queries_1,
    random_queries_2,
    random_queries_3,
    an_attribute_of_another_type_is_not_found,
    what_is_removed_is_not_found,
    a_long_list_of_values_is_searched,
];

/// Runs in each world: more than most parts examine.
const RUNS: u64 = 60;

const ATTRIBUTES: [(&str, AttributeKind); 7] = [
    ("Customer", AttributeKind::Keyword),
    ("Labels", AttributeKind::KeywordList),
    ("Note", AttributeKind::Text),
    ("Amount", AttributeKind::Int),
    ("Rate", AttributeKind::Double),
    ("Paid", AttributeKind::Bool),
    ("Due", AttributeKind::Time),
];

fn random_queries_1(store: &dyn Store) {
    agree(store, 1);
}

fn random_queries_2(store: &dyn Store) {
    agree(store, 2);
}

fn random_queries_3(store: &dyn Store) {
    agree(store, 3);
}

fn agree(store: &dyn Store, seed: u64) {
    let mut random = Random(seed);
    let mut tables = Tables::default();
    for number in 0..RUNS {
        let of = shard(u8::try_from(number % 5).unwrap_or_default());
        let writes = random.run_with_everything(number);
        let batch = Batch { shard: of, epoch: 0, writes: writes.clone() };
        assert_eq!(tables.apply(&batch), Ok(()));
        commit(store, of, writes);
    }
    for _ in 0..120 {
        let filter = random.filter();
        let context = format!("seed {seed}: {filter:?}");
        let expected = tables.runs(&filter, usize::MAX);
        let all = read(store.runs(filter.clone(), ListLimit::rows(1_000))).found;
        assert_eq!(ids(&all), ids(&expected), "{context}");
        assert_eq!(all, expected, "{context}");
        for examined in [1, 7, 30, 1_000] {
            check_parts(store, &filter, examined, &expected);
        }
        let tallied = read(store.tally_runs(filter.clone(), 1_000));
        let counted = tables.tally_runs(&filter, 1_000);
        assert_eq!(tallied, counted, "{context}");
        let some = read(store.tally_runs(filter, 5));
        let complete = counted
            .groups
            .iter()
            .all(|(group, count)| some.groups.get(group).copied().unwrap_or_default() == *count);
        assert!(some.more || complete, "{context}: {some:?} of {counted:?}");
    }
}

fn ids(rows: &[RunRow]) -> Vec<String> {
    rows.iter().map(|row| row.workflow.to_string()).collect()
}

/// Reads of a bounded number of runs add up to the whole, each in its place.
fn check_parts(store: &dyn Store, filter: &RunFilter, examined: usize, expected: &[RunRow]) {
    let mut listed = Vec::new();
    let mut next = filter.clone();
    loop {
        let limit = ListLimit { examined, ..ListLimit::rows(4) };
        let part = read(store.runs(next.clone(), limit));
        assert!(part.found.len() <= examined.min(4), "{examined} at a time: {filter:?}");
        listed.extend(part.found);
        let Some(end) = part.next else { break };
        assert!(next.after.is_none_or(|after| filter.order().behind(end, after)), "{filter:?}");
        next.after = Some(end);
    }
    assert_eq!(ids(&listed), ids(expected), "{examined} at a time: {filter:?}");
    let (mut counted, mut next) = (0, filter.clone());
    loop {
        let part = read(store.count_runs(next.clone(), examined));
        counted += part.found;
        let Some(end) = part.next else { break };
        next.after = Some(end);
    }
    assert_eq!(counted, expected.len() as u64, "{examined} at a time: {filter:?}");
}

fn an_attribute_of_another_type_is_not_found(store: &dyn Store) {
    let of = shard(1);
    let entry = |kind, value: Value| attribute_row(run(1), "Amount", &value.to_entry(kind));
    let writes = vec![
        Write::PutRun(run_row(run(1))),
        Write::PutAttribute(entry(AttributeKind::Keyword, Value::Text("5".into()))),
    ];
    commit(store, of, writes);
    let found = |kind, check: FieldCheck| {
        let field = Field::Attribute("Amount".to_owned(), kind);
        let filter = searching(Condition::of(Test { field, check }), "namespace");
        read(store.runs(filter, ListLimit::rows(10))).found.len()
    };
    assert_eq!(found(AttributeKind::Keyword, FieldCheck::Known), 1);
    for kind in [AttributeKind::KeywordList, AttributeKind::Int, AttributeKind::Double] {
        assert_eq!(found(kind, FieldCheck::Known), 0, "{kind}");
    }
    let least = FieldCheck::Compare(Comparison::AtLeast, Value::Int(i64::MIN));
    assert_eq!(found(AttributeKind::Int, least), 0);
}

fn a_long_list_of_values_is_searched(store: &dyn Store) {
    let entry = attribute_row(run(1), "Amount", &Value::Int(1999).to_entry(AttributeKind::Int));
    commit(store, shard(1), vec![Write::PutRun(run_row(run(1))), Write::PutAttribute(entry)]);
    let found = |values: std::ops::Range<i64>| {
        let check = FieldCheck::OneOf(values.map(Value::Int).collect());
        let field = Field::Attribute("Amount".to_owned(), AttributeKind::Int);
        let filter = searching(Condition::of(Test { field, check }), "namespace");
        read(store.runs(filter, ListLimit::rows(10))).found.len()
    };
    // More than a query of the longest text can hold.
    assert_eq!((found(0..2000), found(0..1999)), (1, 0));
}

fn what_is_removed_is_not_found(store: &dyn Store) {
    let of = shard(1);
    let entry = |number, text: &str| {
        let value = Value::Text(text.to_owned()).to_entry(AttributeKind::Keyword);
        attribute_row(run(number), "Customer", &value)
    };
    let found = |text: &str| {
        let field = Field::Attribute("Customer".to_owned(), AttributeKind::Keyword);
        let check = FieldCheck::Compare(Comparison::Equal, Value::Text(text.to_owned()));
        let filter = searching(Condition::of(Test { field, check }), "namespace");
        let found = read(store.runs(filter, ListLimit::rows(10))).found;
        found.into_iter().map(|row| row.run).collect::<Vec<_>>()
    };
    let writes = [1, 2].map(|number| Write::PutRun(run_row(run(number)))).into_iter();
    let entries = [(1, "ada"), (2, "ada"), (2, "bob")].map(|(run, text)| entry(run, text));
    commit(store, of, writes.chain(entries.map(Write::PutAttribute)).collect());
    assert_eq!(found("ada"), [run(2), run(1)]);
    let gone = entry(1, "ada");
    let (run_id, name, value) = (gone.run, gone.name, gone.value);
    commit(store, of, vec![Write::DeleteAttribute { run: run_id, name, value }]);
    assert_eq!(found("ada"), [run(2)]);
    // A run that is deleted and written again in one batch has none of its attributes.
    commit(store, of, vec![Write::DeleteRun(run(2)), Write::PutRun(run_row(run(2)))]);
    assert_eq!((found("ada"), found("bob")), (Vec::new(), Vec::new()));
    let again = vec![Write::DeleteRun(run(2)), Write::PutAttribute(entry(2, "bob"))];
    commit(store, of, again);
    commit(store, of, vec![Write::PutRun(run_row(run(2)))]);
    assert_eq!((found("ada"), found("bob")), (Vec::new(), vec![run(2)]));
}

fn searching(condition: Condition, namespace: &str) -> RunFilter {
    let query = Query { condition, ..Query::default() };
    RunFilter {
        namespace: Some(NamespaceId::from(namespace)),
        search: Some(query.into()),
        ..RunFilter::default()
    }
}

impl Random {
    /// A run that has values of some attributes and waits for something, if it is open.
    fn run_with_everything(&mut self, number: u64) -> Vec<Write> {
        let mut row = run_row(run(number));
        row.namespace = self.pick(&["n", "n", "m"]).into();
        row.workflow = format!("{}-{number}", self.pick(&["order", "shop", "ü"])).into();
        row.ordinal = number;
        row.workflow_type = self.pick(&["Order", "Shop", "Rare"]).to_owned();
        row.status = self.pick(&RunStatus::ALL);
        row.started_at = self.near();
        row.closed_at = (!row.status.is_open()).then(|| self.near());
        row.queue = self.pick(&["", "q", "r"]).to_owned();
        row.parent = (self.below(3) == 0).then(|| RunParent {
            workflow: self.pick(&["p", "r"]).into(),
            run: run(self.below(3)),
        });
        let mut writes = Vec::new();
        for (name, kind) in ATTRIBUTES {
            for _ in 0..self.below(if kind == AttributeKind::KeywordList { 4 } else { 2 }) {
                let value = self.value(kind).to_entry(kind);
                let mut entry = attribute_row(row.run, name, &value);
                entry.namespace = row.namespace.clone();
                entry.started_at = row.started_at;
                writes.push(Write::PutAttribute(entry));
            }
        }
        for wait in [b"a" as &'static [u8], b"b"] {
            if row.status.is_open() && self.below(2) == 0 {
                let mut waiting = wait_row(row.run, wait);
                waiting.namespace = row.namespace.clone();
                (waiting.kind, waiting.name) =
                    (self.pick(&WaitKind::ALL), self.pick(&["", "a", "b"]).to_owned());
                waiting.until = self.time();
                writes.push(Write::PutWait(waiting));
            }
        }
        writes.push(Write::PutRun(row));
        writes
    }

    fn near(&mut self) -> abide_core::time::Timestamp {
        time(1_800_000_000 + i64::try_from(self.below(12)).unwrap_or_default(), 0)
    }

    fn value(&mut self, kind: AttributeKind) -> Value {
        let number = i64::try_from(self.below(4)).unwrap_or_default() - 2;
        match kind {
            AttributeKind::Keyword | AttributeKind::KeywordList | AttributeKind::Text => {
                Value::Text(self.pick(&["", "a", "ab", "b", "a\0", "ü"]).to_owned())
            }
            AttributeKind::Int => Value::Int(self.pick(&[i64::MIN, number, number, i64::MAX])),
            AttributeKind::Double => {
                let number = self.pick(&[-0.5, 0.0, 1.5, 1e300]);
                Finite::new(number).map_or(Value::Bool(false), Value::Double)
            }
            AttributeKind::Bool => Value::Bool(number < 0),
            AttributeKind::Time => Value::Time(self.time()),
        }
    }

    fn filter(&mut self) -> RunFilter {
        let mut condition = self.condition(3);
        let by = self.pick(&[OrderField::StartTime, OrderField::StartTime, OrderField::CloseTime]);
        if by == OrderField::CloseTime {
            let field = Field::System(SystemField::CloseTime);
            let closed = Condition::of(Test { field, check: FieldCheck::Known });
            condition = Condition::all(vec![condition, closed]);
        }
        let order = Order { by, descending: self.below(3) > 0 };
        let (name, kind) = self.pick(&ATTRIBUTES);
        let group = [
            None,
            Some(Field::System(SystemField::ExecutionStatus)),
            Some(Field::System(SystemField::TaskQueue)),
            Some(Field::System(SystemField::WorkflowType)),
            Some(Field::Attribute(name.to_owned(), kind)).filter(Field::groups),
        ];
        let group = group[usize::try_from(self.below(5)).unwrap_or_default()].clone();
        let mut filter = searching(condition, "n");
        filter.search =
            filter.search.map(|query| Query { order, group, ..(*query).clone() }.into());
        match self.below(8) {
            0 => filter.namespace = None,
            1 => filter.workflow_type = Some("Order".to_owned()),
            2 => filter.statuses = vec![RunStatus::Running, RunStatus::Failed],
            3 => filter.started_from = Some(self.near()),
            4 => filter.started_before = Some(self.near()),
            5 => (filter.namespace, filter.known) = (None, ["m".into()].into()),
            _ => {}
        }
        filter
    }

    fn condition(&mut self, depth: u8) -> Condition {
        if depth == 0 || self.below(3) == 0 {
            return Condition::of(self.test());
        }
        let parts =
            |this: &mut Self| (0..=this.below(3)).map(|_| this.condition(depth - 1)).collect();
        match self.below(5) {
            0..=2 => Condition::all(parts(self)),
            3 => Condition::any(parts(self)),
            _ => self.condition(depth - 1).negated(),
        }
    }

    fn test(&mut self) -> Test {
        let (name, kind) = self.pick(&ATTRIBUTES);
        let field = match self.below(2) {
            0 => Field::Attribute(name.to_owned(), kind),
            _ => Field::System(self.pick(&SystemField::ALL)),
        };
        let check = self.check(&field);
        Test { field, check }
    }

    fn check(&mut self, field: &Field) -> FieldCheck {
        use abide_core::search::field::FieldType;
        let kind = field.field_type();
        let ordered = matches!(
            kind,
            FieldType::Keyword | FieldType::Int | FieldType::Double | FieldType::Time
        );
        let prefixed = matches!(kind, FieldType::Keyword | FieldType::KeywordList);
        match self.below(6) {
            0 => FieldCheck::Known,
            1 => FieldCheck::OneOf(vec![self.value_of(field), self.value_of(field)]),
            2 if ordered => FieldCheck::Between(self.value_of(field), self.value_of(field)),
            3 if ordered => {
                let comparisons =
                    [Comparison::Less, Comparison::AtMost, Comparison::More, Comparison::AtLeast];
                FieldCheck::Compare(self.pick(&comparisons), self.value_of(field))
            }
            4 if prefixed => FieldCheck::StartsWith(
                self.pick(&["", "a", "order-", "ü", "\u{10ffff}"]).to_owned(),
            ),
            _ => FieldCheck::Compare(Comparison::Equal, self.value_of(field)),
        }
    }

    fn value_of(&mut self, field: &Field) -> Value {
        let field = match field {
            Field::Attribute(_, kind) => return self.value(*kind),
            Field::System(field) => *field,
        };
        match field {
            SystemField::WorkflowId => {
                Value::Text(self.pick(&["order-3", "shop-4", "ü-5", "order"]).to_owned())
            }
            SystemField::WorkflowType => {
                Value::Text(self.pick(&["Order", "Shop", "Rare", "Other"]).to_owned())
            }
            SystemField::TaskQueue => Value::Text(self.pick(&["", "q", "r", "s"]).to_owned()),
            SystemField::ParentWorkflowId => Value::Text(self.pick(&["p", "r", "s"]).to_owned()),
            SystemField::WaitName => Value::Text(self.pick(&["", "a", "b", "c"]).to_owned()),
            SystemField::RunId | SystemField::ParentRunId => Value::Run(run(self.below(RUNS))),
            SystemField::ExecutionStatus => Value::Status(self.pick(&RunStatus::ALL)),
            SystemField::StartTime | SystemField::CloseTime => Value::Time(self.near()),
            SystemField::WaitUntil => Value::Time(self.time()),
            SystemField::Blocked => Value::Bool(self.below(2) == 0),
            SystemField::WaitKind => Value::Wait(self.pick(&WaitKind::ALL)),
        }
    }
}
