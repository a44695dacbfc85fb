//! Entry points for fuzzing, and for the test that replays what fuzzing kept.
//!
//! Each takes any bytes and panics if a property does not hold: that is what a
//! fuzzer looks for. Not part of the crate's interface.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use tenure_core::{Entry, Seq};
use tenure_store::ErrorKind;

use crate::error::{Fault, Outcome};
use crate::journal;
use crate::lives::life_of;
use crate::rows::{Election, Member};

thread_local! {
    static DB: Connection = {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sql/schema.sql")).unwrap();
        db
    };
}

/// Rows of the tables that people may have changed by hand. The input is a
/// line for each column: a letter for the kind of value, then the value.
pub fn rows(data: &[u8]) {
    let cells: Vec<Value> = data.split(|byte| *byte == b'\n').map(cell).collect();
    DB.with(|db| {
        entry(db, &cells);
        table(db, "tenure_elections", 17, &cells, |row| Election::read(row).map(drop));
        table(db, "tenure_members", 14, &cells, |row| Member::read(row).map(drop));
    });
}

fn cell(line: &[u8]) -> Value {
    let (kind, rest) = line.split_first().unwrap_or((&b'n', b""));
    let text = String::from_utf8_lossy(rest);
    match kind {
        b'i' => Value::Integer(text.trim().parse().unwrap_or_default()),
        b'b' => Value::Blob(rest.to_vec()),
        // A value of several lines.
        b't' => Value::Text(text.replace('|', "\n")),
        _ => Value::Null,
    }
}

/// Puts the row in if the table takes it; the namespace is ours.
fn put(db: &Connection, table: &str, columns: usize, cells: &[Value]) -> bool {
    db.execute(&format!("DELETE FROM {table}"), []).unwrap();
    let places = vec!["?"; columns].join(", ");
    let values = [Value::from("n".to_owned())].into_iter().chain(cells.iter().cloned());
    let values = values.chain(std::iter::repeat(Value::Null)).take(columns);
    // Those that come after have their defaults.
    let named = "SELECT group_concat(name, ', ') FROM \
                 (SELECT name FROM pragma_table_info(?1) ORDER BY cid LIMIT ?2)";
    let names: String = db.query_row(named, params![table, columns], |row| row.get(0)).unwrap();
    let sql = format!("INSERT INTO {table} ({names}) VALUES ({places})");
    db.prepare_cached(&sql).unwrap().execute(params_from_iter(values)).is_ok()
}

/// What a line of the journal says is written back as it was.
fn entry(db: &Connection, cells: &[Value]) {
    if !put(db, "tenure_journal", 14, cells) {
        return;
    }
    let read = |ns: &str| -> Outcome<Vec<Entry>> { journal::after(db, ns, Seq::START, 10) };
    match read("n") {
        Ok(entries) => {
            for entry in &entries {
                journal::append(db, "back", entry).unwrap();
            }
            assert_eq!(read("back").unwrap(), entries);
        }
        Err(fault) => damaged(fault, "journal"),
    }
}

fn table(
    db: &Connection,
    name: &str,
    columns: usize,
    cells: &[Value],
    read: fn(&rusqlite::Row<'_>) -> Outcome<()>,
) {
    if !put(db, name, columns, cells) {
        return;
    }
    let mut select = db.prepare_cached(&format!("SELECT * FROM {name}")).unwrap();
    let mut found = select.query([]).unwrap();
    if let Err(fault) = read(found.next().unwrap().unwrap()) {
        damaged(fault, "");
    }
}

/// A row that cannot be is told as damage to the file, not as a defect of ours.
fn damaged(fault: Fault, place: &str) {
    let told = fault.told("reading", Path::new("/x/t.db"));
    assert_eq!(told.kind(), ErrorKind::Foreign, "{told}");
    let said = told.to_string();
    assert!(said.contains("/x/t.db") && said.contains("backup") && said.contains(place), "{said}");
}

/// Names of files in the folder where lives are proven, which is all that a
/// wake-up carries.
pub fn locks(data: &[u8]) {
    let name = String::from_utf8_lossy(data);
    if let Some(life) = life_of(&name) {
        assert_eq!(format!("{life}.lock"), name, "one file for each life");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_testkit::{damage, replay};

    #[test]
    fn kept_inputs_of_rows_hold() {
        replay("sqlite_rows", rows);
    }

    #[test]
    fn kept_inputs_of_lock_names_hold() {
        replay("sqlite_locks", locks);
    }

    #[test]
    fn damaged_inputs_of_sqlite_rows_hold() {
        damage("sqlite_rows", rows);
    }

    #[test]
    fn damaged_inputs_of_sqlite_locks_hold() {
        damage("sqlite_locks", locks);
    }
}
