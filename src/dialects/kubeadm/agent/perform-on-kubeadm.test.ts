/**
 * Proves what the agent does on a kubeadm host at each status, and after it was stopped at each status. The scripts of
 * the host are simulated.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MemoryStore, viewOf } from '../../../../test/agent/memory-object.ts';
import { buildVeto } from '../../../../test/support/builders/vetoes.ts';
import { Agent, type AgentParts } from '../../../agent/agent.ts';
import { reasonReporter } from '../../../agent/object/reason-report.ts';
import type { SignalObject } from '../../../agent/object/signal-object.ts';
import { finishedSignals } from '../../../agent/state/finished-signals.ts';
import { loadJournal, saveJournal } from '../../../agent/state/journal-file.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { StatusError, TransportError } from '../../../kube/status-error.ts';
import { decodeReport, type SignalData } from '../../../signal/annotations.ts';
import { systemClock } from '../../../util/clock.ts';
import { silentLogger } from '../../../util/log.ts';
import { findKubeadm, type KubeadmTools, performOnKubeadm } from './perform-on-kubeadm.ts';

const FROM = 'v1.36.2';
const TO = 'v1.36.3';
const SIGNAL: SignalData = {
  planId: 'p',
  created: '2026-11-22T08:00:00Z',
  command: {
    id: 0,
    kind: 'kubeadmupdate',
    url: 'https://example.com/SHA256SUMS',
    version: TO,
    sha256: 'ab'.repeat(32),
  },
};
const BINARIES = { kubeadm: { path: '/f/kubeadm' }, kubelet: { path: '/f/kubelet' } };
const PATIENCE = { timeout: 60_000, interval: 5 };

let directory = '';
let store: MemoryStore;
let stop: AbortController;
/** The steps that changed the host, in order. */
let steps: string[];
/** The version of the kubelet on the host. */
let kubelet: string;
/** Returns the output of a step that fails; undefined if the step succeeds. */
let answer: (step: string) => Promise<string | undefined>;
/** The version in ConfigMap kubeadm-config. */
let cluster: string;
/** The version of the API server. */
let server: string;
/** The number of requests that the API server leaves unanswered from now on. */
let away: number;
/** What the host prints about crashes of its kubelet, as `times last-line`; empty if there are none. */
let crashes: string;
let agents: Promise<void>[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-kubeadm-'));
  store = new MemoryStore();
  setKubelet(FROM);
  stop = new AbortController();
  steps = [];
  kubelet = FROM;
  cluster = TO;
  server = TO;
  away = 0;
  crashes = '';
  agents = [];
  answer = async () => await Promise.resolve(undefined);
});
afterEach(async () => {
  stop.abort();
  await Promise.all(agents);
  await rm(directory, { recursive: true });
});

function setKubelet(kubeletVersion: string): void {
  store.change({ status: { nodeInfo: { kubeletVersion } } });
}

function stepOf(script: string): string {
  if (script.includes('upgrade node phase preflight')) return 'prepare';
  if (script.includes('install_from previous kubelet')) return 'rollBack';
  return /STEP=\W+(\w+)/.exec(script)?.[1] ?? 'facts';
}

interface More {
  readonly agent?: Partial<AgentParts>;
  readonly tools?: Partial<KubeadmTools>;
}

const TOOLS = { clock: systemClock, random: () => 0, log: silentLogger };

function toolsOf(more: Partial<KubeadmTools> = {}): KubeadmTools {
  const get = async ({ kind }: { kind: string }) => {
    if (away > 0 && away--) throw new TransportError('connection refused');
    const config = { data: { ClusterConfiguration: `kubernetesVersion: ${cluster}\n` } };
    return await Promise.resolve(kind === 'Node' ? store.object : config);
  };
  const raw = async () =>
    await Promise.resolve({ status: 200, body: JSON.stringify({ gitVersion: server }) });
  return {
    ...TOOLS,
    client: {
      get,
      raw,
      listAll: async () => await Promise.resolve({ items: [] }),
    } as unknown as KubeClient,
    host: { name: 'w1', role: 'worker' },
    kubeadm: {},
    shells: () => ({
      async run(_host, script) {
        const step = stepOf(script);
        if (step !== 'facts') steps.push(step);
        const wrong = await answer(step);
        if (wrong !== undefined) return { code: 1, stdout: wrong, stderr: '' };
        if (step === 'kubelet') {
          kubelet = TO;
          setKubelet(crashes === '' ? TO : FROM);
        }
        const facts = `kubeadm=${steps.includes('kubeadm') ? TO : FROM}\nkubelet=${kubelet}\nkubeletCrashes=${crashes}\n`;
        return { code: 0, stdout: step === 'facts' ? facts : `${FROM} said this`, stderr: '' };
      },
    }),
    directory: join(directory, 'fetched'),
    root: '',
    fetch: async () => await Promise.resolve(BINARIES),
    reportReason: async () => await Promise.resolve(),
    userAgent: 'test',
    limits: { maxBytes: 1e6, reserveBytes: 0, totalMs: 1e6, stallMs: 1e6 },
    ...more,
  };
}

