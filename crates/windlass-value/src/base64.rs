//! Base64 with the usual alphabet and padding: how bytes are written in JSON.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the base64 text of some bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            let letter = ALPHABET[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() {
                letter.into()
            } else {
                '='
            });
        }
    }
    text
}

/// Returns the bytes that a text says; none if the text is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text
        .iter()
        .rev()
        .take_while(|&&letter| letter == b'=')
        .count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text[..text.len() - padding].chunks(4) {
        let mut word = 0;
        for &letter in group {
            let six = ALPHABET.iter().position(|&there| there == letter)?;
            word = word << 6 | six as u32;
        }
        word <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..=bytes.len() {
            assert_eq!(
                decode(&encode(&bytes[..length])).as_deref(),
                Some(&bytes[..length])
            );
        }
    }

    #[test]
    fn it_is_the_usual_one() {
        assert_eq!(encode(b"hello"), "aGVsbG8=");
        assert_eq!(encode(b"\xff\xfe"), "//4=");
        for wrong in ["a", "a===", "ab=c", "ab!d", "====", "abc"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
