/**
 * Shows the next step of a MachineDeployment in each state, and when Refit stops waiting for a roll-out that makes no
 * progress.
 */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import type { KubeClient, RequestOptions } from '../../../kube/client.ts';
import { nodes, type Resource } from '../../../kube/resources.ts';
import { StatusError, TransportError } from '../../../kube/status-error.ts';
import { nextPoolStep, type Pool, poolFindings, poolsToRoll, rollPool } from './machine-pools.ts';

const OLD = '1.36.2';
const NEW = '1.36.3';
const TARGET = 'v1.36.3';
const ALL_THERE = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2 };

interface Given {
  readonly version?: string;
  readonly begun?: boolean;
  /** The field manager that paused the MachineDeployment. */
  readonly paused?: string;
  /** Another field manager that applied the same fields. */
  readonly alsoBy?: string;
  readonly replicas?: number;
  readonly rollingUpdate?: {
    readonly maxSurge?: number | string;
    readonly maxUnavailable?: number;
  };
  readonly status?: Pool['status'];
}

function pool({
  version = NEW,
  begun = true,
  paused,
  alsoBy,
  replicas = 2,
  rollingUpdate = {},
  status = {},
}: Given): Pool {
  const managers = [paused ?? '', ...(alsoBy === undefined ? [] : [alsoBy])];
  const managedFields = managers.map((manager) => ({
    manager,
    fieldsV1: { 'f:spec': { 'f:paused': {} } },
  }));
  const annotations = begun ? { 'upgrade.refit.dev/machines': TARGET } : {};
  return {
    metadata: { name: 'p', generation: 1, resourceVersion: '1', annotations, managedFields },
    spec: {
      replicas,
      strategy: { rollingUpdate },
      paused: paused !== undefined,
      selector: { matchLabels: { pool: 'p' } },
      template: { spec: { versions: { kubelet: version } } },
    },
    status,
  };
}

function machine(version: string, errorReason?: string) {
  const metadata = { name: `p-${version}`, labels: { pool: 'p' } };
  return {
    metadata,
    spec: { versions: { kubelet: version } },
    status: errorReason ? { errorReason } : {},
  };
}

const start = { metadata: { annotations: { 'upgrade.refit.dev/machines': TARGET } } };
test.each<[string, Given, string[], boolean, object | undefined]>([
  [
    'is below: the version, in the form that it has',
    { version: OLD, begun: false },
    [OLD, OLD],
    false,
    { patch: { ...start, spec: { template: { spec: { versions: { kubelet: NEW } } } } } },
  ],
  [
    'is below, with a v',
    { version: 'v1.36.2', begun: false },
    [],
    false,
    { patch: { ...start, spec: { template: { spec: { versions: { kubelet: TARGET } } } } } },
  ],
  [
    'was paused for an earlier version',
    { version: OLD, paused: 'refit-kubeadm' },
    [OLD],
    false,
    {
      patch: {
        ...start,
        spec: { paused: false, template: { spec: { versions: { kubelet: NEW } } } },
      },
    },
  ],
  [
    'has no new Machine: no pause before',
    {},
    [OLD, OLD],
    false,
    { left: Number.POSITIVE_INFINITY },
  ],
  [
    'was paused before its first new Machine',
    { paused: 'refit-kubeadm' },
    [OLD, OLD],
    false,
    { patch: { spec: { paused: false } } },
  ],
  ['has a new Machine', {}, [OLD, NEW], false, { patch: { spec: { paused: true } } }],
  ['is paused', { paused: 'refit-kubeadm' }, [OLD, NEW], false, { left: Number.POSITIVE_INFINITY }],
  [
    'is paused, and its canary is good',
    { paused: 'refit-kubeadm' },
    [OLD, NEW],
    true,
    { patch: { spec: { paused: false } } },
  ],
  [
    'rolls on',
    { status: { ...ALL_THERE, replicas: 3, updatedReplicas: 1, availableReplicas: 3 } },
    [OLD, NEW],
    true,
    { left: 3 },
  ],
  ['still has an old Machine', { status: ALL_THERE }, [OLD, NEW, NEW], true, { left: 1 }],
  [
    'has a status from before',
    { status: { ...ALL_THERE, observedGeneration: 0 } },
    [NEW, NEW],
    true,
    { left: 0 },
  ],
  [
    'is whole',
    { status: ALL_THERE },
    [NEW, NEW],
    true,
    { patch: { metadata: { annotations: { 'upgrade.refit.dev/machines': null } } } },
  ],
  [
    'wants no Machine',
    { replicas: 0, status: { observedGeneration: 1 } },
    [],
    false,
    { message: `has ${TARGET}` },
  ],
  ['has ended', { begun: false }, [NEW], true, undefined],
  [
    'is paused by somebody else amid it',
    { paused: 'kubectl' },
    [NEW],
    true,
    { message: 'somebody else has paused it' },
  ],
  [
    'is paused, and GitOps applies the same pause',
    { paused: 'refit-kubeadm', alsoBy: 'argocd' },
    [OLD, NEW],
    true,
    { message: 'somebody else has paused it' },
  ],
])('a MachineDeployment that %s', (_, given, versions, hasCanary, step) => {
  const machines = versions.map((version) => machine(version));
  const next = nextPoolStep(pool(given), TARGET, { all: machines, hasCanary });
  if (step === undefined) expect(next).toBeUndefined();
  else expect(next).toMatchObject(step);
});

