/**
 * Tests downloads from `refit serve` by agents that are killed at random bytes. The next agent keeps the bytes that are
 * on the disk.
 */

import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { seededRandom } from '../faults/random.ts';
import { publishReleases, startUpdateServer } from '../support/builders/update-servers.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, Rig } from './rig.ts';

const MIB = 1024 * 1024;
const BYTES = 12 * MIB;
const KILLS = 5;

let cluster: MemoryCluster;
beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

interface Line extends AsyncDisposable {
  readonly port: number;
  /** First byte that each request asked for. */
  readonly starts: readonly number[];
}

/** Starts a slow TCP proxy for a port of this machine. */
async function slowLine(target: number): Promise<Line> {
  const starts: number[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const each of [client, upstream]) {
      sockets.add(each);
      each
        .on('error', () => undefined)
        .on('close', () => {
          client.destroy();
          upstream.destroy();
        });
    }
    client.on('data', (head: Buffer) =>
      starts.push(Number(/^range: bytes=(\d+)-/im.exec(head.toString())?.[1] ?? 0)),
    );
    client.pipe(upstream);
    const forward = async (): Promise<void> => {
      for await (const chunk of upstream as AsyncIterable<Buffer>) {
        if (!client.write(chunk)) await once(client, 'drain');
        await delay(4);
      }
      client.end();
    };
    forward().catch(() => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    starts,
    async [Symbol.asyncDispose]() {
      for (const each of sockets) each.destroy();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

test.each([1])(
  'seed %i: killed five times, an agent reads less than 1 MiB again for each',
  async (seed) => {
    const directory = await mkdtemp(join(tmpdir(), 'refit-serve-'));
    onTestFinished(async () => await rm(directory, { recursive: true }));
    const { admin, kubeconfig } = cluster;
    const policy = { soakMs: 0 };
    await using rig = await Rig.start({
      name: `killed${seed}`,
      admin,
      kubeconfig,
      bytes: BYTES,
      policy,
    });
    const bytes = Buffer.from(await (await fetch(`${rig.server.url}/new`)).arrayBuffer());
    await publishReleases(directory, [{ version: NEW, bytes }]);
    await using server = await startUpdateServer(directory);
    await using line = await slowLine(Number(new URL(server.url).port));
    const url = `http://127.0.0.1:${line.port}/files/${rig.server.sha256('/new')}/k0s`;
    const { part } = upgradePathsOf(rig.host.binary);
    const received = async (): Promise<number> =>
      (await stat(part).catch(() => undefined))?.size ?? 0;
    const random = seededRandom(seed);
    const kept: number[] = [];
    rig.startAgent();
    await rig.send('/new', NEW, { url });
    for (let kill = 1; kill <= KILLS; kill++) {
      // A random byte in the next part of the file.
      const at = Math.floor(((kill - 1 + random()) / (KILLS + 1)) * bytes.length);
      await rig.until(async () => expect(await received()).toBeGreaterThan(at));
      await rig.agent?.stop('SIGKILL');
      kept.push(await received());
      rig.startAgent();
    }
    await rig.end();
    expect([rig.statuses.at(-1), await rig.host.version()]).toEqual(['Completed', NEW]);
    expect(kept.every((size) => size < bytes.length)).toBe(true);
    const [first, ...resumed] = line.starts;
    expect([first, resumed.length]).toEqual([0, KILLS]);
    const again = resumed.map((start, index) => (kept[index] ?? 0) - start);
    expect(Math.min(...again)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...again)).toBeLessThan(MIB);
    const statuses = new Set(server.requests.map(({ status }) => status));
    expect(statuses).toEqual(new Set([200, 206]));
  },
);
