-- note.lua: add a text to a book.
-- Source:  none.
-- KEYS     1 the book, list
-- ARGV     1 the text   2 how many texts it keeps   3 seconds that it is kept from now on
-- Returns  nothing
-- include: full
write_nothing(KEYS[1])
redis.call('rpush', KEYS[1], ARGV[1])
redis.call('ltrim', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('expire', KEYS[1], ARGV[3])
