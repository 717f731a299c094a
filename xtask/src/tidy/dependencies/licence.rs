//! Licence expressions such as `(MIT OR Apache-2.0) AND Unicode-3.0`: whether a set of allowed licences
//! satisfies them. Older crates write `/` for `OR`.

/// Whether the allowed licences satisfy the expression; the error says what is wrong with it.
pub(super) fn satisfied(
    expression: &str,
    allowed: &dyn Fn(&str) -> bool,
) -> Result<bool, &'static str> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let satisfied = words.any_of()?;
    if words.peek().is_some() { Err("has more than one expression") } else { Ok(satisfied) }
}

struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Words<'a> {
    fn any_of(&mut self) -> Result<bool, &'static str> {
        let mut satisfied = self.all_of()?;
        while self.take("OR") {
            satisfied |= self.all_of()?;
        }
        Ok(satisfied)
    }

    fn all_of(&mut self) -> Result<bool, &'static str> {
        let mut satisfied = self.one()?;
        while self.take("AND") {
            satisfied &= self.one()?;
        }
        Ok(satisfied)
    }

    fn one(&mut self) -> Result<bool, &'static str> {
        if self.take("(") {
            let satisfied = self.any_of()?;
            return if self.take(")") { Ok(satisfied) } else { Err("lacks a `)`") };
        }
        let name = self.word()?;
        if !self.take("WITH") {
            return Ok((self.allowed)(name));
        }
        // An exception gives more rights, and still is a licence of its own to decide on.
        let exception = self.word()?;
        Ok((self.allowed)(&format!("{name} WITH {exception}")))
    }

    fn word(&mut self) -> Result<&'a str, &'static str> {
        let word = *self.words.get(self.at).ok_or("ends too early or is missing")?;
        self.at += 1;
        Ok(word)
    }

    fn take(&mut self, word: &str) -> bool {
        let next = self.peek() == Some(word);
        self.at += usize::from(next);
        next
    }

    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str) -> Result<bool, &'static str> {
        satisfied(expression, &|name| ["MIT", "ISC"].contains(&name))
    }

    #[test]
    fn expressions_are_evaluated() {
        for good in ["MIT", "GPL OR MIT", "MIT/GPL", "GPL / MIT", "(GPL OR ISC) AND MIT"] {
            assert_eq!(check(good), Ok(true), "{good}");
        }
        for bad in ["GPL", "MIT AND GPL", "MIT AND (GPL OR BSD)", "MIT WITH a-rider"] {
            assert_eq!(check(bad), Ok(false), "{bad}");
        }
        assert_eq!(check("MIT WITH a-rider OR ISC"), Ok(true));
    }

    #[test]
    fn broken_expressions_are_refused() {
        assert_eq!(check(""), Err("ends too early or is missing"));
        assert_eq!(check("MIT OR"), Err("ends too early or is missing"));
        assert_eq!(check("(MIT"), Err("lacks a `)`"));
        assert_eq!(check("MIT ISC"), Err("has more than one expression"));
    }
}
