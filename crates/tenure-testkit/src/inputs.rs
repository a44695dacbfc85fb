//! The inputs of the tests: those that fuzzing kept, and many made from them.
//!
//! What is made is a function of a seed and of what is kept. The seed is always the
//! same, so that a test that passed goes on to pass, unless `TENURE_FUZZ_SEED` says
//! which, as `cargo xtask fuzz` does; how many are made for each target can be set
//! by `TENURE_FUZZ_INPUTS`.

use std::path::Path;

use crate::Dice;

const SEED: &str = "TENURE_FUZZ_SEED";
const INPUTS: &str = "TENURE_FUZZ_INPUTS";

/// How many inputs are made for each target: a second or so of a test build.
const USUAL: u64 = 2_000;

/// No input is made longer than this.
const LONGEST: usize = 4_096;

/// What is worth putting anywhere: what ends, escapes or nests something
/// somewhere, and numbers at the edges of their types.
const TOKENS: [&[u8]; 40] = [
    b"",
    b"\0",
    b"\n",
    b"\t",
    b" ",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x91\x91",
    b"\"",
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"=",
    b"%",
    b"%00",
    b"%2F",
    b"/",
    b"//",
    b"://",
    b"@",
    b"?",
    b"&",
    b"#",
    b"..",
    b"-1",
    b"0",
    b"1e999",
    b"null",
    b"4294967296",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
];

/// Runs every input that was kept for `target`, and says which one failed.
pub fn replay(target: &str, run: fn(&[u8])) {
    for (name, bytes) in kept(target) {
        let outcome = std::panic::catch_unwind(|| run(&bytes));
        assert!(outcome.is_ok(), "the kept input {target}/{name} fails; why is told above");
    }
}

/// Runs inputs that are made from those that were kept for `target`; says which
/// one failed and how to make it again.
pub fn damage(target: &str, run: fn(&[u8])) {
    let seed = number(SEED).unwrap_or(1);
    let count = number(INPUTS).unwrap_or(USUAL);
    let kept: Vec<Vec<u8>> = kept(target).into_iter().map(|(_, bytes)| bytes).collect();
    for index in 0..count {
        let input = made(seed, index, &kept);
        let outcome = std::panic::catch_unwind(|| run(&input));
        assert!(
            outcome.is_ok(),
            "an input for `{target}` fails; why is told above. It is\n\n    {}\n\nand is made \
             again by\n\n    {SEED}={seed} {INPUTS}={} cargo test --workspace --all-features \
             damaged_inputs_of_{target}\n\nPut it into fuzz/corpus/{target} before you mend what \
             it broke.",
            input.escape_ascii(),
            index + 1,
        );
    }
}

/// What is kept for `target`, by name, in the order of their names.
fn kept(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let list = std::fs::read_dir(&folder);
    let list = list.unwrap_or_else(|error| panic!("{} cannot be read: {error}", folder.display()));
    let files = list.map(|file| file.expect("the folder can be read"));
    let read = |file: std::fs::DirEntry| {
        let bytes = std::fs::read(file.path()).expect("a kept input can be read");
        (file.file_name().to_string_lossy().into_owned(), bytes)
    };
    let mut kept: Vec<_> = files.map(read).collect();
    kept.sort();
    assert!(!kept.is_empty(), "nothing is kept in {}", folder.display());
    kept
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number: {text:?}")))
}

/// One input: a kept one, damaged in one to eight ways.
fn made(seed: u64, index: u64, kept: &[Vec<u8>]) -> Vec<u8> {
    let mut dice = Dice::new(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut input = kept[dice.below(kept.len())].clone();
    for _ in 0..=dice.below(8) {
        damaged(&mut input, kept, &mut dice);
        input.truncate(LONGEST);
    }
    input
}

/// Damages it in one way.
fn damaged(input: &mut Vec<u8>, kept: &[Vec<u8>], dice: &mut Dice) {
    let (from, to) = span(dice, input.len());
    match dice.below(8) {
        0 => input.truncate(from),
        1 => drop(input.drain(from..to)),
        2 => {
            let again = input[from..to].to_vec();
            input.splice(to..to, again);
        }
        3 | 4 => {
            let token = TOKENS[dice.below(TOKENS.len())];
            // In the place of something, or between two things.
            let to = if dice.below(2) == 0 { from } else { to };
            input.splice(from..to, token.iter().copied());
        }
        5 => {
            let other = &kept[dice.below(kept.len())];
            let (begin, end) = span(dice, other.len());
            input.splice(from..to, other[begin..end].iter().copied());
        }
        6 => {
            if let Some(byte) = input.get_mut(from) {
                *byte ^= 1 << dice.below(8);
            }
        }
        _ => {
            if let Some(byte) = input.get_mut(from) {
                *byte = dice.any().to_le_bytes()[0];
            }
        }
    }
}

/// A part of something that is as long as that: mostly a short one.
fn span(dice: &mut Dice, length: usize) -> (usize, usize) {
    let from = dice.below(length + 1);
    let most = if dice.one_in(4) { length - from } else { (length - from).min(8) };
    (from, from + dice.below(most + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The printed seed finds the same input, and another finds another.
    #[test]
    fn an_input_is_a_function_of_its_seed() {
        let kept = [b"tenure".to_vec(), b"{\"number\":7}".to_vec(), Vec::new()];
        let all = |seed| (0..200).map(|index| made(seed, index, &kept)).collect::<Vec<_>>();
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
    }

    /// What is made is neither what is kept nor far from it.
    #[test]
    fn inputs_are_damaged_in_every_way() {
        let kept = [b"{\"number\":7,\"election\":\"e\"}".to_vec(), b"zzzz".to_vec()];
        let all: Vec<_> = (0..2_000).map(|index| made(1, index, &kept)).collect();
        let any = |what: &dyn Fn(&[u8]) -> bool| all.iter().any(|input| what(input));
        let has = |input: &[u8], part: &[u8]| input.windows(part.len()).any(|w| w == part);
        assert!(any(&|input| input.is_empty()), "nothing is left");
        assert!(any(&|input| !input.is_empty() && kept[0].starts_with(input)), "cut off");
        assert!(any(&|input| input.len() > kept[0].len() + 8), "made longer");
        assert!(any(&|input| has(input, b"number") && has(input, b"zz")), "two in one");
        assert!(any(&|input| has(input, b"18446744073709551616")), "a token");
        assert!(any(&|input| input.len() == kept[0].len() && input[0] != b'{'), "a byte");
        let same = all.iter().filter(|input| kept.contains(input)).count();
        assert!(same < all.len() / 10, "{same} of {} are as they were kept", all.len());
        assert!(all.iter().all(|input| input.len() <= LONGEST));
    }

    /// One input of many that breaks something is found, and shown.
    #[test]
    fn a_parser_that_panics_on_one_input_is_found() {
        let breaks = |data: &[u8]| assert!(!data.starts_with(b"\0"), "it broke");
        let failed = std::panic::catch_unwind(|| damage("names", breaks)).unwrap_err();
        let said = failed.downcast_ref::<String>().unwrap();
        for part in ["`names`", "\\x00", "TENURE_FUZZ_SEED=", "damaged_inputs_of_names"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
