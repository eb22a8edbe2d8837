-- read_history.lua: read the texts of several buckets of time.
-- Source:  none.
-- KEYS     the buckets, hashes
-- ARGV     1 most bytes of a text   2 most texts of a bucket
-- Returns  {how many texts were omitted, {writer, text, ...} of each bucket ...}
local found, left_out = {0}, 0
for _, key in ipairs(KEYS) do
    local texts = {}
    if redis.call('hlen', key) > tonumber(ARGV[2]) then
        left_out = left_out + redis.call('hlen', key)
    else
        for _, writer in ipairs(redis.call('hkeys', key)) do
            if redis.call('hstrlen', key, writer) > tonumber(ARGV[1]) then
                left_out = left_out + 1
            else
                texts[#texts + 1] = writer
                texts[#texts + 1] = redis.call('hget', key, writer)
            end
        end
    end
    found[#found + 1] = texts
end
found[1] = left_out
return found
