-- reassert.lua: tell a server which jobs workers hold, as it may have been promoted without all that the last one had
--          confirmed: renew their leases, and take those again that are ready or delayed here.
-- Source:  none; invisible to Laravel, as a lease has the same bytes.
-- KEYS     1 the tags, zset   then the reserved zset of each queue, the ready list of each, the delayed zset of each,
--          the notify list of each
-- ARGV     as those of renew.lua
-- Returns  for each job 1, or 0 when another worker has it, or it is not there
-- include: clock lease refusal full splice tokens tags
-- A job whose reserve was lost is near the head of its queue.
local SEARCHED = 10000
local now, retry_after, queues, answers = clock(ARGV[1]), tonumber(ARGV[2]), (#KEYS - 1) / 4, {}
write_nothing(KEYS[1])

local function take_again(receipt, tag, reserved, ready, delayed, notify)
  local job = unbumped(receipt)
  local is_ready = redis.call('lpos', ready, job, 'MAXLEN', SEARCHED)
  if not is_ready and not redis.call('zscore', delayed, job) then return false end
  redis.call('zadd', reserved, lease_end(now, retry_after, tag, 1), receipt)
  if is_ready then redis.call('lrem', ready, 1, job) else redis.call('zrem', delayed, job) end
  pcall(count_tokens, ready, notify)
  return true
end

local function hold(queue, tag, receipt)
  local reserved = KEYS[queue + 1]
  local score = redis.call('zscore', reserved, receipt)
  if not score then
    local ready, delayed, notify = KEYS[queue + 1 + queues], KEYS[queue + 1 + 2 * queues], KEYS[queue + 1 + 3 * queues]
    return take_again(receipt, tag, reserved, ready, delayed, notify)
  end
  if not is_held(score, tag) then return false end
  redis.call('zadd', reserved, 'XX', lease_end(now, retry_after, tag, 1), receipt)
  return true
end

for i = 3, #ARGV, 3 do
  local tag = tonumber(ARGV[i + 1])
  local fine, is_held_now = pcall(hold, tonumber(ARGV[i]), tag, ARGV[i + 2])
  if not fine then of_its_queue(is_held_now) end
  if fine and is_held_now then use_tag(KEYS[1], tag, now, retry_after) end
  table.insert(answers, fine and is_held_now and 1 or 0)
end
return answers
