-- The mark of a schedule, from its JSON; nil for a damaged text, which counts as no mark (Mark.from_text).
local function is_second(value)
  return type(value) == 'number' and value >= 0 and value < 2 ^ 40 and value == math.floor(value)
end

local MAX_MARK = 1024

local function mark_in(text)
  if text and #text > MAX_MARK then return end
  local is_json, mark = pcall(cjson.decode, text or '')
  is_json = is_json and not string.find(text, '\0', 1, true) -- where cjson stops, Python does not
  if not is_json or type(mark) ~= 'table' or not is_second(mark.settled) or type(mark.rule) ~= 'string' then return end
  if not is_second(mark.pushed) then mark.pushed = nil end
  return mark
end
