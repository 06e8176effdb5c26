/**
 * Tests many concurrent callers: connections, handshakes and bodies have limits, memory stays bounded, and a manager is
 * still served.
 */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { HOOK_GROUP } from '../../src/api/capi/hooks.ts';
import { ExtensionRig } from './extension-rig.ts';

/** The number of bodies. Each has 20 MiB, which is the largest size that is allowed. */
const BODIES = 60;
/** The number of chunks in one body. Each has 1 MiB. */
const CHUNKS = 20;
/** The number of these bodies that fit into the limit at the same time. */
const FIT = 6;
/**
 * More than the limit of 128 MiB for bodies in flight, plus the memory of ended bodies that is not yet
 * garbage-collected. Without the limit, 1,200 MiB and more would be used.
 */
const MORE_KB = 650_000;

test('connections without a handshake push out each other, not a manager', async () => {
  await using rig = await ExtensionRig.start();
  const { hostname, port } = new URL(rig.extension.url);
  const flood: Socket[] = [];
  for (let at = 0; at < 600; at++)
    flood.push(
      connectTcp(Number(port), hostname)
        .on('error', () => undefined)
        .resume(),
    );
  const closed = (): number => flood.filter(({ closed }) => closed).length;
  await vi.waitFor(() => expect(closed()).toBeGreaterThan(400), { timeout: 120_000 });
  await rig.callAsManager();
  for (const socket of flood) socket.destroy();
});

test('connections with a certificate have a cap, too', async () => {
  await using rig = await ExtensionRig.start();
  // The test connects in groups, because handshakes have a separate limit.
  for (let group = 0; group < 4; group++) {
    const sockets = Array.from({ length: 40 }, () => rig.connect().resume());
    await Promise.all(
      sockets.map(async (socket) => await once(socket, 'secureConnect').catch(() => undefined)),
    );
  }
  await vi.waitFor(() => expect(rig.log).toContain('128 connections are open'), {
    timeout: 120_000,
  });
});

test('bodies of the largest size at once: some are refused, memory stays bounded', async () => {
  await using rig = await ExtensionRig.start({ isPatient: true });
  const before = await rig.memory();
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  const bodies = await Promise.all(
    Array.from({ length: BODIES }, async () => {
      const socket = rig.connect();
      await once(socket, 'secureConnect');
      const head = `POST /${HOOK_GROUP}/discovery HTTP/1.1\r\nHost: x\r\nContent-Length: ${CHUNKS * chunk.length}\r\n\r\n`;
      socket.write(head);
      for (let sent = 0; sent < CHUNKS - 1; sent++)
        if (!socket.write(chunk)) await once(socket, 'drain');
      return socket;
    }),
  );
  // No body is complete yet, so all bodies are in flight.
  expect((await rig.memory()) - before).toBeLessThan(MORE_KB);
  const answers = await Promise.all(
    bodies.map(async (socket) => {
      const answered = once(socket, 'data');
      socket.write(chunk);
      const [part] = (await answered) as [Buffer];
      return part.toString().split('\r\n')[0];
    }),
  );
  expect((await rig.memory()) - before).toBeLessThan(MORE_KB);
  const refused = answers.filter((answer) => answer === 'HTTP/1.1 503 Service Unavailable');
  expect(refused.length).toBeGreaterThanOrEqual(BODIES - FIT);
  await rig.callAsManager();
});
