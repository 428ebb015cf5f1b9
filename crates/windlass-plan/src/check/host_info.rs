//! The machine that a graph is to run on.

/// The machine that a graph is to run on, as far as a check wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostInfo {
    /// CPUs; the highest number is one less.
    pub cpus: usize,
}

impl HostInfo {
    /// Returns what is known of this machine.
    pub fn this() -> HostInfo {
        // A process may be confined to a few CPUs, so what is available to it is only the second
        // choice.
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok();
        let cpus = possible
            .and_then(|text| highest(&text))
            .and_then(|highest| highest.checked_add(1))
            .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
            .unwrap_or(1);
        HostInfo { cpus }
    }
}

impl Default for HostInfo {
    fn default() -> HostInfo {
        HostInfo::this()
    }
}

/// The highest number in a list such as `0-3,8`.
fn highest(list: &str) -> Option<usize> {
    list.trim()
        .split([',', '-'])
        .map(|number| number.parse().ok())
        .collect::<Option<Vec<usize>>>()?
        .into_iter()
        .max()
}

#[cfg(test)]
mod tests {
    use super::highest;

    #[test]
    fn lists_of_cpus_have_a_highest_number() {
        assert_eq!(highest("0-3\n"), Some(3));
        assert_eq!(highest("0,2-5,9"), Some(9));
        assert_eq!(highest("0"), Some(0));
        assert_eq!(highest(""), None);
        assert_eq!(highest("x-1"), None);
    }
}
