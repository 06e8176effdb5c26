/**
 * Tests the preview of the served dashboard in the forms in which Refit ships. There, the worker thread that reads the
 * text of a viewer has no source file that it could load.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { ActionResult } from '../../src/cli/dashboard/state.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { buildPlan } from '../support/builders/plans.ts';
import { buildOneFile } from '../support/one-file.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';

const PATIENCE = { timeout: 60_000, interval: 100 };
const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const ADA = {
  kind: 'SelfSubjectReview',
  apiVersion: 'authentication.k8s.io/v1',
  metadata: { name: '' },
  status: { userInfo: { username: 'ada' } },
};

let directory: string;
let cluster: MemoryCluster;
let kubeconfig: string;
/** The API server in memory knows no users. This server says whose token it is, and passes on all other requests. */
const front = createServer((asked, answer) => {
  const { url = '', method, headers } = asked;
  if (url.startsWith(REVIEWS)) {
    answer.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(ADA));
    return;
  }
  const passed = request(new URL(url, cluster.url), { method, headers }, (response) => {
    answer.writeHead(response.statusCode ?? 500, response.headers);
    response.pipe(answer);
  });
  passed.on('error', () => answer.destroy());
  answer.on('close', () => passed.destroy());
  asked.pipe(passed);
});

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-preview-build-'));
  cluster = await startMemoryCluster();
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const { port } = front.address() as AddressInfo;
  kubeconfig = await cluster.kubeconfigFor(`http://127.0.0.1:${port}`);
});

afterAll(async () => {
  front.close();
  front.closeAllConnections();
  await cluster.stop();
  await rm(directory, { recursive: true });
});

async function ask(port: number, body: string): Promise<ActionResult> {
  const headers = { authorization: 'Bearer ada-token', 'x-refit-action': '1' };
  const sent = request({ port, host: '127.0.0.1', path: '/api/preview', method: 'POST', headers });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return JSON.parse(await text(answer)) as ActionResult;
}

test.each<[string, () => Promise<readonly string[]>]>([
  ['package', async () => [process.execPath, await buildRefit(join(directory, 'dist'))]],
  [
    'one-file binary',
    async () => [await buildOneFile(await mkdtemp(join(directory, 'one-file-')))],
  ],
])('the controller of the %s previews the text of a viewer', async (_form, build) => {
  const [program = '', ...args] = await build();
  const port = await freePort();
  const flags = ['--kubeconfig', kubeconfig, '--ui-address', `127.0.0.1:${port}`];
  const controller = spawn(program, [...args, 'controller', ...flags], { stdio: 'ignore' });
  const ended = once(controller, 'close');
  onTestFinished(async () => {
    controller.kill('SIGKILL');
    await ended;
  });
  const plan = JSON.stringify({ ...buildPlan(), metadata: { name: 'autopilot' } });
  const said = await vi.waitFor(async () => await ask(port, plan), PATIENCE);
  expect(said.lines.join('\n')).toContain('Plan autopilot');
  expect(said.lines.join('\n')).not.toMatch(/cannot be read|its reader/);
  const refused = await ask(port, 'kind: [Plan');
  expect(refused).toMatchObject({ isDone: false });
  expect(refused.lines.join('\n')).toContain('is not YAML');
});
