// Preloaded into a server that would call the internet: every name is unknown, as on a machine without a network.
const dns = require("node:dns");
dns.lookup = (host, options, callback) => {
  process.stderr.write(`no network for ${host}\n`);
  const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND", hostname: host });
  process.nextTick(callback ?? options, error);
};
