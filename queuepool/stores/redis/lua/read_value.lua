-- read_value.lua: read a value that others can write to.
-- Source:  none.
-- KEYS     1 the key
-- ARGV     1 most bytes; the rest is cut off
-- Returns  the value, or false when there is none
local text = redis.call('get', KEYS[1])
return text and string.sub(text, 1, tonumber(ARGV[1]))
