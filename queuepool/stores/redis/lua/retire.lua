-- retire.lua: refuse every reserve under this tag from now on.
-- Source:  none.
-- KEYS     1 the tags, zset
-- ARGV     1 test clock, '' = the server's   2 the tag
-- Returns  nothing
-- include: clock full tags
local now = clock(ARGV[1])
write_nothing(KEYS[1])
retire_tag(KEYS[1], ARGV[2], now)
