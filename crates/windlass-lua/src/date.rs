//! Dates for scripts: `os.time` and `os.date`, in UTC wherever they run.

use mlua::{IntoLua, Lua, Table, Value};
use windlass_core::sync::clock;
use windlass_value::Payload;
use windlass_vm::Budget;

use crate::op::Refusal;
use crate::preempt::with_budget;

const DAY: i64 = 86_400;

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Seconds since 1970, the same in a replay.
pub(crate) fn wall() -> i64 {
    let ask = |budget: &Budget<'_>| {
        let now = budget.ask(|_| Payload::Int((clock::wall() / 1_000_000_000) as i64));
        now.as_i64().unwrap_or_default()
    };
    with_budget(|budget| match budget {
        Some(budget) => ask(budget),
        None => (clock::wall() / 1_000_000_000) as i64,
    })
}

/// A moment, as people write it.
struct CalendarTime {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// From 0, Sunday.
    weekday: i64,
    /// The day of the year, from 1.
    day_of_year: i64,
}

/// The number of a day since 1970, in the Gregorian calendar. Years begin in March here, so that a
/// leap day is the last.
fn number_of_day(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (
        year + (month - 1).div_euclid(12),
        (month - 1).rem_euclid(12) + 1,
    );
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl CalendarTime {
    fn of(seconds: i64) -> CalendarTime {
        let (number, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let shifted = number + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        CalendarTime {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (number + 4).rem_euclid(7),
            day_of_year: number - number_of_day(year, 1, 1) + 1,
        }
    }

    fn to_table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set("year", self.year)?;
        table.set("month", self.month)?;
        table.set("day", self.day)?;
        table.set("hour", self.hour)?;
        table.set("min", self.minute)?;
        table.set("sec", self.second)?;
        table.set("wday", self.weekday + 1)?;
        table.set("yday", self.day_of_year)?;
        table.set("isdst", false)?;
        Ok(table)
    }

    fn part(&self, letter: char) -> Option<String> {
        let day = DAYS[self.weekday as usize];
        let month = MONTHS[self.month as usize - 1];
        let (hour, minute, second) = (self.hour, self.minute, self.second);
        let twelve = (hour + 11) % 12 + 1;
        Some(match letter {
            'Y' => format!("{}", self.year),
            'y' => format!("{:02}", self.year.rem_euclid(100)),
            'm' => format!("{:02}", self.month),
            'd' => format!("{:02}", self.day),
            'H' => format!("{hour:02}"),
            'I' => format!("{twelve:02}"),
            'M' => format!("{minute:02}"),
            'S' => format!("{second:02}"),
            'p' => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
            'A' => day.to_owned(),
            'a' => day[..3].to_owned(),
            'B' => month.to_owned(),
            'b' | 'h' => month[..3].to_owned(),
            'j' => format!("{:03}", self.day_of_year),
            'w' => format!("{}", self.weekday),
            'F' => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
            'D' | 'x' => format!(
                "{:02}/{:02}/{:02}",
                self.month,
                self.day,
                self.year.rem_euclid(100)
            ),
            'T' | 'X' => format!("{hour:02}:{minute:02}:{second:02}"),
            'c' => format!(
                "{} {} {:>2} {hour:02}:{minute:02}:{second:02} {}",
                &day[..3],
                &month[..3],
                self.day,
                self.year
            ),
            'Z' => "UTC".to_owned(),
            'z' => "+0000".to_owned(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }
}

/// `os.time(table)`; without one, the moment that `now` says.
pub(crate) fn time(table: Option<&Value>, now: impl FnOnce() -> i64) -> Result<Payload, Refusal> {
    let table = match table {
        None | Some(Value::Nil) => return Ok(Payload::Int(now())),
        Some(Value::Table(table)) => table,
        Some(other) => {
            let problem = format!("os.time takes a table, not a {}", other.type_name());
            return Err(("argument", problem));
        }
    };
    let field = |name: &str, otherwise: Option<i64>| {
        let value = table.get::<Option<i64>>(name);
        let value = value.map_err(|_| ("argument", format!("field '{name}' is not an integer")))?;
        match value.or(otherwise) {
            Some(value) if value.abs() < 1 << 40 => Ok(value),
            Some(_) => Err(("argument", format!("field '{name}' is out-of-bound"))),
            None => Err(("argument", format!("field '{name}' missing in date table"))),
        }
    };
    let day = number_of_day(
        field("year", None)?,
        field("month", None)?,
        field("day", None)?,
    );
    let (hour, minute) = (field("hour", Some(12))?, field("min", Some(0))?);
    let seconds = day * DAY + hour * 3600 + minute * 60 + field("sec", Some(0))?;
    Ok(Payload::Int(seconds))
}

/// Implements `os.date(format, time)`.
pub(crate) fn date(
    lua: &Lua,
    format: Option<&Value>,
    time: Option<&Value>,
    now: impl FnOnce() -> i64,
) -> Result<Value, Refusal> {
    let bad = |problem: &str| ("argument", problem.to_owned());
    let seconds = match time {
        None | Some(Value::Nil) => now(),
        Some(time) => match (time.as_integer(), time.as_number()) {
            (Some(seconds), _) => seconds,
            (_, Some(seconds)) => seconds as i64,
            _ => return Err(bad("a time must be a number")),
        },
    };
    if seconds.abs() > 1 << 50 {
        return Err(bad("the date cannot be represented"));
    }
    let format = match format {
        None | Some(Value::Nil) => "%c".to_owned(),
        Some(Value::String(format)) => format.to_string_lossy(),
        Some(_) => return Err(bad("a format must be a text")),
    };
    let moment = CalendarTime::of(seconds);
    let format = format.strip_prefix('!').unwrap_or(&format);
    let failed = |problem: mlua::Error| ("argument", problem.to_string());
    if format.starts_with("*t") {
        return moment.to_table(lua).map(Value::Table).map_err(failed);
    }
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let which = letters.next();
        let part = which
            .and_then(|letter| moment.part(letter))
            .ok_or_else(|| {
                let shown = which.map(String::from).unwrap_or_default();
                bad(&format!("invalid conversion specifier '%{shown}'"))
            })?;
        text.push_str(&part);
    }
    text.into_lua(lua).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_there_and_back() {
        for seconds in [
            0,
            951_782_400,
            1_709_164_800,
            -1,
            -62_135_596_800,
            1_600_000_000,
            4_102_444_799,
        ] {
            let moment = CalendarTime::of(seconds);
            let day = number_of_day(moment.year, moment.month, moment.day);
            let again = day * DAY + moment.hour * 3600 + moment.minute * 60 + moment.second;
            assert_eq!(again, seconds);
        }
        let moment = CalendarTime::of(951_782_400);
        assert_eq!((moment.year, moment.month, moment.day), (2000, 2, 29));
        assert_eq!((moment.weekday, moment.day_of_year), (2, 60));
        let text = CalendarTime::of(0).part('c').expect("it is known");
        assert_eq!(text, "Thu Jan  1 00:00:00 1970");
    }
}