test('a new Machine with a final error ends it', () => {
  const step = nextPoolStep(pool({}), TARGET, {
    all: [machine(NEW, 'CreateMachineError')],
    hasCanary: true,
  });
  expect(step).toEqual({ message: `p-${NEW}: CreateMachineError: undefined` });
});

test('what is paused by others, ahead or done is not rolled', () => {
  const given = [
    { version: OLD, begun: false },
    {},
    { begun: false },
    { version: '1.37.0' },
    { version: OLD, paused: 'kubectl' },
  ];
  expect(given.map((each) => poolsToRoll([pool(each)], TARGET).length)).toEqual([1, 1, 0, 0, 0]);
});

const SEVERAL =
  'warn machines MachineDeployment p may get several Machines, or lose old ones, before its canary is Ready: maxSurge: 1';
test.each<[string, Given[] | undefined, string]>([
  [
    'cannot be read',
    undefined,
    'hard machines MachineDeployments cannot be read: machine-controller is not installed',
  ],
  [
    'is ahead',
    [{ version: '1.37.0' }],
    'hard R3 kubelet of MachineDeployment p at v1.37.0 is newer than an API server',
  ],
  [
    'has no version',
    [{ version: 'latest' }],
    'hard Km1 kubelet of MachineDeployment p: "latest" is not a version',
  ],
  [
    'is paused',
    [{ version: OLD, paused: 'kubectl' }],
    'warn machines MachineDeployment p stays as it is: somebody has paused it',
  ],
  ['may have several canaries', [{ version: OLD, rollingUpdate: { maxSurge: 2 } }], SEVERAL],
  ['may have a share of canaries', [{ version: OLD, rollingUpdate: { maxSurge: '50%' } }], SEVERAL],
  [
    'may lose a Machine before its canary',
    [{ version: OLD, rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } }],
    SEVERAL,
  ],
  ['is not rolled out', [{ begun: false, rollingUpdate: { maxSurge: 2 } }], 'undefined'],
  [
    'has one canary',
    [{ version: OLD, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }],
    'undefined',
  ],
])('a MachineDeployment that %s is a finding', (_, given, found) => {
  const [finding] = poolFindings(given?.map(pool), TARGET);
  expect(`${finding?.severity} ${finding?.rule} ${finding?.message}`).toContain(found);
});

interface Stuck {
  readonly versions?: readonly string[];
  /** The error of all Machines. */
  readonly errorReason?: string;
  /** Returns the error with which a read fails; undefined if it succeeds. `onPatch` does the same for a write. */
  readonly onGet?: () => Error | undefined;
  readonly onPatch?: () => Error | undefined;
  /** Returns what a read finds. The first read has number 0. */
  readonly shows?: (read: number) => Given;
  /** True if all Machines have a Node that is Ready. */
  readonly joined?: boolean;
}

/** Rolls out a MachineDeployment that no controller reconciles. */
function stuck(
  given: Given,
  { versions = [OLD, NEW], errorReason, onGet, onPatch, shows, joined }: Stuck = {},
) {
  let now = pool(given);
  let reads = 0;
  const writes: unknown[] = [];
  const status = {
    conditions: [{ type: 'Ready', status: 'True' }],
    nodeInfo: { kubeletVersion: TARGET },
  };
  const get = async (resource: Resource, _name: string, { abort }: RequestOptions) => {
    abort?.throwIfAborted();
    const error = onGet?.();
    if (error) throw error;
    if (resource === nodes) return await Promise.resolve({ metadata: { name: 'n' }, status });
    if (shows) now = pool(shows(reads++));
    return await Promise.resolve(now);
  };
  const patch = async (_resource: Resource, _name: string, change: object) => {
    const error = onPatch?.();
    if (error) throw error;
    writes.push(change);
    now = pool({ ...given, paused: 'refit-kubeadm' });
    return await Promise.resolve(now);
  };
  const all = versions.map((version) => machine(version, errorReason));
  const items = joined ? all.map((each) => ({ ...each, status: { nodeRef: { name: 'n' } } })) : all;
  const listAll = async () => await Promise.resolve({ items });
  const client = { get, patch, listAll } as unknown as KubeClient;
  const clock = new FakeClock();
  const said: string[] = [];
  const abort = new AbortController();
  const tools = {
    client,
    writer: client,
    clock,
    tell: (line: string) => said.push(line),
    abort: abort.signal,
  };
  return { tools, clock, said, writes, abort, pool: now };
}

const refusal = (code: number, reason: string) =>
  new StatusError({ kind: 'Status', code, reason, message: 'because' });