function partsOf({ agent, tools }: More): AgentParts {
  const journal = join(directory, 'journal.json');
  const carriedOut = toolsOf(tools);
  const unused = (): never => {
    throw new Error('a kubeadm host has no such service');
  };
  return {
    ...TOOLS,
    object: viewOf(store),
    loadJournal: async () => await loadJournal(journal),
    saveJournal: async (next) => await saveJournal(journal, next),
    perform: async (step, current, abort) =>
      await performOnKubeadm(step, current, carriedOut, abort),
    maintenance: {
      whoCordons: unused,
      readNode: unused,
      hasCordon: unused,
      cordonAndDrain: unused,
      uncordon: unused,
    },
    observe: async () => await Promise.resolve({}),
    searchService: unused,
    ageOf: unused,
    times: { restartTimeoutMs: 1, soakMs: 1, readyTimeoutMs: 1 },
    accepts: ['kubeadmupdate'],
    beside: 'replace',
    veto: buildVeto(),
    finished: finishedSignals(join(directory, 'finished.json')),
    ...agent,
  };
}

function start(more: More = {}): void {
  agents.push(new Agent(partsOf(more)).run(stop.signal).catch(() => undefined));
}

async function restart(more: More = {}): Promise<void> {
  stop.abort();
  await Promise.all(agents);
  stop = new AbortController();
  start(more);
}

async function until(status: string): Promise<void> {
  await vi.waitFor(() => expect(store.statuses.at(-1)).toBe(status), PATIENCE);
}

const report = () => decodeReport(store.object.metadata.annotations, SIGNAL.created);

test('a worker, from the signal to the end: prepared before it asks for the drain, replaced after it', async () => {
  store.send(SIGNAL);
  start();
  await until('Cordoning');
  expect([steps, report()?.from]).toEqual([['prepare'], FROM]);
  store.advance('ApplyingUpdate');
  await until('UnCordoning');
  expect(steps).toEqual(['prepare', 'kubeadm', 'kubelet']);
  store.advance('Completed');
  await vi.waitFor(
    async () => expect(await readFile(join(directory, 'journal.json'), 'utf8')).toContain('idle'),
    PATIENCE,
  );
  expect(report()?.from).toBe(FROM);
  // If etcd was restored from a backup, it can contain an old signal.
  store.send(SIGNAL);
  await until('Failed');
  expect(report()?.reason).toContain('this signal has already ended as Completed');
  expect(steps).toHaveLength(3);
});

test.each<[string, string, string]>([
  ['before it is drained', 'Cordoning', 'ApplyingUpdate'],
  ['while it is drained', 'ApplyingUpdate', 'ApplyingUpdate'],
])('an agent that ends %s goes on', async (_name, _at, next) => {
  store.send(SIGNAL);
  start();
  await until('Cordoning');
  await restart();
  store.advance(next);
  await until('UnCordoning');
  expect(steps).toEqual(['prepare', 'kubeadm', 'kubelet']);
});

test('an agent that ends in the middle goes on before it can read its Node', async () => {
  store.send(SIGNAL);
  const blocked = Promise.withResolvers<undefined>();
  answer = async (step) => (step === 'kubeadm' ? await blocked.promise : undefined);
  start();
  await until('Cordoning');
  store.advance('ApplyingUpdate');
  await vi.waitFor(() => expect(steps).toContain('kubeadm'), PATIENCE);
  const before = agents;
  stop.abort();
  stop = new AbortController();
  const object = { ...viewOf(store), newest: undefined, isKnown: false, version: 1 };
  agents = [];
  start({ agent: { object } });
  await vi.waitFor(() => expect(steps).toEqual(['prepare', 'kubeadm', 'kubeadm']), PATIENCE);
  blocked.resolve(undefined);
  await vi.waitFor(() => expect(steps).toContain('kubelet'), PATIENCE);
  agents.push(...before);
});

test('kubeadm that fails while the API server is away, as after a power cut, is repeated once that is back', async () => {
  store.send(SIGNAL);
  start();
  await until('Cordoning');
  answer = async (step) => {
    if (step !== 'kubeadm' || steps.filter((each) => each === 'kubeadm').length > 1)
      return undefined;
    away = 2;
    return await Promise.resolve('connection refused');
  };
  store.advance('ApplyingUpdate');
  await until('UnCordoning');
  expect(steps).toEqual(['prepare', 'kubeadm', 'kubeadm', 'kubelet']);
});

