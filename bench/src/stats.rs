//! Median, percentile and ratio.

/// Sorts numbers for [`median`] and [`percentile`].
pub fn sort(values: &mut [f64]) {
    values.sort_by(f64::total_cmp);
}

/// The median of sorted values; the mean of the two in the middle if their count is even.
pub fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

/// The nearest-rank percentile of sorted values: the smallest value that `percent` of them do not
/// exceed.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Whether a small or a large number is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Lower,
    #[allow(dead_code, reason = "the throughput workloads come with the network")]
    Higher,
}

impl Better {
    /// The better one of two values.
    pub fn best(self, a: f64, b: f64) -> f64 {
        match self {
            Better::Lower => a.min(b),
            Better::Higher => a.max(b),
        }
    }

    /// How many times worse `value` is than `best`: 1 is a tie, below 1 is better than the best.
    ///
    /// `None` if `best` is a perfect zero that `value` does not reach.
    pub fn ratio(self, value: f64, best: f64) -> Option<f64> {
        let (worse, better) = match self {
            Better::Lower => (value, best),
            Better::Higher => (best, value),
        };
        if worse == better {
            Some(1.0)
        } else {
            Some(worse / better).filter(|r| r.is_finite())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_is_between() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
        assert_eq!(median(&[7.0]), 7.0);
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 95.0), 95.0);
        assert_eq!(percentile(&hundred, 99.0), 99.0);
        assert_eq!(percentile(&hundred, 100.0), 100.0);
        assert_eq!(percentile(&hundred, 0.0), 1.0);
        assert_eq!(percentile(&[3.0], 99.0), 3.0);
        assert_eq!(percentile(&[1.0, 2.0], 95.0), 2.0);
    }

    #[test]
    fn a_ratio_over_one_is_worse_in_both_directions() {
        assert_eq!(Better::Lower.ratio(50.0, 100.0), Some(0.5));
        assert_eq!(Better::Higher.ratio(50.0, 100.0), Some(2.0));
    }

    #[test]
    fn a_perfect_zero_has_no_ratio_except_a_tie() {
        assert_eq!(Better::Lower.ratio(0.0, 0.0), Some(1.0));
        assert_eq!(Better::Lower.ratio(3.0, 0.0), None);
        assert_eq!(Better::Lower.ratio(0.0, 3.0), Some(0.0));
    }
}
