//! "Did you mean": the known name that is nearest to an unknown one.

/// Names longer than this are not compared: the work grows with the square.
const MAX_COMPARED: usize = 64;

/// `did you mean "..."?` if a known name is close to this one.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let nearest = nearest(name, known)?;
    Some(format!("did you mean {nearest:?}?"))
}

fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_COMPARED {
        return None;
    }
    // A third of the letters may be wrong; a name of two letters is close to nothing.
    let allowed = name.chars().count() / 3;
    known
        .into_iter()
        .filter(|other| other.len() <= MAX_COMPARED && name.len().abs_diff(other.len()) <= allowed)
        .map(|other| (distance(name, other), other))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

/// How many letters have to be added, removed, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(above[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        let known = ["capacity", "overflow", "mode"];
        assert_eq!(nearest("capcity", known), Some("capacity"));
        assert_eq!(nearest("overfolw", known), Some("overflow"));
        assert_eq!(nearest("moed", known), Some("mode"));
        assert_eq!(nearest("speed", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn distances_count_single_mistakes() {
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("abc", "abcd"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
