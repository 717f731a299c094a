//! Whom a request concerns, for everyone who lists what waits.

/// Whether somebody of these names and roles may act where lists show these actors: one of them is
/// shown, or none at all, for then anyone may.
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
