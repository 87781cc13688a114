// chat_answer.js - asks one model for one answer and reports it as it comes.
import { count, events, ms, request, whenLoaded } from './lib.js';
import { tokenOf } from './chat_tokens.js';

function figures(answer, time) {
    /* rate over the whole time, including prefill: the gaps between tokens that arrive together mean nothing */
    const n = time.tokens ?? time.n, took = time.last - time.begin, parts = [`${n} ${n === 1 ? 'token' : 'tokens'}`];
    if (time.cached)
        parts.push('kept from an earlier request');
    else if (time.last && took > 0)
        parts.push(`${count(Math.round((n * 1000) / took))} tokens/s`);
    if (time.first && !time.cached)
        parts.push(`first after ${ms(time.first - time.begin)}`);
    if (answer.finish === 'length')
        parts.push('cut at the maximum length');
    if (answer.finish === 'stopped')
        parts.push('stopped');
    return parts.join(' · ');
}

function take(chunk, answer, time) {
    if (chunk.error)
        throw new Error(chunk.error.message);
    const choice = chunk.choices[0], piece = choice?.delta?.content;
    if (chunk.usage)
        time.tokens = chunk.usage.completion_tokens;
    if (choice?.finish_reason)
        answer.finish = choice.finish_reason;
    answer.tokens?.push(...(choice?.logprobs?.content ?? []).map(tokenOf));
    if (!piece)
        return false;
    time.last = performance.now();
    time.first ||= time.last;
    time.n++;
    answer.content += piece;
    return true;
}

// Appends to answer.content until the answer ends or the signal stops it; throws what went wrong.
export async function fetchAnswer(body, answer, view, signal) {
    const time = { begin: performance.now(), first: 0, last: 0, n: 0 };
    answer.finish = '';
    if (answer.content === '') // else they would be those of its end alone
        answer.tokens = [];
    try {
        const response = await whenLoaded(() => request('/v1/chat/completions', { body, signal }), (why) => view.wait(why), signal);
        time.cached = ['hit', 'similar'].includes(response.headers.get('x-shoal-cache'));
        for await (const { data } of events(response)) {
            if (data === '[DONE]')
                break;
            if (take(JSON.parse(data), answer, time))
                view.say(answer.content, figures(answer, time));
        }
    } catch (e) {
        if (e.name !== 'AbortError')
            throw e;
        answer.finish = 'stopped';
    }
    answer.meta = figures(answer, time);
}
