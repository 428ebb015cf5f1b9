-- A worker of the pool (see main.lua): says that it is there, and does one job after the other until it crashes or is told
-- to stop.

local function count_primes(up_to)
  local count = 0
  for number = 2, up_to do
    local is_prime = true
    for divisor = 2, math.floor(math.sqrt(number)) do
      if number % divisor == 0 then
        is_prime = false
        break
      end
    end
    if is_prime then count = count + 1 end
  end
  return count
end

function main()
  send("pool", "ready")
  while true do
    local job = receive("job").payload
    if job.tries <= job.crashes then
      error("job " .. job.number .. " crashes its worker")
    end
    send("pool", "done", count_primes(job.up_to))
  end
end
