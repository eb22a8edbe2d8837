-- read_texts.lua: read the texts of a hash that others can write to.
-- Source:  none.
-- KEYS     1 the hash: name -> text
-- ARGV     1 most bytes of a text   2 most bytes in all; the rest is omitted
-- Returns  {name, text, ...}; an empty text for one that is too large
local all, found, left = redis.call('hgetall', KEYS[1]), {}, tonumber(ARGV[2])
for i = 1, #all, 2 do
  local text = #all[i + 1] <= tonumber(ARGV[1]) and all[i + 1] or ''
  left = left - #all[i] - #text
  if left < 0 then break end
  table.insert(found, all[i])
  table.insert(found, text)
end
return found
