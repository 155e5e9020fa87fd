// Preloaded into the reference server, which sends updates and log messages every 5 s: here it sends ten in that time.
const set = globalThis.setInterval;
globalThis.setInterval = (callback, delay, ...rest) => set(callback, delay / 10, ...rest);
