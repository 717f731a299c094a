//! Splits a query into words, texts, numbers and signs.

use super::{QUERY_BYTES, QueryError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Where it begins, in characters from 1.
    pub column: usize,
    pub kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Word(String),
    /// A name in back quotes, which is no keyword.
    Quoted(String),
    Text(String),
    Number(String),
    Sign(&'static str),
    End,
}

impl TokenKind {
    /// How an error names it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) | Self::Number(word) => word.clone(),
            Self::Quoted(name) => format!("`{name}`"),
            Self::Text(text) => format!("'{text}'"),
            Self::Sign(sign) => (*sign).to_owned(),
            Self::End => "the end".to_owned(),
        }
    }

    /// It is this keyword, in any case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

/// Signs, the longer ones first.
const SIGNS: [&str; 10] = ["<=", ">=", "<>", "!=", "<", ">", "=", "(", ")", ","];

/// All tokens, and the end as the last.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    if text.len() > QUERY_BYTES {
        let problem = format!("has {} bytes, the limit is {QUERY_BYTES}", text.len());
        let hint = "give what they have in common an attribute of its own";
        return Err(QueryError::new(1, format!("the query {problem}")).hint(hint));
    }
    let characters: Vec<char> = text.chars().collect();
    let mut lexer = Lexer { characters: &characters, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip(char::is_whitespace);
        let column = lexer.at + 1;
        let kind = lexer.token()?;
        let end = kind == TokenKind::End;
        tokens.push(Token { column, kind });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    characters: &'a [char],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&skipped) {
            self.at += 1;
        }
    }

    fn take(&mut self, taken: impl Fn(char) -> bool) -> String {
        let begin = self.at;
        self.skip(taken);
        self.characters[begin..self.at].iter().collect()
    }

    fn token(&mut self) -> Result<TokenKind, QueryError> {
        let Some(first) = self.peek() else { return Ok(TokenKind::End) };
        match first {
            '\'' | '"' => self.quoted(first).map(TokenKind::Text),
            '`' => self.quoted(first).map(TokenKind::Quoted),
            _ if first.is_ascii_digit() || matches!(first, '-' | '+' | '.') => {
                let part = |letter: char| {
                    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '+' | '.' | '_')
                };
                Ok(TokenKind::Number(self.take(part)))
            }
            _ if first.is_alphabetic() || first == '_' => {
                Ok(TokenKind::Word(self.take(|letter| letter.is_alphanumeric() || letter == '_')))
            }
            _ => self.sign(),
        }
    }

    fn sign(&mut self) -> Result<TokenKind, QueryError> {
        let fits = |sign: &&str| {
            let mut letters = sign.chars().enumerate();
            letters.all(|(index, letter)| self.characters.get(self.at + index) == Some(&letter))
        };
        let Some(sign) = SIGNS.into_iter().find(fits) else {
            let found = self.peek().unwrap_or_default();
            let error = QueryError::new(self.at + 1, format!("{found:?} has no meaning here"));
            return Err(error.hint("texts stand in quotes: 'like this'"));
        };
        self.at += sign.len();
        Ok(TokenKind::Sign(sign))
    }

    /// Text up to the closing quote. A quote within it is written twice.
    fn quoted(&mut self, quote: char) -> Result<String, QueryError> {
        let begin = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            text.push_str(&self.take(|letter| letter != quote));
            if self.peek().is_none() {
                let problem = format!("the {quote} that opens here is never closed");
                let hint = format!("write a {quote} within a text twice: {quote}{quote}");
                return Err(QueryError::new(begin + 1, problem).hint(hint));
            }
            self.at += 1;
            if self.peek() != Some(quote) {
                return Ok(text);
            }
            text.push(quote);
            self.at += 1;
        }
    }
}
