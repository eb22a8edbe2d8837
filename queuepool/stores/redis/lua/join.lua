-- join.lua: give a worker a tag that no living worker has, and retire its former one.
-- Source:  none.
-- KEYS     1 the tags, zset
-- ARGV     1 test clock, '' = the server's   2 retry_after, seconds   3 how many tags there are
--          4 a random tag to begin with, from 1 on   5 the tag to retire, 0 = none
-- Returns  the tag, from 1 on
-- Random, as a counter would repeat after a flush, or a failover to a replica that lags: then two living workers would
-- have the same tag.
-- include: clock full tags
local now, most, tag = clock(ARGV[1]), tonumber(ARGV[3]) - 1, tonumber(ARGV[4])
write_nothing(KEYS[1])
if ARGV[5] ~= '0' then retire_tag(KEYS[1], ARGV[5], now) end
redis.call('zremrangebyscore', KEYS[1], 0, '(' .. now)
redis.call('zremrangebyscore', KEYS[1], '(' .. -now, 0)

-- The next one that is free. If all are taken, as after a hundred thousand starts in ten minutes, reuse the least
-- recently used one.
if redis.call('zcard', KEYS[1]) < most then
  while redis.call('zscore', KEYS[1], tag) do tag = tag % most + 1 end
else
  tag = tonumber(redis.call('zrangebyscore', KEYS[1], 0, '+inf', 'LIMIT', 0, 1)[1]) or tag
end
keep_tag(KEYS[1], tag, now, tonumber(ARGV[2]))
return tag
