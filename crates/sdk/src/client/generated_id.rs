//! Ids of workflows for callers that do not choose one: the type's name and some random characters.

use uuid::Uuid;

/// Digits and lowercase letters without those that look like another: no i, l, o and u.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// With 5 random bits each, a million ids of one type share one by a chance of less than one in a
/// million.
const CHARACTERS: usize = 12;

pub(super) fn generated_id(workflow_type: &str) -> String {
    id_of(workflow_type, Uuid::new_v4())
}

fn id_of(workflow_type: &str, random: Uuid) -> String {
    let bytes = random.into_bytes();
    // The low five bits of each byte are random, but for the seventh, which holds the version.
    let random = bytes.iter().take(6).chain(bytes.iter().skip(7)).take(CHARACTERS);
    let drawn: String = random.map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    format!("{workflow_type}-{drawn}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_type_and_uses_random_bits_only() {
        assert_eq!(id_of("Hello", Uuid::from_u64_pair(0, 0)), "Hello-000000000000");
        let mut fixed = [0; 16];
        (fixed[6], fixed[8]) = (0xf0, 0xc0);
        assert_eq!(id_of("Hello", Uuid::from_bytes(fixed)), "Hello-000000000000");
        let bytes = [31, 1, 10, 0, 0, 0, 0, 2, 0x80, 0, 0, 0, 33, 0, 0, 0];
        assert_eq!(id_of("Hello", Uuid::from_bytes(bytes)), "Hello-z1a000200001");
    }
}
