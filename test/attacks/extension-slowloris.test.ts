/**
 * Tests callers that never finish a request: the server ends each connection after a bounded time, and still serves a
 * manager.
 */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { HOOK_GROUP } from '../../src/api/capi/hooks.ts';
import { ExtensionRig } from './extension-rig.ts';

/**
 * The server waits ten seconds. This limit only ends a socket that the server does not close, and then the test fails.
 */
const GIVE_UP_MS = 120_000;

/** Resolves with true if the server ends the connection. */
async function isCutOff(socket: Socket, drip?: string): Promise<boolean> {
  const dripping = drip === undefined ? undefined : setInterval(() => socket.write(drip), 500);
  const patience = AbortSignal.timeout(GIVE_UP_MS);
  try {
    await once(socket, 'close', { signal: patience });
    return true;
  } catch {
    socket.destroy();
    // A write after the server has closed the connection also leads to an error here.
    return !patience.aborted;
  } finally {
    clearInterval(dripping);
  }
}

test('no handshake, no request, a head without end, and a body without end: cut off', async () => {
  await using rig = await ExtensionRig.start();
  const { hostname, port } = new URL(rig.extension.url);
  const silent = connectTcp(Number(port), hostname).on('error', () => undefined);
  const idle = rig.connect();
  const head = rig.connect();
  const body = rig.connect();
  const http2 = rig.connect({ ALPNProtocols: ['h2'] });
  await Promise.all(
    [idle, head, body, http2].map(async (socket) => {
      await once(socket, 'secureConnect');
    }),
  );
  const first = `POST /${HOOK_GROUP}/discovery HTTP/1.1\r\nHost: x\r\n`;
  head.write(first);
  body.write(`${first}Content-Length: 1000\r\n\r\n`);
  // The preface of HTTP/2, and a header block without the flag END_HEADERS.
  http2.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  http2.write(Buffer.from('00000004000000000000000101000000000182', 'hex'));
  for (const socket of [idle, head, body, http2]) socket.resume();
  silent.resume();
  const ends = [
    isCutOff(silent),
    isCutOff(idle),
    isCutOff(head, 'X-Drip: 1\r\n'),
    isCutOff(body, ' '),
    isCutOff(http2),
  ];
  await rig.callAsManager();
  expect(await Promise.all(ends)).toEqual(ends.map(() => true));
  await rig.callAsManager();
});
