-- set_limit.lua: change what is known of a limit, but not what others change of it at the same time.
-- Source:  none.
-- KEYS     1 limits, hash
-- ARGV     1 its name   2 its number and its seconds per number, as code says; '' = as they are, if it is known
--          3 the number that an operator has set, '' = none; 'as it is'
-- Returns  what was known of it, false if nothing was
local known = redis.call('hget', KEYS[1], ARGV[1])
local code, by_hand = string.match(known or '', '^(%d+ %S+) (%d*)$')
if ARGV[2] ~= '' then code = ARGV[2] end
if ARGV[3] ~= 'as it is' then by_hand = ARGV[3] end
if code then redis.call('hset', KEYS[1], ARGV[1], code .. ' ' .. (by_hand or '')) end
return known
