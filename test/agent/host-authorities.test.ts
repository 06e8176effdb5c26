/**
 * Tests which authorities an agent trusts if its kubeconfig names no authority: the authorities of Node.js and of the
 * host, as kubectl does.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { AGENT_FLAGS } from '../../src/install/host/program.ts';
import { sendJson } from '../faults/stub-server.ts';
import { startAgentProcess } from './agent-process.ts';
import { startHttpsMirror } from './https-mirror.ts';

const ENTRY = new URL('../../src/cmd/refit.ts', import.meta.url).pathname;
const NODE = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', resourceVersion: '1' } };
/**
 * The one option of the service unit that decides which authorities count. With the other options, Node.js cannot run
 * the source.
 */
const SHIPPED = AGENT_FLAGS.filter((flag) => flag.endsWith('-ca'));

test.each([[[]], [SHIPPED]])(
  'an authority of the host proves the API server, with %j',
  async (flags) => {
    const directory = await mkdtemp(join(tmpdir(), 'refit-authorities-'));
    onTestFinished(async () => await rm(directory, { recursive: true }));
    await using api = await startHttpsMirror((_request, response) => sendJson(response, 200, NODE));
    const kubeconfig = join(directory, 'kubeconfig');
    const cluster = { server: api.server.config.server };
    const config = {
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    };
    await writeFile(kubeconfig, JSON.stringify(config), { mode: 0o600 });
    const files = ['state-dir', 'run-dir', 'status-socket'].flatMap((flag) => [
      `--${flag}`,
      join(directory, flag),
    ]);
    const agent = startAgentProcess(
      [process.execPath, ...flags, ENTRY],
      ['--name', 'n1', '--kubeconfig', kubeconfig, ...files],
      api.trust,
    );
    // The agent must stop before the API server, because the API server waits for the connections of the agent.
    await using running = new AsyncDisposableStack();
    running.defer(async () => void (await agent.stop('SIGKILL')));
    await vi.waitFor(() => expect(agent.log.join('\n')).toContain('"msg":"agent started"'), {
      timeout: 150_000,
    });
  },
);
