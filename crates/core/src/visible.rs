//! Escapes text from users for logs and terminals, so that it cannot begin a line, move the cursor,
//! change colours or reorder the text around it. Otherwise a user who names a workflow could forge
//! what an operator reads.

use std::fmt::Write as _;

/// The text on one line: control characters are shown as escapes.
pub fn visible(text: &str) -> String {
    escaped(text, |letter| letter.is_control())
}

/// The same for a text that may have several lines.
pub fn visible_lines(text: &str) -> String {
    escaped(text, |letter| letter.is_control() && letter != '\n')
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if hidden(letter) || reorders(letter) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{}", letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Characters that change the direction of text.
const fn reorders(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_change_the_screen_is_shown_as_an_escape() {
        let hostile = "a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}\r\n\tb";
        assert_eq!(visible(hostile), "a\\u{1b}[31mred\\u{7}\\u{9b}2J\\u{202e}\\r\\n\\tb");
        assert_eq!(visible_lines("one\ntwo\u{1b}c"), "one\ntwo\\u{1b}c");
        assert_eq!(visible("Grüße, 世界 \\ \"x\""), "Grüße, 世界 \\ \"x\"");
    }
}
