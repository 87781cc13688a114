// theme.js - colours: as set in the system (auto), light or dark.  Runs before anything is drawn.
'use strict';
(() => {
    const root = document.documentElement.dataset, dark = matchMedia('(prefers-color-scheme: dark)');
    const apply = () => {
        root.theme = root.choice === 'auto' ? (dark.matches ? 'dark' : 'light') : root.choice;
    };
    window.setTheme = (choice) => {
        root.choice = choice;
        apply();
        try {
            localStorage.setItem('shoal-theme', choice);
        } catch { /* not saved: it lasts until the page is closed */ }
    };
    try {
        root.choice = localStorage.getItem('shoal-theme') || 'auto';
    } catch {
        root.choice = 'auto';
    }
    apply();
    dark.addEventListener('change', apply);
})();
