/** Tests what `refit logs` shows of the pods of a node, on a server that answers as an API server and a kubelet would. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  sendJson,
  sendStatus,
  startStubServer,
  whenReady,
} from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { MODULES } from '../../dialects/modules.ts';
import type { Pod } from '../../kube/resources.ts';
import { describeProblem } from '../../kube/status-error.ts';
import { plainOutput } from '../output.ts';
import { showLogs } from './logs-command.ts';

const ESCAPE = String.fromCodePoint(27);

const pod = (name: string, labels: object, status: Pod['status'], minute = 0): object => ({
  metadata: {
    name,
    namespace: 'system-upgrade',
    labels,
    creationTimestamp: `2026-11-20T08:0${minute}:00Z`,
  },
  spec: { nodeName: 'w1' },
  status,
});
const ended = (name: string, exitCode: number) => ({ name, state: { terminated: { exitCode } } });
const JOB = pod(
  'apply-x',
  { 'upgrade.cattle.io/controller': 'refit' },
  {
    phase: 'Running',
    initContainerStatuses: [ended('drain', 0)],
    containerStatuses: [{ name: 'upgrade', state: { waiting: { reason: 'ImagePullBackOff' } } }],
  },
  1,
);
const HOOK = pod(
  'check-x',
  { 'upgrade.refit.dev/hook': 'check' },
  { phase: 'Failed', containerStatuses: [ended('check', 3)] },
);
const AGENT = pod(
  'agent-x',
  { 'app.kubernetes.io/component': 'refit-agent' },
  { phase: 'Running', containerStatuses: [{ name: 'agent', state: {} }] },
  2,
);
const OTHER = pod(
  'web-1',
  { app: 'web' },
  { phase: 'Running', containerStatuses: [{ name: 'web' }] },
);

interface Given {
  readonly pods?: readonly object[];
  readonly podsCode?: number;
  readonly logCode?: number;
  readonly tail?: number;
}

async function logsOf({ pods = [], podsCode = 200, logCode = 200, tail }: Given) {
  const asked: string[] = [];
  const server = await startStubServer(
    whenReady(({ url }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://stub');
      if (pathname === '/api/v1/pods') {
        asked.push(searchParams.get('fieldSelector') ?? '');
        if (podsCode !== 200) return sendStatus(response, podsCode, 'Forbidden');
        return sendJson(response, 200, { metadata: {}, items: pods });
      }
      if (/^\/apis\/[^/]+\/[^/]+$/.test(pathname))
        return sendJson(response, 200, { resources: [{ name: 'plans' }] });
      if (pathname.includes('/leases')) return sendStatus(response, 404, 'NotFound');
      if (!pathname.endsWith('/log')) return sendJson(response, 200, { metadata: {}, items: [] });
      asked.push(`${pathname.split('/').at(-2)} ${searchParams.toString()}`);
      if (logCode !== 200) return sendStatus(response, logCode, 'Forbidden');
      return void response.end(`one of ${searchParams.get('container')}\n${ESCAPE}[2Jtwo\n`);
    }),
  );
  const folder = await mkdtemp(join(tmpdir(), 'refit-logs-'));
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  const kubeconfig = join(folder, 'kubeconfig');
  const config = {
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server: `http://127.0.0.1:${server.port}` } }],
    users: [{ name: 'a', user: { token: 'none' } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  let text = '';
  const write = (piece: string): void => {
    text += piece;
  };
  const parts = {
    modules: MODULES.filter(({ name }) => name === 'autopilot'),
    clock: new FakeClock(T0),
    output: { ...plainOutput, write },
    abort: new AbortController().signal,
  };
  const flags = { kubeconfig, ...(tail !== undefined && { tail }) };
  const error = await showLogs('w1', flags, parts).then(
    () => undefined,
    (thrown: unknown) => describeProblem(thrown).line,
  );
  return { text, asked, error };
}

test('the pods of upgrades on the node are shown with their containers, the newest last, and no other pods', async () => {
  const { text, asked } = await logsOf({ pods: [OTHER, AGENT, JOB, HOOK], tail: 7 });
  expect(text).toBe(`Pod system-upgrade/check-x  Failed
  container check ended with 3
    one of check
    \uFFFD[2Jtwo

Pod system-upgrade/apply-x  Running
  container drain ended with 0
    one of drain
    \uFFFD[2Jtwo
  container upgrade waits: ImagePullBackOff

Pod system-upgrade/agent-x  Running
  container agent
    one of agent
    \uFFFD[2Jtwo
`);
  expect(asked).toContain('spec.nodeName=w1');
  expect(asked).toContain('apply-x container=drain&tailLines=7');
});

test('a log that the user may not read is told in its place', async () => {
  const { text } = await logsOf({ pods: [HOOK], logCode: 403 });
  expect(text).toContain('    (its log cannot be read: you may not get pods/log)');
});

test('pods that the user may not list are told', async () => {
  expect((await logsOf({ podsCode: 403 })).text).toMatch(/^The pods of the node are not shown: /);
});

test('a node without plans and without pods of upgrades is an error', async () => {
  expect((await logsOf({ pods: [OTHER] })).error).toMatch(
    /^REFIT_CONTROL: no plan has w1 among its targets, and no pod of an upgrade runs there/,
  );
});
