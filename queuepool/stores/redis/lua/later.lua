-- later.lua: add jobs that become ready after a delay.
-- Source:  Illuminate/Queue/LuaScripts.php, later (13.x). Same bytes on the wire.
-- KEYS     1 delayed zset
-- ARGV     1 test clock, '' = the server's   2 delay, seconds   3 the stewards' channel   then the payloads
-- Returns  when they are due, in Unix seconds, as text
-- Differs  the server's clock and fractions of a second; never merges two jobs; notifies the stewards.
-- include: clock put wake
local due = clock(ARGV[1]) + tonumber(ARGV[2])
for i = 4, #ARGV do
  put(KEYS[1], due, ARGV[i])
end
wake_if_first(KEYS[1], ARGV[3], due)
return string.format('%.6f', due)
