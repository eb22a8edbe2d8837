-- notes.lua: read the last texts of a book, which others can write to.
-- Source:  none.
-- KEYS     1 the book, list
-- ARGV     1 how many   2 most bytes of a text   3 'take' = remove the book
-- Returns  the texts, the latest last, without those that are too large
local found = {}
for _, text in ipairs(redis.call('lrange', KEYS[1], -tonumber(ARGV[1]), -1)) do
  if #text <= tonumber(ARGV[2]) then found[#found + 1] = text end
end
if ARGV[3] == 'take' then redis.call('del', KEYS[1]) end
return found
