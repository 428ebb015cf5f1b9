-- Calls Lua's own functions and ours, and says what is different; nil if nothing is.
local ours = ...
local pack, unpack, pcall, tostring = table.pack, table.unpack, pcall, tostring

local function show(values)
  local texts = {}
  for place = 1, values.n do
    local value = values[place]
    texts[place] = type(value) == "string" and ("%q"):format(value) or tostring(value)
  end
  return "(" .. table.concat(texts, ", ") .. ")"
end

local function same(a, b)
  if a.n ~= b.n then return false end
  for place = 1, a.n do
    if a[place] ~= b[place] or math.type(a[place]) ~= math.type(b[place]) then return false end
  end
  return true
end

-- What Lua gives, in the form that ours has: the place that Lua puts in front of messages is left out.
local function expected(ok, ...)
  if ok then return pack(true, ...) end
  return pack(false, "pattern", ((...):gsub("^compare:%d+: ", "")))
end

local function all(iterator)
  local found = {n = 0}
  local ok, message = pcall(function()
    -- More than there can be, so that one without an end is seen.
    for _ = 1, 40 do
      local captures = pack(iterator())
      if captures.n == 0 then break end
      found.n = found.n + 1
      found[found.n] = show(captures)
    end
  end)
  if not ok then
    found.n = found.n + 1
    found[found.n] = tostring(message):gsub("^compare:%d+: ", ""):gsub("^runtime error: ", ""):gsub("\n.*", "")
  end
  return found
end

local real = {
  -- Not a tail call, and by its name: messages have it.
  find = function(...) local result = pack(string.find(...)) return unpack(result, 1, result.n) end,
  match = function(...) local result = pack(string.match(...)) return unpack(result, 1, result.n) end,
  gmatch = function(...) local result = pack(string.gmatch(...)) return unpack(result, 1, result.n) end,
  gsub = function(...) local result = pack(string.gsub(...)) return unpack(result, 1, result.n) end,
}

return function(name, ...)
  local theirs, mine = expected(pcall(real[name], ...)), pack(ours[name](...))
  if name == "gmatch" and theirs[1] and mine[1] then
    theirs, mine = all(theirs[2]), all(mine[2])
  end
  if not same(theirs, mine) then
    return name .. show(pack(...)) .. " is " .. show(theirs) .. ", not " .. show(mine)
  end
end
