-- What makes a recording come out the same again: the order of keys, and names instead of
-- addresses. A part of the prelude.
local env, fail, sort = ...
local type, getmetatable, setmetatable, next, ipairs, tostring = type, getmetatable, setmetatable, next, ipairs, tostring

-- What is recorded must come out in the same order again: keys are sorted, and addresses are
-- numbers that count.
local rank = {number = 1, string = 2, boolean = 3}
local function before(a, b)
  local x, y = rank[type(a)] or 4, rank[type(b)] or 4
  if x ~= y then return x < y end
  if x == 1 or x == 2 then return a < b end
  if x == 3 then return a and not b end
  return false
end
local function keys_of(t)
  local keys = {}
  for key in next, t do keys[#keys + 1] = key end
  local plain = {}
  local others = {}
  for _, key in ipairs(keys) do
    if rank[type(key)] then plain[#plain + 1] = key else others[#others + 1] = key end
  end
  sort(plain, before)
  for _, key in ipairs(others) do plain[#plain + 1] = key end
  return plain
end
env.pairs = function(t)
  local meta = getmetatable(t)
  if meta and type(meta) == "table" and meta.__pairs then return meta.__pairs(t) end
  if type(t) ~= "table" then fail(2, "argument", "pairs takes a table, not a " .. type(t)) end
  local keys, place = keys_of(t), 0
  return function()
    while true do
      place = place + 1
      local key = keys[place]
      if key == nil then return nil end
      local value = t[key]
      if value ~= nil then return key, value end
    end
  end, t, nil
end
env.next = function(t, key)
  local keys = keys_of(t)
  if key == nil then
    if keys[1] == nil then return nil end
    return keys[1], t[keys[1]]
  end
  for place, there in ipairs(keys) do
    if there == key then
      local after = keys[place + 1]
      if after == nil then return nil end
      return after, t[after]
    end
  end
end
local names, last = setmetatable({}, {__mode = "k"}), 0
env.tostring = function(value)
  local kind = type(value)
  local meta = getmetatable(value)
  -- Of what is made here, tasks and errors have texts of their own.
  local says = meta == "task" or meta == "error" or (type(meta) == "table" and meta.__tostring)
  local named = (kind == "table" and not says) or kind == "function" or kind == "thread"
  if not named then return tostring(value) end
  if not names[value] then
    last = last + 1
    names[value] = last
  end
  return (type(meta) == "string" and meta or kind) .. ": " .. names[value]
end
return env.tostring
