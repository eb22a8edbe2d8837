-- reserve.lua: remove done jobs, stage due ones, reserve the oldest in strict queue priority.
-- Source:  Illuminate/Queue/LuaScripts.php, pop and migrateExpiredJobs (13.x). Same bytes on the wire.
-- KEYS     1 the tags, zset   then for each queue: ready list, delayed zset, reserved zset, notify list, quarantine
-- ARGV     1 test clock, '' = the server's   2 retry_after, seconds   3 the worker's tag   4 most jobs
--          5 most bytes of a payload   then for the done jobs of each queue and tag: the queue's number, the tag of the
--          worker that reserved them, how many, their receipts
-- Returns  {done jobs whose lease was lost, by number from 1},
--          {queue's number, payload as reserved, ...}, {queue's number, why, ...} for quarantined
--          payloads, {queue's number, the server's error, ...}, seconds to the next due job or '',
--          1 if no other job is ready, 0 if there is one or if a queue was not looked at
-- Differs  checks before it takes: a payload that cannot be a job goes to the quarantine, Laravel's pop loses it;
--          splices `attempts`, where Laravel rewrites the payload; the server's clock; bounded batches;
--          corrects the number of wake-up tokens; a queue with a key of the wrong type does not stop the others;
--          refuses a retired tag, whose worker has given up on this call. It may have waited behind a BLPOP that
--          took a token: then the tokens are put right.
-- include: clock lease put splice tokens stage refusal full tags
local STAGED_AT_MOST = 100
-- jobs that are taken in one step, and bytes after which it stops, however many were requested
local AT_ONCE, ENOUGH = 16, 256 * 1024
local now, retry_after, tag = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local wanted, most_bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local refused, leases, odd, problems, next_due, bytes_taken = {}, {}, {}, {}, nil, 0
local queues, looked_at, left = (#KEYS - 1) / 5, 0, 0

write_nothing(KEYS[4])
if not use_tag(KEYS[1], tag, now, retry_after) then
  for at = 2, #KEYS, 5 do pcall(count_tokens, KEYS[at], KEYS[at + 3]) end
  return redis.error_reply('RETIRED tag ' .. ARGV[3])
end

-- Under this worker's present tag the bytes prove the lease: its jobs are given back only after the tag is retired.
-- Under one of its older tags the score must prove it.
local function is_ours(reserved, receipt, owner)
  if owner == tag then return true end
  local score = redis.pcall('zscore', reserved, receipt)
  if is_refusal(score) then redis.call('zscore', reserved, receipt) end
  return type(score) == 'string' and is_held(score, owner)
end

local number = 0
local function end_done(reserved, owner, first, last)
  for i = first, last do
    -- If the key has the wrong type, the lease is gone too; the other queues must still be served.
    local removed = is_ours(reserved, ARGV[i], owner) and redis.pcall('zrem', reserved, ARGV[i])
    if is_refusal(removed) then redis.call('zrem', reserved, ARGV[i]) end
    number = number + 1
    if removed ~= 1 then table.insert(refused, number) end
  end
end

local at = 6
while at <= #ARGV do
  local last = at + 2 + tonumber(ARGV[at + 2])
  end_done(KEYS[(tonumber(ARGV[at]) - 1) * 5 + 4], tonumber(ARGV[at + 1]), at + 3, last)
  at = last + 1
end

local function bumped(job)
  if #job > most_bytes then return nil, 'too-large' end
  return splice(job, one_more)
end

local function move(job, queue, reserved, quarantine)
  local receipt, why = bumped(job)
  if receipt then
    local lease = lease_end(now, retry_after, tag, #leases / 2 + 1)
    receipt = put(reserved, lease, receipt)
    table.insert(leases, queue); table.insert(leases, receipt)
  else
    redis.call('rpush', quarantine, string.format('%.6f', now) .. ' ' .. why .. ' ' .. job)
    table.insert(odd, queue); table.insert(odd, why)
  end
end

-- Take some of the oldest jobs at once, with two commands for all. Returns how many these were, and their bytes.
local function take(most, queue, ready, reserved, quarantine)
  local jobs, bytes, moved = redis.call('lrange', ready, 0, most - 1), 0, 0
  local fine, problem = pcall(function()
    for _, job in ipairs(jobs) do
      move(job, queue, reserved, quarantine)
      bytes, moved = bytes + #job, moved + 1
    end
  end)
  if moved > 0 then redis.call('ltrim', ready, moved, -1) end
  if not fine then error(problem, 0) end
  return moved, bytes
end

local function serve(queue)
  local ready, delayed, reserved, notify, quarantine = unpack(KEYS, queue * 5 - 3, queue * 5 + 1)
  if redis.call('exists', ready, delayed, reserved, notify) == 0 then looked_at = looked_at + 1 return end
  move_due(delayed, ready, now, STAGED_AT_MOST)
  move_due(reserved, ready, now, STAGED_AT_MOST)
  while #leases < wanted * 2 and #odd < AT_ONCE * 2 and bytes_taken < ENOUGH do
    local moved, bytes = take(math.min(wanted - #leases / 2, AT_ONCE), queue, ready, reserved, quarantine)
    if moved == 0 then break end
    bytes_taken = bytes_taken + bytes
  end
  left, looked_at = left + count_tokens(ready, notify), looked_at + 1
  if #leases == 0 then next_due = first_due(reserved, first_due(delayed, next_due)) end
end

for queue = 1, wanted > 0 and queues or 0 do
  if #leases >= wanted * 2 or bytes_taken >= ENOUGH then break end
  local fine, problem = pcall(serve, queue)
  if not fine then
    table.insert(problems, queue)
    table.insert(problems, of_its_queue(problem))
  end
end
next_due = #leases == 0 and next_due
local due = next_due and string.format('%.6f', math.max(next_due - now, 0)) or ''
return {refused, leases, odd, problems, due, looked_at == queues and left == 0 and 1 or 0}
