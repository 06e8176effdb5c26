/** Owns the stand-in for k0s: the program that `buildStandIn` writes into each of its files, behind a line with its version. */
'use strict';
const http = require('node:http');
const net = require('node:net');
const { rmSync } = require('node:fs');
const { parseArgs } = require('node:util');

const { version, broken } = /** @type {{ version: string, broken?: string }} */ (Reflect.get(globalThis, 'standIn'));
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'status-socket': { type: 'string', default: '/run/k0s/status.sock' },
    // Of no use to it, but to whoever reads its command line.
    'data-dir': { type: 'string' },
    'disable-components': { type: 'string', multiple: true },
    'kubelet-extra-args': { type: 'string' },
    'enable-worker': { type: 'boolean', default: false },
    single: { type: 'boolean', default: false },
    listen: { type: 'string' },
    upstream: { type: 'string', default: '127.0.0.1:6443' },
  },
});
const [command] = positionals;
/** After its first answer, so that a bad build may look well to who asks only once. */
const LATER_MS = 200;

if (command === 'controller' || command === 'worker') serve(command);
else fail(`unknown command ${command}`);

/** @param {'controller' | 'worker'} role */
function serve(role) {
  if (broken === 'crashes') fail('panic: this build is broken');
  if (broken !== 'hangs') serveStatus(role).on('error', (error) => fail(error.message));
  if (flags.listen !== undefined) passThrough(flags.listen).on('error', (error) => fail(error.message));
  process.once('SIGTERM', leave);
  // The supervisor holds the other end: where it is gone, nobody is left to end this process.
  process.stdin.once('close', leave).resume();
}

/** Every open connection ends with the process, as those of a real one do. */
function leave() {
  if (broken !== 'hangs') rmSync(flags['status-socket'], { force: true });
  process.exit(0);
}

/**
 * As k0s answers: Go field names, HTTP/1.1 on a unix socket.
 * @param {string} role
 */
function serveStatus(role) {
  const status = {
    Version: broken === 'wrong-version' ? `${version}.wrong` : version,
    Pid: process.pid,
    PPid: process.ppid,
    Role: role,
    Workloads: role === 'worker' || flags['enable-worker'],
    SingleNode: flags.single,
  };
  const path = flags['status-socket'];
  rmSync(path, { force: true });
  let answers = 0;
  return http
    .createServer((request, response) => {
      if (answers++ > 0 && broken === 'hangs-later') return;
      if (broken === 'crashes-later') setTimeout(() => fail('panic: this build is broken'), LATER_MS);
      response.writeHead(request.url === '/status' ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify(status));
    })
    .listen(path);
}

/**
 * A controller's API server: its own address in front of the one that the whole stand-in cluster shares.
 * @param {string} listen
 */
function passThrough(listen) {
  const [upstreamHost, upstreamPort] = split(flags.upstream);
  const [host, port] = split(listen);
  // A real one does not hold the second half of an answer back until the first is acknowledged, up to 40 ms later.
  const options = { allowHalfOpen: true, noDelay: true };
  return net
    .createServer(options, (near) => {
      const far = net.connect({ ...options, host: upstreamHost, port: upstreamPort });
      near.on('error', () => far.destroy()).pipe(far);
      far.on('error', () => near.destroy()).pipe(near);
    })
    .listen(port, host);
}

/**
 * @param {string} address
 * @returns {[host: string, port: number]}
 */
function split(address) {
  const colon = address.lastIndexOf(':');
  return [address.slice(0, colon), Number(address.slice(colon + 1))];
}

/** @param {string} message */
function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
