//! Words of a command line as a shell reads them, so that a command in a hint can be copied, whatever
//! the name in it is.

use std::fmt::Write as _;

use abide_core::visible::visible;

/// The word as a shell takes it for one word.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./:@%+,=".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if visible(word) == word {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // Only this form of a quote has escapes for what a terminal does not show.
    let mut text = String::from("$'");
    for letter in word.chars() {
        // Writing to a string cannot fail.
        let _ = match letter {
            '\\' | '\'' => write!(text, "\\{letter}"),
            hidden if visible(hidden.encode_utf8(&mut [0; 4])).len() > hidden.len_utf8() => {
                write!(text, "\\U{:08x}", u32::from(hidden))
            }
            letter => write!(text, "{letter}"),
        };
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        for (word, copied) in [
            ("order-7", "order-7"),
            ("tenant/Grüße:1@x.y", "tenant/Grüße:1@x.y"),
            ("y; echo pwned", "'y; echo pwned'"),
            ("$(reboot)", "'$(reboot)'"),
            ("`reboot`", "'`reboot`'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("a\nb's\\\u{1b}[1A", r"$'a\U0000000ab\'s\\\U0000001b[1A'"),
        ] {
            assert_eq!(quoted(word), copied, "{word:?}");
        }
    }
}
