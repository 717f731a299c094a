//! The mismatch between a run's code and its history.

use abide_core::event::{Blocked, BlockedReason};
use serde_json::{Value, json};

use super::snake_case;

/// For programs: a field for each fact. Keys and fingerprints are those of a condition, if one
/// differs.
pub(crate) fn blocked(blocked: &Blocked) -> Value {
    json!({
        "reason": snake_case(&format!("{:?}", blocked.reason)), "at": blocked.at,
        "expected": blocked.expected, "recorded": blocked.recorded,
        "expected_key": blocked.expected_key, "recorded_key": blocked.recorded_key,
        "expected_fingerprint": blocked.expected_fingerprint,
        "recorded_fingerprint": blocked.recorded_fingerprint,
    })
}

/// For people: what code does, and what history has instead.
pub(crate) fn blocked_lines(blocked: &Blocked) -> String {
    let mut text = format!(
        "\n  code does:    {}\n  history has:  {} (event {})",
        blocked.expected,
        blocked.recorded.join(", "),
        blocked.at
    );
    if blocked.reason == BlockedReason::ConditionDefinition {
        let (code, history) = (
            condition(blocked.expected_key.as_deref(), blocked.expected_fingerprint.as_deref()),
            condition(blocked.recorded_key.as_deref(), blocked.recorded_fingerprint.as_deref()),
        );
        text.push_str(&format!("\n  in the code:  {code}\n  in history:   {history}"));
    }
    text
}

fn condition(key: Option<&str>, fingerprint: Option<&str>) -> String {
    format!("key {}, fingerprint {}", key.unwrap_or("none"), fingerprint.unwrap_or("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_a_field_for_each_fact_and_people_the_difference() {
        let told = Blocked {
            reason: BlockedReason::ConditionDefinition,
            expected: "WaitOpened condition-1, paid".into(),
            recorded: vec!["WaitOpened condition-1, paid".into()],
            at: 5,
            expected_key: Some("paid".into()),
            recorded_key: Some("paid".into()),
            expected_fingerprint: Some("new".into()),
            recorded_fingerprint: Some("old".into()),
        };
        let fields = json!({
            "reason": "condition_definition", "at": 5,
            "expected": "WaitOpened condition-1, paid",
            "recorded": ["WaitOpened condition-1, paid"],
            "expected_key": "paid", "recorded_key": "paid",
            "expected_fingerprint": "new", "recorded_fingerprint": "old",
        });
        assert_eq!(blocked(&told), fields);
        let lines = blocked_lines(&told);
        assert!(lines.contains("in the code:  key paid, fingerprint new"), "{lines}");
        assert!(lines.contains("in history:   key paid, fingerprint old"), "{lines}");
    }
}
