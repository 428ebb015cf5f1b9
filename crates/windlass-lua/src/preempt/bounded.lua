-- The standard functions whose loops a script can make as long as it likes, in Lua: a loop of C
-- runs to its end, a loop of Lua is preempted and killed between two instructions. `bounded.rs`
-- calls these for long loops only, with arguments of the right types, and loads them when the first
-- is called: most states never need one. Errors have level 3: this function, the one of
-- `bounded.rs`, the script.
local library = ...
local standard = library.standard
local rep_, concat_, unpack_ = standard.rep, standard.concat, standard.unpack
local short_sort, format, gsub = standard.sort, standard.format, standard.gsub
local error, type, pcall = standard.error, standard.type, standard.pcall
local min, max_integer = standard.min, standard.maxinteger
local tointeger, ult = standard.tointeger, standard.ult

-- So many bytes are copied at once, or so many values joined.
local BLOCK_BYTES, BLOCK_VALUES = 65536, 10000

-- So many values are sorted at once by the function of C.
local RUN = 4096

-- What C's functions have as the most values of one call.
local MOST_RESULTS = 1000000

local function length_of(list)
  return tointeger(#list) or error("object length is not an integer", 4)
end

local function rep(text, count, separator)
  local unit, last = text, ""
  if separator then unit, last, count = text .. separator, text, count - 1 end
  if #unit == 0 then return "" end
  -- A block that is not short is copied a few times; a unit of one byte would be copied byte by
  -- byte.
  local times = min(count, BLOCK_BYTES // #unit + 1)
  return rep_(rep_(unit, times), count // times) .. rep_(unit, count % times) .. last
end

local function insert(list, position, value)
  local after = length_of(list) + 1
  if not ult(position - 1, after) then
    error("bad argument #2 to 'insert' (position out of bounds)", 3)
  end
  for place = after, position + 1, -1 do list[place] = list[place - 1] end
  list[position] = value
end

local function remove(list, position)
  local size = length_of(list)
  if position ~= size and not ult(position - 1, size + 1) then
    error("bad argument #2 to 'remove' (position out of bounds)", 3)
  end
  local value = list[position]
  while position < size do
    list[position] = list[position + 1]
    position = position + 1
  end
  list[position] = nil
  return value
end

local function move(from, first, last, target, to)
  to = to or from
  if last < first then return to end
  if not (first > 0 or last < max_integer + first) then
    error("bad argument #3 to 'move' (too many elements to move)", 3)
  end
  if target > max_integer - (last - first) then
    error("bad argument #4 to 'move' (destination wrap around)", 3)
  end
  if target > last or target <= first or from ~= to then
    for place = 0, last - first do to[target + place] = from[first + place] end
  else
    for place = last - first, 0, -1 do to[target + place] = from[first + place] end
  end
  return to
end

local function concat(list, separator, first, last)
  local length = length_of(list)
  local pieces, parts, count = {}, {}, 0
  for place = first or 1, last or length do
    local value = list[place]
    local kind = type(value)
    if kind ~= "string" and kind ~= "number" then
      error(format("invalid value (%s) at index %d in table for 'concat'", kind, place), 3)
    end
    count = count + 1
    parts[count] = value
    if count == BLOCK_VALUES then
      pieces[#pieces + 1] = concat_(parts, separator, 1, count)
      count = 0
    end
  end
  if count > 0 or #pieces == 0 then pieces[#pieces + 1] = concat_(parts, separator, 1, count) end
  return concat_(pieces, separator)
end

local function unpack(list, first, last)
  first = first or 1
  last = last or length_of(list)
  if first > last then return end
  if not ult(last - first, MOST_RESULTS) then error("too many results to unpack", 3) end
  local values = {}
  for place = 0, last - first do values[place + 1] = list[first + place] end
  return unpack_(values, 1, last - first + 1)
end

local function less(a, b) return a < b end

-- Merges runs of `width` values until there is one, in a table of its own, and gives that.
local function merged(from, size, width, before)
  local to = {}
  while width < size do
    for low = 1, size, 2 * width do
      local left, right = low, low + width
      local middle, high = min(right - 1, size), min(low + 2 * width - 1, size)
      for place = low, high do
        if left <= middle and (right > high or not before(from[right], from[left])) then
          to[place] = from[left]
          left = left + 1
        else
          to[place] = from[right]
          right = right + 1
        end
      end
    end
    from, to, width = to, from, 2 * width
  end
  return from
end

-- By `<`. C sorts runs faster than the merge does, where they are short.
local function naturally(values, size)
  local width = 1
  if size > RUN then
    width = RUN
    for low = 1, size, RUN do
      local count = min(RUN, size - low + 1)
      local run = {unpack_(values, low, low + count - 1)}
      short_sort(run)
      for place = 1, count do values[low + place - 1] = run[place] end
    end
  end
  return merged(values, size, width, less)
end

-- Unlike C's, it leaves the list alone until everything has been compared, and takes any order
-- function.
local function sort(list, before)
  local size = length_of(list)
  if size < 2 then return end
  if size >= 2147483647 then error("bad argument #1 to 'sort' (array too big)", 3) end
  local values = {}
  for place = 1, size do values[place] = list[place] end
  if before then
    values = merged(values, size, 1, before)
  else
    local ok, sorted = pcall(naturally, values, size)
    if not ok then
      -- The places of comparisons in this file mean nothing to a script.
      if type(sorted) == "string" then sorted = gsub(sorted, "^windlass:bounded:%d+: ", "") end
      error(sorted, 0)
    end
    values = sorted
  end
  for place = 1, size do list[place] = values[place] end
end

library.rep, library.insert, library.remove, library.move = rep, insert, remove, move
library.concat, library.unpack, library.sort = concat, unpack, sort
