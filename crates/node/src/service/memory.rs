//! The memory of this process, if the operating system tells.

/// Returns the most bytes of memory that the process has had so far.
pub(super) fn most() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads `VmHWM` from the status of a Linux process.
fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the memory in the format of Prometheus; an empty text if it is not known.
pub(super) fn metric() -> String {
    let Some(bytes) = most() else { return String::new() };
    format!(
        "# HELP stlf_most_memory_bytes The most memory so far.\n# TYPE stlf_most_memory_bytes gauge\n\
         stlf_most_memory_bytes {bytes}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_or_not_known() {
        let status = "Name:\tstlf\nVmPeak:\t  900 kB\nVmHWM:\t     512 kB\nVmRSS:\t 400 kB\n";
        assert_eq!(peak_of(status), Some(512 * 1024));
        assert_eq!(peak_of("VmHWM: a lot"), None);
        assert_eq!(peak_of(""), None);
    }
}
