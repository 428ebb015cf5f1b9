//! Whatever the bytes: an answer, and no panic.

use windlass_plan::check::Level;
use windlass_plan::lint::lint;
use windlass_plan::{LoadOptions, load};

use crate::support::{catalog, check, examples, fixtures};

/// A small generator, so that each run tries the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).expect("a small number");
        usize::try_from(self.next() % bound).expect("a small number")
    }
}

const PIECES: [&str; 24] = [
    "{", "}", "[", "]", ": ", "- ", "\n", "  ", "&a ", "*a", "!!str ", "|\n", "\"", "'", "#",
    "{{x}}", "-1", "1e999", ".nan", "null", "\t", "\u{feff}", "ü", "? ",
];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 if at < bytes.len() => bytes[at] = random.next().to_le_bytes()[0],
            1 if at < bytes.len() => {
                let end = (at + random.below(20)).min(bytes.len());
                bytes.drain(at..end);
            }
            2 => {
                let end = (at + random.below(60)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            3 => bytes.truncate(at),
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
        }
    }
}

#[test]
fn loading_and_checking_never_panics() {
    let seeds: Vec<Vec<u8>> = fixtures()
        .into_iter()
        .chain(examples())
        .map(|path| std::fs::read(path).expect("a readable file"))
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut loaded = 0;
    for _ in 0..4000 {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        mutate(&mut random, &mut bytes);
        match load(&bytes, &LoadOptions::default()) {
            Ok(file) => {
                loaded += 1;
                check(&file.graph, Level::Schema);
                check(&file.graph, Level::Registry);
                lint(&file.graph, &catalog());
            }
            Err(errors) => {
                assert!(!errors.problems.is_empty());
                assert!(!errors.to_string().is_empty());
            }
        }
    }
    assert!(loaded > 100, "mutations should be small: {loaded} loaded");
}
