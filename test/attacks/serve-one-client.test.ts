/** Tests that the update server still serves other clients if one client opens as many connections as it can. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { startUpdateServer } from '../support/builders/update-servers.ts';

/** More connections than one client may have. */
const FLOOD = 1_200;
/**
 * The number of connections in a group. Fewer than the number of connections that may wait until the server accepts
 * them.
 */
const GROUP = 200;

async function statusFor(url: string, localAddress: string): Promise<number | undefined> {
  const [response] = (await once(get(url, { localAddress, agent: false }), 'response')) as [
    IncomingMessage,
  ];
  response.resume();
  return response.statusCode;
}

test('a flood from one address leaves room for another one', async () => {
  await using things = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-serve-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  await writeFile(join(directory, 'catalog.json'), JSON.stringify({ releases: {}, channels: {} }));
  const server = things.use(await startUpdateServer(directory, {}));
  const { port } = new URL(server.url);
  const flood: Socket[] = [];
  things.defer(() => flood.forEach((socket) => socket.destroy()));
  for (let group = 0; group < FLOOD / GROUP; group++) {
    const sockets = Array.from({ length: GROUP }, () => connect(Number(port), '127.0.0.1'));
    flood.push(...sockets);
    await Promise.all(sockets.map(async (socket) => void (await once(socket.resume(), 'connect'))));
  }
  const closed = (): number => flood.filter((socket) => socket.closed).length;
  await vi.waitFor(() => expect(closed()).toBe(FLOOD - 1_000), { timeout: 120_000 });
  expect(await statusFor(`${server.url}/stable/`, '127.0.0.2')).toBe(404);
  // When one connection ends, the server accepts another.
  flood.find((socket) => !socket.closed)?.destroy();
  await vi.waitFor(
    async () => expect(await statusFor(`${server.url}/stable/`, '127.0.0.1')).toBe(404),
    60_000,
  );
});
