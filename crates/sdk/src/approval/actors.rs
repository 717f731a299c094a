//! Who may act on a request, for everyone who lists what waits.

/// Whether a person with these names and roles may act on a wait whose listed actors are these: one
/// of the names is listed, or none is, because then anyone may.
pub fn concerns<N: AsRef<str>>(actors: &[String], names: &[N]) -> bool {
    let named = |actor: &String| names.iter().any(|name| name.as_ref() == actor);
    actors.is_empty() || actors.iter().any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_named_may_act_and_anybody_if_nobody_is() {
        let anna = ["anna".to_owned()];
        assert!(concerns(&anna, &["bob", "anna"]));
        assert!(!concerns(&anna, &["bob"]));
        assert!(concerns(&[], &["bob"]));
    }
}
