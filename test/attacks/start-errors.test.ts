/**
 * Tests that an agent reports an error and keeps running if the API server is overloaded, fails, or does not know the
 * agent yet when the agent starts.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { REFIT } from '../../sandbox/refit.ts';
import { type AgentProcess, startAgentProcess } from '../agent/agent-process.ts';
import { sendJson, sendStatus, startStubServer, whenReady } from '../faults/stub-server.ts';
import { kubeconfigOf } from './rig.ts';

const PATIENCE = { timeout: 150_000, interval: 20 };
const NODE = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', resourceVersion: '1' } };

/** Starts an agent whose API server is ready, and gives the answers of `answer` to all other requests. */
async function startAgent(answer: (response: ServerResponse, asked: number) => void, user = {}) {
  await using things = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-start-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  let asked = 0;
  const server = things.use(
    await startStubServer(whenReady((_request, response) => answer(response, ++asked))),
  );
  const files = [
    '--state-dir',
    join(directory, 'state'),
    '--run-dir',
    join(directory, 'run'),
    '--status-socket',
    join(directory, 'none'),
  ];
  const kubeconfig = await kubeconfigOf(directory, server.config.server, user);
  const agent: AgentProcess = startAgentProcess(
    [process.execPath, REFIT],
    ['--name', 'n1', '--kubeconfig', kubeconfig, ...files],
  );
  things.defer(async () => void (await agent.stop('SIGKILL')));
  const owned = things.move();
  return { agent, server, [Symbol.asyncDispose]: async () => await owned.disposeAsync() };
}

const html = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<html>log in</html>');
};

// The tests run concurrently, because each waits seconds for its own process.
test.concurrent.each<[string, (response: ServerResponse) => void, string]>([
  ['429', (response) => sendStatus(response, 429, 'TooManyRequests'), 'REFIT_UNREACHABLE: http://'],
  ['500', (response) => sendStatus(response, 500, 'InternalError'), 'REFIT_UNREACHABLE: http://'],
  ['401', (response) => sendStatus(response, 401, 'Unauthorized'), 'REFIT_UNAUTHORIZED: http://'],
  [
    '403 at first',
    (response) => sendStatus(response, 403, 'Forbidden'),
    'REFIT_FORBIDDEN: http://',
  ],
  ['a page of HTML', html, 'REFIT_BAD_ANSWER: http://'],
  [
    'another kind',
    (response) => sendJson(response, 200, { ...NODE, kind: 'Pod' }),
    'REFIT_BAD_ANSWER: http://',
  ],
  ['no object', (response) => sendJson(response, 200, [1]), 'REFIT_BAD_ANSWER: http://'],
  [
    'a broken connection',
    (response) => void response.destroy(),
    'REFIT_UNREACHABLE: cannot reach http://',
  ],
])('%s: the agent names it, and starts once it is over', async (name, refuse, line) => {
  // The agent repeats the first refusal at once, because a server that has just started refuses everything.
  const failures = name === '403 at first' ? 4 : 3;
  await using run = await startAgent((response, asked) => {
    if (asked <= failures) refuse(response);
    else sendJson(response, 200, NODE);
  });
  await vi.waitFor(
    () => expect(run.agent.log.join('\n')).toContain('"msg":"agent started"'),
    PATIENCE,
  );
  expect(
    run.agent.log.filter((text) => text.includes('cannot read the object at the start')),
  ).toHaveLength(3);
  expect(run.agent.log.join('\n')).toContain(line);
  expect(run.agent.log.join('\n')).not.toContain('REFIT_INTERNAL');
});

test.concurrent('a Node that does not exist, such as one with a wrong name: the agent says that it waits', async () => {
  const details = { kind: 'nodes', name: 'n1' };
  const status = {
    apiVersion: 'v1',
    kind: 'Status',
    status: 'Failure',
    reason: 'NotFound',
    code: 404,
    details,
  };
  await using run = await startAgent((response) => sendJson(response, 404, status));
  await vi.waitFor(
    () => expect(run.agent.log.join('\n')).toContain('"msg":"agent started"'),
    PATIENCE,
  );
  expect(run.agent.log.join('\n')).toContain('the object does not exist yet","node":"n1"');
});

test.concurrent('a token that comes later, as the certificate of a kubelet: the agent waits for it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-token-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const tokenFile = join(directory, 'token');
  await using run = await startAgent((response) => sendJson(response, 200, NODE), { tokenFile });
  const waits = '"msg":"cannot read the object at the start; trying again"';
  await vi.waitFor(() => expect(run.agent.log.join('\n')).toContain(waits), PATIENCE);
  expect(run.agent.log.join('\n')).toContain('REFIT_KUBECONFIG: cannot read the file of ');
  await writeFile(tokenFile, 'abc');
  await vi.waitFor(
    () => expect(run.agent.log.join('\n')).toContain('"msg":"agent started"'),
    PATIENCE,
  );
});

test.concurrent.each<[string, (response: ServerResponse) => void, string]>([
  [
    'a right that stays missing',
    (response) => sendStatus(response, 403, 'Forbidden'),
    'REFIT_FORBIDDEN: ',
  ],
  [
    'a server without Nodes',
    (response) => response.writeHead(404).end('404 page not found'),
    'REFIT_NO_CRD: ',
  ],
])('%s ends the agent, with one line that says why', async (_name, refuse, line) => {
  await using run = await startAgent(refuse);
  expect(await run.agent.exited).toBeGreaterThan(0);
  expect(run.agent.log.at(-1)).toContain(line);
});
