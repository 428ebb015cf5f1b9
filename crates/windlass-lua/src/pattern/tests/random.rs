//! Random texts and patterns.

use mlua::Function;

use super::{assert_same, comparison, library};

/// Enough to find most mistakes, in about a second.
const CASES: usize = 20_000;

/// Marsaglia's xorshift: the same numbers every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    fn bytes_of(&mut self, alphabet: &[u8], most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length)
            .map(|_| alphabet[self.below(alphabet.len())])
            .collect()
    }

    /// Bytes as they come, which are seldom a good pattern, or parts that are more often one.
    fn pattern(&mut self) -> Vec<u8> {
        const PARTS: [&str; 46] = [
            "a", "b", "(", ")", "()", ".", "%", "%1", "%2", "%b()", "%bab", "%b", "%f[%w]",
            "%f[^a]", "%f", "[", "]", "[ab]", "[^a]", "[a-b]", "[%a-]", "[]]", "[^]]", "[%]", "*",
            "+", "-", "?", "^", "$", "%a", "%D", "%s", "%W", "%x", "%%", "%.", ".-", ".*", "a*",
            "b-", "a?", "[^%s]", "(a*)", "(.-)", "[x-%%]",
        ];
        match self.below(3) {
            0 => self.bytes_of(b"ab1.%[]^$()*+-?fbdw\0 ", 8),
            _ => {
                let mut pattern = Vec::new();
                for _ in 0..self.below(6) {
                    let part = self.one_of(&PARTS).as_bytes();
                    if pattern.len() + part.len() <= 8 {
                        pattern.extend_from_slice(part);
                    }
                }
                pattern
            }
        }
    }
}

/// Gives each kind of value that a replacement can be.
const REPLACE: &str = "function(a, b)
    if a == 'a' then return nil end
    if a == 'b' then return false end
    if a == 1 then return 1.5 end
    return '<' .. a .. tostring(b) .. '>'
end";

fn compare_randomly(seed: u64, cases: usize) {
    let (lua, compare) = comparison();
    let replace: Function = lua.load(REPLACE).eval().expect("it compiles");
    let table = lua.load("{a = 'x', b = false, aa = 12, [1] = 'one', [2] = {}, [''] = '-'}");
    let table: mlua::Table = table.eval().expect("it compiles");
    let mut random = Random(seed);
    for _ in 0..cases {
        let subject = random.bytes_of(b"aabbAB1 .-()[]%^$\0", 12);
        let pattern = random.pattern();
        let init = random.below(30) as i64 - 15;
        let subject = lua.create_string(subject).expect("a string");
        let pattern = lua.create_string(pattern).expect("a string");
        let plain = random.below(8) == 0;
        let most = (random.below(3) == 0).then_some(init / 3);
        match random.below(6) {
            0 => assert_same(&compare, ("find", &subject, &pattern, init, plain)),
            1 => assert_same(&compare, ("match", &subject, &pattern, init)),
            2 => assert_same(&compare, ("gmatch", &subject, &pattern, init)),
            3 => {
                let replacement = random.bytes_of(b"%%012ab", 5);
                let replacement = lua.create_string(replacement).expect("a string");
                assert_same(&compare, ("gsub", &subject, &pattern, replacement, most));
            }
            4 => assert_same(&compare, ("gsub", &subject, &pattern, &replace, most)),
            _ => assert_same(&compare, ("gsub", &subject, &pattern, &table, most)),
        }
    }
}

#[test]
fn random_cases() {
    compare_randomly(0x9e37_79b9_7f4a_7c15, CASES);
}

/// Any bytes at all, and longer: only that nothing panics, and that it ends.
#[test]
fn random_bytes() {
    let (lua, _) = comparison();
    let ours = library(&lua).expect("the library is made");
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let mut random = Random(42);
    for _ in 0..2_000 {
        let alphabet: &[u8] = random.one_of(&[&every[..], b"ab%[]()*+-?.^$bf1-"]);
        let subject = random.bytes_of(alphabet, 100);
        let pattern = random.bytes_of(alphabet, 40);
        let subject = lua.create_string(subject).expect("a string");
        let pattern = lua.create_string(pattern).expect("a string");
        for name in ["find", "match", "gsub", "gmatch"] {
            let function: Function = ours.get(name).expect("it is there");
            let _: mlua::MultiValue = function
                .call((&subject, &pattern, "%1"))
                .expect("it does not raise");
        }
    }
}
