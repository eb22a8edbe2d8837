-- join.lua: give a worker a tag that no living worker has, and retire its former one.
-- Source:  none.
-- KEYS     1 the last tag   2 the tags, zset
-- ARGV     1 test clock, '' = the server's   2 retry_after, seconds   3 how many tags there are
--          4 where to start if there is no last tag   5 the tag to retire, 0 = none
-- Returns  the tag, from 1 on
-- It starts at a random tag: after a flush, the first tags must not be those of workers that still run.
-- include: clock full tags
local now, most, last = clock(ARGV[1]), tonumber(ARGV[3]) - 1, nil
write_nothing(KEYS[1])
if ARGV[5] ~= '0' then retire_tag(KEYS[2], ARGV[5], now) end
redis.call('zremrangebyscore', KEYS[2], 0, '(' .. now)
redis.call('zremrangebyscore', KEYS[2], '(' .. -now, 0)

-- If all are taken, as after a hundred thousand starts in ten minutes, reuse the least recently used one.
local tag = tonumber(redis.call('zrangebyscore', KEYS[2], 0, '+inf', 'LIMIT', 0, 1)[1])
last = tonumber(redis.call('get', KEYS[1]) or ARGV[4])
if redis.call('zcard', KEYS[2]) < most then
  repeat
    last = last % most + 1
  until not redis.call('zscore', KEYS[2], last)
  tag = last
end
redis.call('set', KEYS[1], tag)
keep_tag(KEYS[2], tag, now, tonumber(ARGV[2]))
return tag
