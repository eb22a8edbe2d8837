-- notes.lua: read the last texts of a book, which others can write to.
-- Source:  none.
-- KEYS     1 the book, list
-- ARGV     1 how many   2 most bytes of a text   3 most bytes of all   4 'take' = remove the book
-- Returns  the texts, the latest first, without those that are too large; the error of a key that is not a list: it is
--          removed
local found, left = {}, tonumber(ARGV[3])
local texts = redis.pcall('lrange', KEYS[1], -tonumber(ARGV[1]), -1)
if texts.err then
  if ARGV[4] == 'take' and string.find(texts.err, 'WRONGTYPE', 1, true) then redis.call('del', KEYS[1]) end
  return texts
end
for i = #texts, 1, -1 do
  if #texts[i] <= tonumber(ARGV[2]) then
    left = left - #texts[i]
    if left < 0 then break end
    found[#found + 1] = texts[i]
  end
end
if ARGV[4] == 'take' then redis.call('del', KEYS[1]) end
return found
