//! One field of a calendar: which numbers it allows. The same text works in calendars and in cron
//! expressions: `*`, numbers, names, ranges, steps and lists of them.

/// The numbers that a field can have, and the names of some of them.
pub(super) struct FieldRange {
    pub(super) name: &'static str,
    pub(super) least: u32,
    pub(super) most: u32,
    /// Names of the numbers from `least` on.
    names: &'static [&'static str],
}

pub(super) const SECOND: FieldRange = FieldRange::plain("second", 0, 59);
pub(super) const MINUTE: FieldRange = FieldRange::plain("minute", 0, 59);
pub(super) const HOUR: FieldRange = FieldRange::plain("hour", 0, 23);
pub(super) const DAY: FieldRange = FieldRange::plain("day", 1, 31);
pub(super) const YEAR: FieldRange = FieldRange::plain("year", 1970, 9999);
pub(super) const MONTH: FieldRange = FieldRange {
    name: "month",
    least: 1,
    most: 12,
    names: &[
        "JANUARY",
        "FEBRUARY",
        "MARCH",
        "APRIL",
        "MAY",
        "JUNE",
        "JULY",
        "AUGUST",
        "SEPTEMBER",
        "OCTOBER",
        "NOVEMBER",
        "DECEMBER",
    ],
};
/// Sunday is 0 and also 7.
pub(super) const WEEKDAY: FieldRange = FieldRange {
    name: "weekday",
    least: 0,
    most: 7,
    names: &["SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"],
};

/// A part of a field between commas, from `first` to `last` in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) step: u32,
}

impl Span {
    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(usize::try_from(self.step).unwrap_or(usize::MAX))
    }

    /// First number after `number`.
    pub(super) fn next_after(self, number: u32) -> Option<u32> {
        let steps = number.checked_sub(self.first).map_or(0, |passed| passed / self.step + 1);
        let next = steps.checked_mul(self.step)?.checked_add(self.first)?;
        (next <= self.last).then_some(next)
    }
}

impl FieldRange {
    const fn plain(name: &'static str, least: u32, most: u32) -> Self {
        Self { name, least, most, names: &[] }
    }

    /// The spans of a field. A refusal names the part at fault and what the field takes.
    pub(super) fn spans(&self, text: &str) -> Result<Vec<Span>, String> {
        text.split(',').map(|part| self.span(part.trim())).collect()
    }

    /// The numbers of a field below 64, as the bits of a word.
    pub(super) fn bits(&self, text: &str) -> Result<u64, String> {
        let numbers = self.spans(text)?.into_iter().flat_map(Span::numbers);
        Ok(numbers.fold(0, |bits, number| bits | 1 << number))
    }

    /// All numbers of the field, as the bits of a word.
    pub(super) fn all(&self) -> u64 {
        (self.least..=self.most).fold(0, |bits, number| bits | 1 << number)
    }

    pub(super) fn span(&self, part: &str) -> Result<Span, String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (self.least, self.most.min(self.last_of_all())),
            Some((first, last)) => {
                let (first, last) = (self.number(first)?, self.number(last)?);
                // A week that ends on Sunday: FRI-SUN.
                let sunday = self.name == WEEKDAY.name && last == 0 && first > 0;
                (first, if sunday { self.most } else { last })
            }
            None => {
                let first = self.number(range)?;
                (first, if step.is_some() { self.last_of_all() } else { first })
            }
        };
        if last < first {
            let Self { name, least, most, .. } = self;
            return Err(format!(
                "{name} {range} ends before it begins; write {first}-{most},{least}-{last}"
            ));
        }
        Ok(Span { first, last, step: step.unwrap_or(1) })
    }

    /// The last number of `*`: Sunday counts once.
    fn last_of_all(&self) -> u32 {
        if self.name == WEEKDAY.name { 6 } else { self.most }
    }

    fn step(&self, text: &str) -> Result<u32, String> {
        let step = text.parse().ok().filter(|step| (1..=self.most).contains(step));
        step.ok_or_else(|| {
            format!("{} has the step {text:?}, which is not in 1 to {}", self.name, self.most)
        })
    }

    pub(super) fn number(&self, text: &str) -> Result<u32, String> {
        let Self { name, least, most, names } = self;
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().ok().filter(|number| (least..=most).contains(&number));
            return number.ok_or_else(|| format!("{name} {text} is not in {least} to {most}"));
        }
        let upper = text.to_ascii_uppercase();
        let named = |known: &str| upper == known || upper == known[..3];
        let place = names.iter().position(|known| named(known));
        let number = place.and_then(|place| u32::try_from(place).ok()).map(|place| place + least);
        number.ok_or_else(|| {
            let example = names.first().map(|known| format!(", or a name such as {}", &known[..3]));
            let example = example.unwrap_or_default();
            format!("{name} {text:?} is not a number from {least} to {most}{example}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(field: &FieldRange, text: &str) -> Vec<u32> {
        let bits = field.bits(text).unwrap();
        (0..64).filter(|number| bits & 1 << number != 0).collect()
    }

    #[test]
    fn fields_allow_lists_ranges_steps_and_names() {
        assert_eq!(numbers(&HOUR, "9-17/4, 20"), [9, 13, 17, 20]);
        assert_eq!(numbers(&MINUTE, "*/20"), [0, 20, 40]);
        assert_eq!(numbers(&MINUTE, "45/5"), [45, 50, 55]);
        assert_eq!(numbers(&MONTH, "jan,Apr-JUNE"), [1, 4, 5, 6]);
        assert_eq!(numbers(&WEEKDAY, "*"), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(numbers(&WEEKDAY, "7,MON-FRI/2"), [1, 3, 5, 7]);
        assert_eq!(numbers(&WEEKDAY, "1/3"), [1, 4]);
        assert_eq!(numbers(&WEEKDAY, "SAT-SUN"), [6, 7]);
        assert_eq!(numbers(&WEEKDAY, "0-0"), [0]);
        assert_eq!(numbers(&DAY, "?"), (1..=31).collect::<Vec<_>>());
    }

    #[test]
    fn a_refusal_names_field_part_and_bound() {
        let problem = |field: &FieldRange, text| field.bits(text).unwrap_err();
        assert_eq!(problem(&HOUR, "25"), "hour 25 is not in 0 to 23");
        assert_eq!(problem(&MONTH, "99999999999"), "month 99999999999 is not in 1 to 12");
        assert_eq!(problem(&HOUR, "*/0"), "hour has the step \"0\", which is not in 1 to 23");
        let wrapped = "hour 22-2 ends before it begins; write 22-23,0-2";
        assert_eq!(problem(&HOUR, "22-2"), wrapped);
        let word = "weekday \"SOMEDAY\" is not a number from 0 to 7, or a name such as SUN";
        assert_eq!(problem(&WEEKDAY, "SOMEDAY"), word);
        assert_eq!(problem(&MINUTE, ""), "minute \"\" is not a number from 0 to 59");
        assert_eq!(problem(&MINUTE, "5,,6"), "minute \"\" is not a number from 0 to 59");
    }
}
