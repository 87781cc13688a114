// chat_store.js - the conversations, kept in this browser: newest first, the oldest go when there is no room.
const KEY = 'shoal-chats', MAX = 60;

// {id, at, messages: [{role: 'user', content} or {role: 'assistant', answers: [{model, content, meta, finish} or null]}]}
export function load() {
    try {
        const all = JSON.parse(localStorage.getItem(KEY));
        return Array.isArray(all) ? all.filter((c) => c?.id && Array.isArray(c.messages)) : [];
    } catch {
        return [];
    }
}

// True: all of them are kept.
export function save(all) {
    let list = all.filter((c) => c.messages.length > 0).slice(0, MAX);
    for (;;) {
        try {
            localStorage.setItem(KEY, JSON.stringify(list, (key, value) => (key === 'tokens' ? undefined : value)));
            return true;
        } catch { /* full, or not allowed */
            if (list.length <= 1)
                return false;
            list = list.slice(0, -1);
        }
    }
}

export function create() {
    return { id: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`, at: Date.now(), messages: [] };
}

export function title(c) {
    const first = c.messages.find((m) => m.role === 'user')?.content.trim().split('\n')[0] ?? '';
    return first.length > 60 ? `${first.slice(0, 57)}…` : first || 'New conversation';
}

// As Markdown, for reading elsewhere.
export function asMarkdown(c, system) {
    const parts = [`# ${title(c)}`, new Date(c.at).toISOString().slice(0, 10)];
    if (system)
        parts.push(`## System\n\n${system}`);
    for (const m of c.messages)
        if (m.role === 'user')
            parts.push(`## You\n\n${m.content}`);
        else
            parts.push(...m.answers.filter(Boolean).map((a) => `## ${a.model}\n\n${a.content}`));
    return `${parts.join('\n\n')}\n`;
}

export function download(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type })), a = document.createElement('a');
    a.href = url;
    a.download = name;
    document.body.append(a);
    a.click();
    a.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}
