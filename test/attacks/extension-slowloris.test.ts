/** Callers that never finish what they begin: each is cut off after a bounded time, and a manager is still served. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { HOOK_GROUP } from '../../src/api/capi/hooks.ts';
import { ExtensionRig } from './extension-rig.ts';

/** The server's patience is ten seconds; the rest is for a busy machine. Who is never cut off waits for all of it. */
const BOUND_MS = 120_000;

async function endOf(socket: Socket, drip?: string): Promise<number> {
  const began = performance.now();
  const dripping = drip === undefined ? undefined : setInterval(() => socket.write(drip), 500);
  // A socket that nobody cuts off fails the test, and does not hang it.
  await once(socket, 'close', { signal: AbortSignal.timeout(BOUND_MS) }).catch(() =>
    socket.destroy(),
  );
  clearInterval(dripping);
  return performance.now() - began;
}

test('no handshake, no request, a head without end, and a body without end: cut off', async () => {
  await using rig = await ExtensionRig.start();
  const { hostname, port } = new URL(rig.extension.url);
  const silent = connectTcp(Number(port), hostname).on('error', () => undefined);
  const [idle, head, body, http2] = [
    rig.connect(),
    rig.connect(),
    rig.connect(),
    rig.connect({ ALPNProtocols: ['h2'] }),
  ];
  await Promise.all(
    [idle, head, body, http2].map(async (socket) => {
      await once(socket, 'secureConnect');
    }),
  );
  const first = `POST /${HOOK_GROUP}/discovery HTTP/1.1\r\nHost: x\r\n`;
  head.write(first);
  body.write(`${first}Content-Length: 1000\r\n\r\n`);
  // The preface, and a header block that is said to continue.
  http2.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  http2.write(Buffer.from('00000004000000000000000101000000000182', 'hex'));
  for (const socket of [idle, head, body, http2]) socket.resume();
  silent.resume();
  const ends = [
    endOf(silent),
    endOf(idle),
    endOf(head, 'X-Drip: 1\r\n'),
    endOf(body, ' '),
    endOf(http2),
  ];
  await rig.callAsManager();
  for (const spent of await Promise.all(ends)) expect(spent).toBeLessThan(BOUND_MS);
  await rig.callAsManager();
});
