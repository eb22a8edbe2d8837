-- Add to a sorted set without merging: two byte-identical payloads would become one job. Blanks, which JSON ignores,
-- make them different: first some spaces, then, if others have those, a number written in blanks. With one more space
-- for each try, a thousand identical payloads would take a million tries.
local SPACES, BLANKS = 8, {' ', '\t', '\n', '\r'}

local function in_blanks(number)
  local word = ''
  while number > 0 do
    word = word .. BLANKS[number % 4 + 1]
    number = math.floor(number / 4)
  end
  return word
end

local function put(zset, score, member)
  local tries, spaced = 0, member
  while redis.call('zadd', zset, 'NX', score, member) == 0 do
    tries = tries + 1
    local blanks = ' '
    if tries > SPACES then blanks, member = in_blanks(redis.call('zcard', zset) + 2 ^ (tries - SPACES)), spaced end
    member = string.gsub(member, '^(%s*.?)', '%1' .. blanks, 1)
    if tries <= SPACES then spaced = member end
  end
  return member
end
