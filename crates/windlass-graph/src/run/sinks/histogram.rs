//! A log-linear histogram; percentiles are exact to 1/16 of the value.

/// Counts values by size; answers which value a given part of them is not above.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    /// Made with the first value.
    counts: Vec<u64>,
    total: u64,
}

/// Parts that each power of two is divided into.
const PARTS: u32 = 16;
const PART_BITS: u32 = PARTS.trailing_zeros();

impl Histogram {
    pub(crate) fn add(&mut self, value: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; place(u64::MAX) + 1];
        }
        self.counts[place(value)] += 1;
        self.total += 1;
    }

    /// What this part of all values is not above; 0 without values.
    pub(crate) fn at(&self, part: f64) -> u64 {
        let wanted = (self.total as f64 * part).ceil().max(1.0) as u64;
        let mut so_far = 0;
        for (place, count) in self.counts.iter().enumerate() {
            so_far += count;
            if so_far >= wanted {
                return greatest(place);
            }
        }
        0
    }
}

/// Where values of this size are counted.
fn place(value: u64) -> usize {
    if value < u64::from(PARTS) {
        return value as usize;
    }
    let power = value.ilog2();
    let part = (value >> (power - PART_BITS)) as u32 - PARTS;
    ((power - PART_BITS + 1) * PARTS + part) as usize
}

/// The greatest value that is counted there.
fn greatest(place: usize) -> u64 {
    let (row, part) = (place as u32 / PARTS, u64::from(place as u32 % PARTS));
    match row {
        0 => part,
        row => (((u64::from(PARTS) + part + 1) as u128) << (row - 1)).saturating_sub(1) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::{Histogram, greatest, place};

    #[test]
    fn every_value_has_a_place_whose_greatest_is_near() {
        for value in (0..100).chain((0..64).flat_map(|p| [1 << p, (1u64 << p) - 1, 3 << (p / 2)])) {
            let most = greatest(place(value));
            assert!(most >= value, "{value} {most}");
            assert!(most - value <= value / 16, "{value} {most}");
        }
        assert_eq!(greatest(place(u64::MAX)), u64::MAX);
    }

    #[test]
    fn half_and_nearly_all_of_the_values_are_found() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.at(0.5), 0);
        (1..=1000).for_each(|value| histogram.add(value));
        assert!(
            (500..=532).contains(&histogram.at(0.5)),
            "{}",
            histogram.at(0.5)
        );
        assert!(
            (990..=1055).contains(&histogram.at(0.99)),
            "{}",
            histogram.at(0.99)
        );
    }
}