test.each([
  ['v1.35.9', FROM, TO, 'the API server still has v1.35.9: upgrade the control plane before'],
  [TO, 'v1.30.1', TO, 'last managed by kubeadm 1.30: 1.36 is more than one minor version newer'],
  ...['latest', '1.36', 'v1.36.x', TO.repeat(2)].map(
    (version) =>
      [TO, FROM, version, `the wanted version is "${version}", which is not a version`] as const,
  ),
])('a worker fails before the drain: API server %s, kubelet %s to %s', async (...row) => {
  const [asked, its, version, reason] = row;
  server = asked;
  setKubelet(its);
  store.send({ ...SIGNAL, command: { ...SIGNAL.command, version } });
  start();
  await until('FailedDownload');
  expect(report()?.reason).toContain(reason);
  expect(steps).toEqual([]);
});

test.each<[string, string, string, string]>([
  [
    'the version of the cluster',
    '<none>',
    TO,
    'clusterConfiguration.kubernetesVersion of ConfigMap kube-system/kubeadm-config is "<none>", which is not a version',
  ],
  [
    'the version of the API server',
    TO,
    'devel',
    'the API server says that its version is "devel", which is not a version',
  ],
])(
  'a worker fails before the drain where %s cannot be read',
  async (_name, configured, asked, reason) => {
    cluster = configured;
    server = asked;
    store.send(SIGNAL);
    start();
    await until('FailedDownload');
    expect(report()?.reason).toContain(reason);
    expect(steps).toEqual([]);
  },
);

test('a control plane whose own member of etcd does not answer asks nobody else, and is not touched', async () => {
  const shells = () => ({
    run: async (_host: unknown, script: string) => {
      const stdout = script.includes('cluster/member/list') ? 'etcd=curl: (28) timed out\n' : '';
      return await Promise.resolve({ code: 0, stdout, stderr: '' });
    },
  });
  let now = 0;
  const monotonic = (): number => {
    now += 60_000;
    return now;
  };
  const clock = { ...systemClock, monotonic };
  store.send(SIGNAL);
  start({ tools: { host: { name: 'w1', role: 'controlPlane' }, shells, clock } });
  await until('FailedDownload');
  expect(report()?.reason).toContain('etcd: the member on this host does not answer');
});

test.each<[string, Partial<SignalData['command']>, string]>([
  [
    'of another kind',
    { kind: 'k0supdate' },
    'this agent cannot carry out k0supdate here, only kubeadmupdate',
  ],
  ['with a sha256 that is none', { sha256: 'x' }, 'sha256 "x" is not 64 hexadecimal digits'],
  [
    'that its own rules forbid',
    { version: 'v1.36.1' },
    'v1.36.1 is below v1.36.2, the running version',
  ],
])('a signal %s is refused', async (_name, command, reason) => {
  store.send({ ...SIGNAL, command: { ...SIGNAL.command, ...command } });
  start({ agent: { veto: buildVeto({ refuseDowngrade: true }) } });
  await until('FailedDownload');
  expect(report()).toMatchObject({
    refused: true,
    reason: expect.stringContaining(reason) as unknown,
  });
  expect(steps).toEqual([]);
});

test('somebody else who reports Downloading gets no further than the rules', async () => {
  store.send({ ...SIGNAL, status: { status: 'Downloading', timestamp: SIGNAL.created } });
  start({ agent: { veto: buildVeto({ allowedHosts: ['mirror.example'] }) } });
  await until('FailedDownload');
  expect(report()?.reason).toContain('downloads nothing from example.com');
});

test.each<[string, Partial<KubeadmTools>, string, string]>([
  [
    'a list that is not fetched',
    { fetch: async () => await Promise.reject(new Error('404')) },
    TO,
    '404',
  ],
  ['a worker before the control plane', {}, FROM, `kubeadm-config has version ${FROM}`],
  [
    'a control plane that Cluster API did not write',
    { host: { name: 'w1', role: 'controlPlane' } },
    'v1.36.4',
    'v1.36.4, so',
  ],
])('%s fails before the drain', async (_name, tools, configured, reason) => {
  cluster = configured;
  store.send(SIGNAL);
  start({ tools });
  await until('FailedDownload');
  expect([report()?.reason, steps]).toEqual([expect.stringContaining(reason), []]);
});

test('what kubeadm says in its preflight is the reason', async () => {
  answer = async (step) =>
    await Promise.resolve(step === 'prepare' ? 'no room\n[ERROR]' : undefined);
  store.send(SIGNAL);
  start();
  await until('FailedDownload');
  expect(report()?.reason).toBe('step stage failed with exit code 1: no room; [ERROR]');
});

