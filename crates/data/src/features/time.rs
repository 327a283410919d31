//! Times of readings as tables have them.

const SECONDS_OF_DAY: f64 = 86_400.0;

/// What is wrong with a cell that is no time, for the user.
pub(super) const EXPECTED: &str = "a time is a number, or a date and time such as 2026-03-01T12:00:00 or 12:00:00; data.time names the column, data.ignore leaves it out";

/// A number as it is, in whatever unit; a date and time in seconds since 1970, without a zone as UTC; a time of day in seconds. `None` if
/// it is none of these.
pub(super) fn parse(text: &str) -> Option<f64> {
    match text.parse::<f64>() {
        Ok(number) => number.is_finite().then_some(number),
        Err(_) => date_and_time(text).or_else(|| time_of_day(text)),
    }
}

/// ISO 8601: `2026-03-01T12:00:00.5+01:00`, also with a space for the T; seconds and zone may be missing, and so may the time of day.
fn date_and_time(text: &str) -> Option<f64> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-')?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if !(1..=days_of_month).contains(&day) {
        return None;
    }
    let midnight = f64::from(days_since_1970(year, month, day)) * SECONDS_OF_DAY;
    let Some(rest) = rest.strip_prefix(['T', ' ']) else {
        return rest.is_empty().then_some(midnight);
    };
    let (clock, zone) = match rest.find(['Z', '+', '-']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    Some(midnight + time_of_day(clock)? - offset(zone)?)
}

/// `12:00`, `12:00:30` or `12:00:30.25`, in seconds.
fn time_of_day(text: &str) -> Option<f64> {
    let (minutes, seconds) = match text.split_at_checked(5)? {
        (minutes, "") => (minutes, 0.0),
        (minutes, rest) => {
            let digits = rest.strip_prefix(':')?;
            let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
            (minutes, digits.parse().ok().filter(|&s: &f64| is_plain && s < 61.0)?)
        }
    };
    let [hour, minute] = numbers(minutes, ':')?;
    (hour < 24 && minute < 60).then(|| f64::from(hour * 3600 + minute * 60) + seconds)
}

/// What a zone is ahead of UTC, in seconds.
fn offset(zone: &str) -> Option<f64> {
    let Some(sign) = zone.chars().next().filter(|&c| c != 'Z') else {
        return (zone.len() < 2).then_some(0.0);
    };
    let ahead = time_of_day(&zone[1..])?;
    Some(if sign == '-' { -ahead } else { ahead })
}

/// Whole numbers between separators, of digits alone.
fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u32; N]> {
    let is_number = |part: &&str| part.chars().all(|c| c.is_ascii_digit());
    let parts: Option<Vec<u32>> =
        text.split(separator).map(|part| Some(part).filter(is_number)?.parse().ok()).collect();
    parts?.try_into().ok()
}

/// Days since 1 January 1970, counted in years that begin in March, so that a leap day is the last of its year.
fn days_since_1970(year: u32, month: u32, day: u32) -> i32 {
    let (year, month) = (year as i32, month as i32);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day as i32 - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_are_times() {
        for (text, expected) in [
            ("3", 3.0),
            ("-1.5e3", -1500.0),
            ("1970-01-01", 0.0),
            ("1970-01-01T00:00:00Z", 0.0),
            ("1970-01-02 00:00", 86_400.0),
            ("2000-03-01T00:00:00", 951_868_800.0),
            ("2000-02-29T23:59:59.5", 951_868_799.5),
            ("2026-11-17T12:34:56Z", 1_794_918_896.0),
            ("2026-11-17T12:34:56+02:00", 1_794_911_696.0),
            ("2026-11-17T12:34:56-00:30", 1_794_920_696.0),
            ("1969-12-31T23:59:59", -1.0),
            ("12:01:02.5", 43_262.5),
            ("00:01", 60.0),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn days_follow_each_other() {
        let mut before = days_since_1970(1899, 12, 31);
        for year in 1900..2101 {
            for month in 1..=12 {
                for day in 1..=31 {
                    let date = format!("{year}-{month:02}-{day:02}");
                    if let Some(seconds) = parse(&date) {
                        assert_eq!(seconds, f64::from(before + 1) * SECONDS_OF_DAY, "{date}");
                        before += 1;
                    }
                }
            }
        }
        assert_eq!(before, days_since_1970(2100, 12, 31));
    }

    #[test]
    fn what_is_no_time_is_noticed() {
        for text in [
            "",
            "inf",
            "nan",
            "noon",
            "24:00",
            "1:00",
            "2026-13-01",
            "2026-02-29",
            "2026-01-01T",
            "2026-01-00",
            "2026-01-01T24:00",
            "2026-01-01T12:60",
            "2026-01-01T12:00:61",
            "2026-01-01T12:00:1e0",
            "2026-01-01T12:00:00Zulu",
            "2026-01-01T12:00+1",
            "2026-01-01x",
            "2026-+1-01",
            "äöüäöü",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