const HELD = { metadata: { resourceVersion: '1' }, spec: { paused: true } };

test('Refit stops after 30 minutes without a Ready canary Machine, and the MachineDeployment stays paused', async () => {
  const { tools, clock, writes, pool: given } = stuck({});
  const why = await clock.runUntil(rollPool(tools, given, TARGET));
  expect(why).toMatch(
    /^nothing has changed for 30 min: it waits until a first Machine is Ready at v1\.36\.3; it stays paused, until you run kubectl /,
  );
  expect(writes).toEqual([HELD]);
  expect(clock.monotonic()).toBeGreaterThanOrEqual(1_800_000);
}, 60_000);

test('an API server that is away for a while changes nothing', async () => {
  let left = 20;
  const {
    tools,
    clock,
    pool: given,
  } = stuck(
    { begun: false },
    { onGet: () => (left-- > 0 ? new TransportError('away') : undefined) },
  );
  expect(await clock.runUntil(rollPool(tools, given, TARGET))).toBeUndefined();
});

test('a refusal of the API server ends it, and says that the Machines are replaced further', async () => {
  const { tools, clock, pool: given } = stuck({}, { onGet: () => refusal(403, 'Forbidden') });
  expect(await clock.runUntil(rollPool(tools, given, TARGET))).toMatch(
    /refused: because; it continues without Refit; run/,
  );
});

test('machine-controller writes all the time: the pause is tried again', async () => {
  let left = 3;
  const onPatch = () => (left-- > 0 ? refusal(409, 'Conflict') : undefined);
  const {
    tools,
    clock,
    writes,
    pool: given,
  } = stuck({}, { errorReason: 'CreateMachineError', onPatch });
  const why = await clock.runUntil(rollPool(tools, given, TARGET));
  expect(why).toMatch(/CreateMachineError: undefined; it stays paused, until you run kubectl /);
  expect(writes).toEqual([HELD]);
});

test('a pause that an admission policy refuses is said', async () => {
  const onPatch = () => refusal(422, 'Invalid');
  const { tools, clock, pool: given } = stuck({}, { errorReason: 'CreateMachineError', onPatch });
  const why = await clock.runUntil(rollPool(tools, given, TARGET));
  expect(why).toMatch(
    /it cannot be paused: .*because; it continues without Refit; run the same command again$/,
  );
});

test('without a new Machine it is not paused when nothing moves', async () => {
  const { tools, clock, writes, pool: given } = stuck({}, { versions: [OLD] });
  const why = await clock.runUntil(rollPool(tools, given, TARGET));
  expect([why, writes]).toEqual([expect.stringContaining('it continues without Refit'), []]);
}, 60_000);

test('a canary that machine-controller makes anew all the time is given up, too', async () => {
  const shows = (read: number): Given => (read % 2 === 0 ? { paused: 'refit-kubeadm' } : {});
  const { tools, clock, pool: given } = stuck({}, { versions: [OLD], shows });
  expect(await clock.runUntil(rollPool(tools, given, TARGET))).toContain(
    'nothing has changed for 30 min',
  );
}, 60_000);

test('a version that somebody reverts is not written again, and not paused', async () => {
  const before = { version: OLD, begun: false };
  const shows = (read: number): Given => [before, {}][read] ?? { version: OLD };
  const { tools, clock, writes, pool: given } = stuck(before, { versions: [OLD], shows });
  const why = await clock.runUntil(rollPool(tools, given, TARGET));
  expect(why).toBe(
    'somebody has changed its version to 1.36.2; it continues without Refit; run the same command again',
  );
  expect(writes.filter((write) => JSON.stringify(write).includes(NEW))).toHaveLength(1);
});

test('an autoscaler adds more Machines than there were: each one counts', async () => {
  // One more Machine becomes ready every ten minutes, for more than an hour.
  const shows = (read: number): Given => {
    const ready = 4 + Math.floor(read / 600);
    const replicas = ready > 4 ? 12 : 5;
    const status = {
      observedGeneration: 1,
      replicas,
      updatedReplicas: ready,
      availableReplicas: ready,
    };
    return { begun: read <= 4_800, replicas, status };
  };
  const { tools, clock, pool: given } = stuck({}, { versions: [NEW], shows, joined: true });
  expect(await clock.runUntil(rollPool(tools, given, TARGET))).toBeUndefined();
}, 60_000);

test('Ctrl-C before the canary pauses it, and says so', async () => {
  const { tools, clock, said, writes, abort, pool: given } = stuck({}, { versions: [OLD] });
  const rolled = rollPool(tools, given, TARGET);
  rolled.catch(() => undefined);
  await clock.advance(5_000);
  abort.abort(new Error('SIGINT'));
  await expect(clock.runUntil(rolled)).rejects.toThrow('SIGINT');
  expect([said.at(-1), writes]).toEqual([
    expect.stringMatching(/^stays paused, until you run kubectl /),
    [HELD],
  ]);
});