test('a kubelet that does not start is rolled back, once, though the report is refused at first', async () => {
  answer = async (step) => await Promise.resolve(step === 'kubelet' ? 'no such unit' : undefined);
  store.send(SIGNAL);
  start();
  await until('Cordoning');
  store.advance('ApplyingUpdate');
  let refusals = 3;
  store.beforeWrite = () => {
    if (refusals-- > 0)
      throw new StatusError({ kind: 'Status', code: 503, reason: 'ServiceUnavailable' });
  };
  await until('Failed');
  expect(steps).toEqual(['prepare', 'kubeadm', 'kubelet', 'rollBack']);
  expect(report()?.reason).toMatch(
    /^step kubelet failed .*no such unit; rolled back: v1.36.2 said this was put back/,
  );
});

test('a kubelet that crashes is in the report while the agent still waits for it, though a write fails', async () => {
  crashes = '3 E1 command failed';
  store.send(SIGNAL);
  const view = viewOf(store);
  let refreshes = 0;
  // The view of the object does not have the last change until the agent refreshes the view.
  let behind: KubeObject | undefined;
  const object: SignalObject = {
    ...view,
    get newest() {
      return behind ?? store.object;
    },
    get version() {
      return Number(store.object.metadata.resourceVersion);
    },
    refresh: async () => {
      refreshes += 1;
      behind = undefined;
      await Promise.resolve();
    },
  };
  answer = async (step) => {
    if (step === 'kubelet') {
      behind = store.object;
      store.change({ annotations: { 'of-a-person': 'written meanwhile' } });
    }
    return await Promise.resolve(undefined);
  };
  start({ agent: { object }, tools: { reportReason: reasonReporter({ ...TOOLS, object }) } });
  await until('Cordoning');
  store.advance('ApplyingUpdate');
  const reason = 'the new kubelet crashed 3 times; last line of its log: E1 command failed';
  await vi.waitFor(() => expect(report()).toMatchObject({ from: FROM, reason }), PATIENCE);
  expect([refreshes, store.statuses.at(-1)]).toEqual([1, 'ApplyingUpdate']);
  setKubelet(TO);
  await until('UnCordoning');
  expect(report()?.reason).toBeUndefined();
});

test('a signal that is cancelled while it is prepared is not carried on', async () => {
  const blocked = Promise.withResolvers<typeof BINARIES>();
  let abort: AbortSignal | undefined;
  store.send(SIGNAL);
  const fetch: KubeadmTools['fetch'] = async (_command, own) => {
    abort = own.abort;
    return await blocked.promise;
  };
  start({ tools: { fetch } });
  await vi.waitFor(() => expect(abort).toBeDefined(), PATIENCE);
  store.advance('Failed');
  expect(abort?.aborted).toBe(true);
  blocked.resolve(BINARIES);
  store.send({ ...SIGNAL, created: '2026-11-22T09:00:00Z' });
  await until('Cordoning');
  expect(store.statuses).toEqual(['Downloading', 'Failed', 'Downloading', 'Cordoning']);
});

test.each<[string, string]>([
  ['Cordoning', 'Failed'],
  ['ApplyingUpdate', 'Failed'],
])('at %s without a journal it touches nothing', async (at, status) => {
  store.send({ ...SIGNAL, status: { status: at, timestamp: SIGNAL.created } });
  start();
  await until(status);
  expect(report()?.reason).toBe(
    `the update was at ${at}, but the agent's journal of it is gone: check the host, then retry`,
  );
  expect(steps).toEqual([]);
});

test('a manifest that cannot be put back is an error in the log', async () => {
  const said: object[] = [];
  const log = { ...silentLogger, error: (_message: string, fields = {}) => void said.push(fields) };
  store.send(SIGNAL);
  start({ agent: { log }, tools: { host: { name: 'w1', role: 'controlPlane' } } });
  await until('Cordoning');
  answer = async () => await Promise.resolve('cp: no space left on device');
  store.advance('Failed');
  await vi.waitFor(() => expect(said).not.toEqual([]), PATIENCE);
  const reason = expect.stringContaining('cp: no space left on device') as string;
  expect(said).toEqual([{ step: 'clean-up', reason }]);
});

test('at the start no check of options runs without any, and one that cannot run trusts nothing', async () => {
  const scripts: string[] = [];
  const shells = {
    run: async (_host: unknown, script: string) => {
      scripts.push(script);
      const code = script.startsWith('for name in kubeadm') ? 0 : 2;
      return await Promise.resolve({ code, stdout: '', stderr: 'sh: syntax error\n' });
    },
  };
  const root = '/nowhere';
  expect(await findKubeadm('n1', root, shells)).toEqual({ name: 'n1', role: 'worker' });
  expect(scripts).toHaveLength(1);
  await expect(findKubeadm('n1', root, shells, { config: '/etc/k.yaml' })).rejects.toThrow(
    '--kubeadm-config: /etc/k.yaml could not be checked (exit code 2): sh: syntax error',
  );
});
