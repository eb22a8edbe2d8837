-- note.lua: add a text to a book.
-- Source:  none.
-- KEYS     1 the book, list
-- ARGV     1 the text   2 how many texts it keeps   3 seconds that it is kept from now on
-- Returns  nothing
-- Differs  a key that is not a list was put there by another program, and is removed: it would keep out every later text.
-- include: full
write_nothing(KEYS[1])
local answer = redis.pcall('rpush', KEYS[1], ARGV[1])
if type(answer) == 'table' and answer.err then
  if not string.find(answer.err, 'WRONGTYPE', 1, true) then return answer end
  redis.call('del', KEYS[1])
  redis.call('rpush', KEYS[1], ARGV[1])
end
redis.call('ltrim', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('expire', KEYS[1], ARGV[3])
