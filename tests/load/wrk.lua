-- wrk.lua - one kind of request, and what became of it in one line for tools.js.
-- Arguments: METHOD PATH WANTED [BODY]; WANTED must be in every answer.
local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

function init(args)
    wrong = 0
    wanted = args[3]
    wrk.method = args[1]
    wrk.body = args[4]
    wrk.headers["content-type"] = "application/json"
    message = wrk.format(nil, args[2])
end

function request()
    return message
end

function response(status, headers, body)
    if status ~= 200 or not body:find(wanted, 1, true) then
        if wrong == 0 then
            first = status .. " " .. body:sub(1, 200)
        end
        wrong = wrong + 1
    end
end

function done(summary, latency, requests)
    local e, bad = summary.errors, 0
    for _, thread in ipairs(threads) do
        bad = bad + thread:get("wrong")
        if thread:get("first") then
            print("the first: " .. thread:get("first"))
        end
    end
    print(string.format("counts requests=%d wrong=%d connect=%d read=%d write=%d status=%d timeout=%d",
        summary.requests, bad, e.connect, e.read, e.write, e.status, e.timeout))
end
