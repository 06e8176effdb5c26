/**
 * Tests that the agent does not keep endless answers in memory. An API server, or an attacker in its place, may send
 * such answers.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { REFIT } from '../../sandbox/refit.ts';
import { startAgentProcess } from '../agent/agent-process.ts';
import { sendJson, startStubServer } from '../faults/stub-server.ts';
import { kubeconfigOf } from './rig.ts';

const PATIENCE = { timeout: 150_000, interval: 20 };
const MIB = 1024 * 1024;
const NODE = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', resourceVersion: '1' } };

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** Sends data as fast as the other side reads, until that side closes the connection. */
function flood(response: ServerResponse, onSent: (bytes: number) => void): void {
  const piece = Buffer.alloc(MIB, 'x');
  const push = (): void => {
    do onSent(piece.length);
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', push);
  push();
}

test.each([
  ['an object', (): boolean => true, 'the answer has more than 33554432 bytes', 100],
  ['an error', (): boolean => true, 'the answer has more than 1048576 bytes', 60],
  [
    'an event of a watch',
    (url: string): boolean => url.includes('watch=true'),
    'a line has more than 16777216 bytes',
    80,
  ],
])('%s without end is cut, and the server is named', async (what, isFlooded, complaint, most) => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-endless-'));
  let sent = 0;
  await using server = await startStubServer(({ url }, response) => {
    if (!isFlooded(url)) return sendJson(response, 200, NODE);
    response
      .writeHead(what === 'an error' ? 500 : 200, { 'content-type': 'application/json' })
      .write('"');
    flood(response, (bytes) => {
      sent += bytes;
    });
  });
  const kubeconfig = await kubeconfigOf(directory, server.config.server);
  const files = [
    '--state-dir',
    join(directory, 'state'),
    '--run-dir',
    join(directory, 'run'),
    '--status-socket',
    join(directory, 'none'),
  ];
  const agent = startAgentProcess(
    [process.execPath, REFIT],
    ['--name', 'n1', '--kubeconfig', kubeconfig, ...files, '--log-level', 'debug'],
  );
  try {
    const complaints = (): string[] => agent.log.filter((line) => line.includes(complaint));
    await vi.waitFor(() => expect(complaints().length).toBeGreaterThan(2), PATIENCE);
    expect(complaints()[0]).toContain(server.config.server);
    expect(sent).toBeGreaterThan(MIB);
    expect(await residentMiB(agent.pid)).toBeLessThan(200 + most);
  } finally {
    await agent.stop('SIGKILL');
    await rm(directory, { recursive: true });
  }
});
