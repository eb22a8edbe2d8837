-- reserve.lua: settle what is done, stage what is due, reserve the oldest jobs in strict queue priority.
-- Source:  Illuminate/Queue/LuaScripts.php, pop and migrateExpiredJobs (13.x). Same bytes on the wire.
-- KEYS     for each queue: ready list, delayed zset, reserved zset, notify list, quarantine list
-- ARGV     1 test clock, '' = the server's   2 retry_after, seconds   3 the worker's tag   4 most jobs
--          5 most bytes of a payload   then for each done job: its queue's number, its receipt
-- Returns  {done jobs that were not ours any more, by number from 1},
--          {queue's number, payload as reserved, ...}, {queue's number, why, ...} for what was
--          quarantined, {queue's number, the server's error, ...}, seconds to the next due job or ''
-- Differs  looks before it takes: what cannot be a job goes to the quarantine, Laravel's is lost;
--          splices `attempts`, Laravel rewrites the payload; the server's clock; bounded batches;
--          counts the wake-up tokens; one queue's wrong type does not stop the others.
-- include: clock lease put splice tokens stage refusal full
local STAGED_AT_MOST, QUARANTINED_AT_MOST = 100, 16
local now, retry_after, tag = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local wanted, most_bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local refused, leases, odd, problems, next_due = {}, {}, {}, {}, nil

write_nothing(KEYS[3])
for i = 6, #ARGV, 2 do
  local reserved = KEYS[(tonumber(ARGV[i]) - 1) * 5 + 3]
  -- Where the key has the wrong type the lease is gone too; the other queues must still be served.
  local removed = redis.pcall('zrem', reserved, ARGV[i + 1])
  if is_refusal(removed) then redis.call('zrem', reserved, ARGV[i + 1]) end
  if removed ~= 1 then table.insert(refused, (i - 4) / 2) end
end

local function bumped(job)
  if #job > most_bytes then return nil, 'too-large' end
  return splice(job, one_more)
end

local function take(queue, ready, reserved, quarantine)
  local job = redis.call('lindex', ready, 0)
  if not job then return false end
  local receipt, why = bumped(job)
  if receipt then
    receipt = put(reserved, lease_end(now, retry_after, tag), receipt)
    table.insert(leases, queue); table.insert(leases, receipt)
  else
    redis.call('rpush', quarantine, string.format('%.6f', now) .. ' ' .. why .. ' ' .. job)
    table.insert(odd, queue); table.insert(odd, why)
  end
  redis.call('lpop', ready)
  return true
end

local function serve(queue)
  local ready, delayed, reserved, notify, quarantine = unpack(KEYS, queue * 5 - 4, queue * 5)
  if redis.call('exists', ready, delayed, reserved, notify) == 0 then return end
  move_due(delayed, ready, now, STAGED_AT_MOST)
  move_due(reserved, ready, now, STAGED_AT_MOST)
  while #leases < wanted * 2 and #odd < QUARANTINED_AT_MOST * 2 do
    if not take(queue, ready, reserved, quarantine) then break end
  end
  count_tokens(ready, notify)
  if #leases == 0 then next_due = first_due(reserved, first_due(delayed, next_due)) end
end

for queue = 1, wanted > 0 and #KEYS / 5 or 0 do
  if #leases >= wanted * 2 then break end
  local fine, problem = pcall(serve, queue)
  if not fine then
    table.insert(problems, queue)
    table.insert(problems, of_its_queue(problem))
  end
end
next_due = #leases == 0 and next_due
return {refused, leases, odd, problems, next_due and string.format('%.6f', math.max(next_due - now, 0)) or ''}
