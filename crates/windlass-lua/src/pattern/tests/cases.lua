-- Cases by hand: each is compared with what Lua gives.


local named = setmetatable({}, {__name = "thing"})
local function first(...) return (...) end
local function nothing() end

local cases = {
  -- Places.
  {"find", "hello", "l"}, {"find", "hello", "l", 4}, {"find", "hello", "l", -2}, {"find", "hello", "l", -100},
  {"find", "hello", "", 6}, {"find", "hello", "", 7}, {"find", "hello", "%", 7}, {"find", "", ""}, {"find", "", "", 2},
  {"find", "hello", "l", 0}, {"find", "hello", "l", math.mininteger}, {"find", "hello", "l", math.maxinteger},
  {"match", "hello", "l+", 4}, {"match", "hello", "", 6}, {"match", "hello", "", 7}, {"find", "hello", "^l", 3},
  {"gmatch", "hello", "l", 4}, {"gmatch", "hello", "", 6}, {"gmatch", "hello", "", 7}, {"gmatch", "hello", ".", -2},
  -- Plain.
  {"find", "a.b", ".", 2, true}, {"find", "a%b", "%", 1, true}, {"find", "a.b", ".", 2, 0}, {"find", "ab", "b", 1, nil},
  {"find", "a)b]", ")b]"}, {"match", "a)b", ")b"}, {"gsub", "a)b", ")", ""}, {"gmatch", "a)b", ")"}, {"find", "a\0b", "\0b"},
  -- Classes and sets.
  {"match", "a\v\t\n b", "%s+"}, {"match", "x\127\0", "%c+"}, {"find", "é", "%a"}, {"find", "é", "%W+"},
  {"match", "0xFFg", "%x+", 3}, {"match", "a_b", "%p"}, {"match", "a_b c", "%g+"}, {"match", "aBc", "%l%u%l"},
  {"match", "\0z", "%z"}, {"match", "aZ", "%Z+"}, {"match", "]-^", "[]%-^]+"}, {"match", "a-z", "[a%-z]+"},
  {"match", "b-", "[a-]+"}, {"match", "abc-", "[a-c-]+"}, {"match", "%", "[%%]"}, {"match", "d%", "[a-%d]+"},
  {"match", "xyz]%", "[x-%%]+"}, {"match", "c", "[z-a]"}, {"match", "^", "[^^]"}, {"match", "a^", "[a^]+"},
  {"find", "a", "["}, {"find", "a", "[^"}, {"find", "a", "[a"}, {"find", "a", "[]"}, {"find", "a", "[^]"},
  {"find", "a", "[a%"}, {"find", "a", "[a%]"}, {"find", "a", "[%a"}, {"find", "a", "%"}, {"find", "a", "a%"},
  {"find", "b", "a%"}, {"find", "b", "a["}, {"find", "", "a["}, {"find", "", "["},
  -- Repetitions.
  {"match", "aaab", "a-b"}, {"match", "aaab", "a*ab"}, {"match", "aaab", "a+ab"}, {"match", "ab", "a?ab"},
  {"match", "**", "**"}, {"match", "a+", "a%+"}, {"match", "+", "+"}, {"match", "?-", "?-$"}, {"match", "aXb", "%u-b"},
  {"match", "a$b", "a$b"}, {"match", "ab", "b$"}, {"match", "a^b", "a^b"}, {"match", "ab", "^^"}, {"match", "ab", "$"},
  {"match", "a", "(a*(.)%w(%s*))"}, {"match", "hello world", "(a*(.)%w(%s*))"}, {"match", "  x  ", "^%s*(.-)%s*$"},
  -- Captures.
  {"find", "hello", "(l)(l)"}, {"find", "hello", "()ll()"}, {"match", "hello", "(h)(.-)()o"}, {"match", "abab", "(ab)%1"},
  {"match", "abab", "(a)(b)%1%2"}, {"match", "aa", "()%1"}, {"match", "aa", "%1"}, {"match", "aa", "%0"},
  {"match", "aa", "(a%1)"}, {"match", "aa", "(a)%2"}, {"match", "aa", "(a"}, {"match", "aa", "a)"}, {"match", "aa", "(()"},
  {"find", "aa", "(a"}, {"gsub", "aa", "(a", "x"}, {"gsub", "aa", "(a", "%1"}, {"gsub", "aa", "(a", {}}, {"gsub", "aa", "()(a", {"x"}},
  {"gsub", "aa", "(a", first}, {"gmatch", "aa", "(a"}, {"match", "x", "((x))"}, {"match", "", "()()"},
  -- Balance and frontier.
  {"match", "f(a(b)c)d)", "%b()"}, {"match", "((a)", "%b()"}, {"match", "''a''", "%b''"}, {"match", "a", "%b"},
  {"match", "a", "%b("}, {"match", "THE (quick) fox", "%f[%a]%a+%f[%A]", 2}, {"gsub", "THE (quick) fox", "%f[%a]%a", "<%0>"},
  {"gsub", "a\0b", "%f[%z]", "|"}, {"find", "a", "%f"}, {"find", "a", "%fa"}, {"find", "a", "%f["}, {"find", "a", "a%f[\0]"},
  -- gmatch.
  {"gmatch", "one two", "%a+"}, {"gmatch", "abc", ""}, {"gmatch", "abc", "b*"}, {"gmatch", "a,b,,c", "([^,]*)"},
  {"gmatch", "^a^a", "^a"}, {"gmatch", "k=v, x=y", "(%w+)=(%w+)"}, {"gmatch", "ab", "()"}, {"gmatch", "ab", "%"},
  {"gmatch", "xuxx uu ppar r", "()(.)%2"},
  -- gsub.
  {"gsub", "hello", "l", "L"}, {"gsub", "hello", "l", "L", 1}, {"gsub", "hello", "l", "L", 0}, {"gsub", "hello", "l", "L", -1},
  {"gsub", "hello", "", "-"}, {"gsub", "hello", "", "-", 3}, {"gsub", "hello", "l*", "-"}, {"gsub", "hello", "^h", "H"},
  {"gsub", "hello", "^", ">"}, {"gsub", "hello", "$", "<"}, {"gsub", "hhh", "^h", ""}, {"gsub", "hello", "(l)(.)", "%2%1%0"},
  {"gsub", "hello", "l", "%1"}, {"gsub", "hello", "l", "%2"}, {"gsub", "hello", "(l)", "%2"}, {"gsub", "hello", "l", "%"},
  {"gsub", "hello", "l", "%a"}, {"gsub", "hello", "l", "%%"}, {"gsub", "hello", "()l", "%1"}, {"gsub", "hello", "x", "%"},
  {"gsub", "hello", "l", {l = "L"}}, {"gsub", "hello", ".", {l = false, h = 1, e = 2.5}}, {"gsub", "hello", "l", {l = {}}},
  {"gsub", "hello", "l", {l = true}}, {"gsub", "hello", "()l", {[3] = "x"}}, {"gsub", "hello", ".", {}},
  {"gsub", "hello", "l", setmetatable({}, {__index = function(_, key) return key .. key end})},
  {"gsub", "hello", "(l)(.)", function(a, b) return b .. a end}, {"gsub", "hello", "l", nothing}, {"gsub", "hello", "l", first},
  {"gsub", "hello", "l", function() return print end}, {"gsub", "hello", "l", function() return named end},
  {"gsub", "hello", "l", function() return coroutine.create(print) end}, {"gsub", "abc", "%w", "%0%0", 2},
  {"gsub", ("word "):rep(3000), "%a+", function(word) return word .. word end},
  {"gsub", ("word "):rep(3000), "%a+", {word = "some other word"}},
  -- Numbers, and what is none.
  {"find", 12345, 34}, {"match", 1.5, "%d+$"}, {"gsub", 111, 1, 2}, {"gsub", "a1", 1, 2.5}, {"gmatch", 1221, 2},
  {"find", "hello", "l", "4"}, {"find", "hello", "l", 4.0}, {"find", "hello", "l", 4.5}, {"find", "hello", "l", "4.5"},
  {"find", "hello", "l", "x"}, {"find", "hello", "l", {}}, {"find", "hello", "l", "0x4"}, {"gsub", "aaa", "a", "b", "2"},
  {"find"}, {"find", nil}, {"find", "a"}, {"find", "a", nil}, {"find", {}, "a"}, {"find", "a", named}, {"find", true, "a"},
  {"find", print, "a"}, {"find", "a", coroutine.create(print)}, {"match"}, {"match", "a"},
  {"match", "a", "a", named}, {"gmatch"}, {"gmatch", "a"}, {"gmatch", "a", "a", "x"}, {"gsub"}, {"gsub", "a"}, {"gsub", "a", "a"},
  {"gsub", "a", "a", nil}, {"gsub", "a", "a", true}, {"gsub", "a", "a", "b", "x"}, {"gsub", "a", "a", nil, "x"},
  {"gsub", "a", "a", "b", 1.5}, {"gsub", "a", "a", "b", nil}, {"gsub", "a", "a", named},
}

return function(compare)
  local differences = {}
  for _, case in ipairs(cases) do
    differences[#differences + 1] = compare(table.unpack(case, 1, #case))
  end
  return differences
end
