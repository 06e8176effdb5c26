/** Shows which plan `refit report` is about, and which Events it reads, on an API server in memory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { createNode, installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { plans } from '../../api/autopilot/plan.ts';
import { nodeRollouts } from '../../api/kinds.ts';
import { withRequest } from '../../dialects/capi/plan/machine-update.ts';
import { MODULES } from '../../dialects/modules.ts';
import { DIALECT_LABEL } from '../../engine/report/node-rollout-object.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { type Event, events, type Node, namespaces, nodes } from '../../kube/resources.ts';
import { describeProblem } from '../../kube/status-error.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { rfc3339, systemClock } from '../../util/clock.ts';
import { plainOutput } from '../output.ts';
import { writeReport } from './report-command.ts';

/** A kubelet that is newer than the version of the plans. */
const NEWER = { kubeletVersion: 'v1.38.0' };
const NODE_OF_MACHINE: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'w2' },
  status: { nodeInfo: NEWER },
};

type Place = {
  readonly namespace?: string;
  readonly dialect?: string;
  readonly ready?: boolean;
  readonly accept?: readonly string[];
  readonly output?: 'svg' | undefined;
  readonly isTerminal?: boolean;
};

let removePlan: () => Promise<void>;
let report: (plan: string | undefined, place?: Place) => Promise<string>;

/** The kind of the plans of each dialect, as NodeRollouts name it. */
const PLAN_KINDS = {
  autopilot: { apiVersion: 'autopilot.k0sproject.io/v1beta2', kind: 'Plan' },
  cattle: { apiVersion: 'upgrade.cattle.io/v1', kind: 'Plan' },
  capi: { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Machine' },
} as const;

function rolloutOf(name: string, kind: keyof typeof PLAN_KINDS, namespace?: string) {
  return {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'NodeRollout',
    metadata: {
      name: `${kind}-${name}`,
      namespace: namespace ?? 'default',
      labels: { [DIALECT_LABEL]: kind },
    },
    spec: {
      plan: {
        ...PLAN_KINDS[kind],
        name,
        ...(namespace === undefined ? {} : { namespace }),
      },
    },
  };
}

function eventOf(name: string, component: string): Event {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'default' },
    involvedObject: { kind: 'Node', name: 'w1' },
    source: { component },
    reason: 'Signalled',
    message: `of ${component}`,
    lastTimestamp: rfc3339(systemClock.now()),
  };
}

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-report-'));
  const plane = await startSandboxPlane(folder);
  const kubeconfig = await plane.kubeconfig('admin');
  using client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  await createNode(client, 'w1', {});
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  await client.create(plans, { ...rest, metadata: { name: metadata.name } });
  const rollouts = [
    rolloutOf('autopilot', 'autopilot'),
    rolloutOf('gone', 'cattle', 'a'),
    rolloutOf('gone', 'cattle', 'b'),
    rolloutOf('machine2', 'capi', 'fleet'),
  ];
  await client.create(
    nodes,
    withRequest(NODE_OF_MACHINE, {
      uid: 'machine2',
      machine: 'fleet/machine2',
      version: 'v1.36.3',
      role: 'worker',
      requested: rfc3339(systemClock.now()),
      platform: 'linux-amd64',
      url: 'https://example.com/k0s',
    }),
  );
  for (const name of ['a', 'b', 'fleet'])
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const rollout of rollouts) await client.create(nodeRollouts, rollout);
  for (const component of ['refit-controller', 'refit-kubeadm', 'kubelet'])
    await client.create(events, eventOf(`w1.${component}`, component));
  removePlan = async () => {
    const config = await loadClusterConfig({ path: kubeconfig });
    using again = createClient(config, { userAgent: 'test' });
    await again.delete(plans, metadata.name);
    await again.delete(nodes, NODE_OF_MACHINE.metadata.name);
  };
  const abort = new AbortController().signal;
  report = async (plan, { isTerminal = false, ...place } = {}) => {
    let text = '';
    const write = (piece: string): void => {
      text += piece;
    };
    const output = { ...plainOutput, isTerminal, write };
    const parts = { modules: MODULES, clock: systemClock, output, abort };
    const written = writeReport(plan, { kubeconfig, output: 'markdown', ...place }, parts);
    return await written.then(
      () => text,
      (error: unknown) => describeProblem(error).line,
    );
  };
  return async () => {
    await plane.stop();
    await rm(folder, { recursive: true });
  };
});

test.each<Place>([{ namespace: 'other' }, { dialect: 'cattle' }])(
  'a plan outside of %j is not shown as deleted',
  async (place) => {
    expect(await report('autopilot', place)).toMatch(
      /^REFIT_CONTROL: there is no plan autopilot (?:in|of) .*; there is autopilot\/autopilot/,
    );
  },
);

test.each<[string, Place]>([
  ['machine2', {}],
  ['fleet/machine2', {}],
  ['machine2', { dialect: 'capi' }],
])('a Machine that exists is not shown as deleted: %s %j', async (name, place) => {
  const text = await report(name, place);
  expect(text).toContain('# Machine fleet/machine2 (');
  expect(text).not.toContain('(deleted)');
});

test('a filter that hides a Machine does not show it as deleted', async () => {
  expect(await report('machine2', { dialect: 'cattle' })).toMatch(/^REFIT_CONTROL: there is no/);
  expect(await report('machine2', { namespace: 'fleet' })).not.toContain('(deleted)');
});

test('a name that several deleted plans have is refused, and chosen by its namespace', async () => {
  expect(await report('gone')).toMatch(
    /^REFIT_CONTROL: more than one deleted plan has the name gone: cattle\/a\/gone, cattle\/b\/gone/,
  );
  expect(await report('b/gone')).toContain('# Plan b/gone (deleted)');
  expect(await report('gone', { namespace: 'a' })).toContain('# Plan a/gone (deleted)');
  expect(await report('gone', { namespace: 'c' })).toMatch(/^REFIT_CONTROL: there is no plan gone/);
});

test('a deleted plan needs no name if it is the only one that matches', async () => {
  expect(await report(undefined, { namespace: 'a' })).toContain('# Plan a/gone (deleted)');
  expect(await report(undefined, { dialect: 'cattle' })).toMatch(
    /^REFIT_CONTROL: more than one deleted plan is recorded: cattle\/a\/gone, cattle\/b\/gone/,
  );
});

test('the Events of every component of Refit are read, and those of nobody else', async () => {
  const text = await report('autopilot');
  expect(text).toContain('w1: Signalled. of refit-controller');
  expect(text).toContain('w1: Signalled. of refit-kubeadm');
  expect(text).not.toContain('of kubelet');
});

test('the report about a plan that has not started says whether the cluster is ready', async () => {
  const section = /## Readiness\n\n\* (?:Not|Perhaps) ready for v1\.36\.3\+k0s\.2: /u;
  expect(await report('autopilot')).toMatch(section);
  expect(await report('autopilot', { ready: false })).not.toContain('## Readiness');
});

test('the report about a plan names the reason for which somebody accepted a blocker', async () => {
  expect(await report('autopilot')).toMatch(
    /\* blocker \(versions\): Node w2: its kubelet v1\.38\.0 is newer /u,
  );
  const text = await report('autopilot', { accept: ['versions=w2 leaves today'] });
  expect(text).not.toContain('* blocker (versions)');
  expect(text).toMatch(/\* warning \(versions\): Node w2: .*\(accepted: w2 leaves today\)/u);
  expect(await report('autopilot', { accept: ['versions'] })).toMatch(
    /^REFIT_USAGE: --accept must be CHECK=REASON/,
  );
});

test('without any plan, the deleted ones are found, also without a name', async () => {
  await removePlan();
  expect(await report(undefined)).toMatch(
    /^REFIT_CONTROL: more than one deleted plan is recorded: autopilot\/autopilot, capi\/fleet\/machine2, cattle\/a\/gone/,
  );
  expect(await report(undefined, { dialect: 'autopilot' })).toContain('(deleted)');
});

test.each<[Place, string]>([
  [{ accept: ['room=x'], ready: false }, '--no-ready'],
  [{ accept: ['room=x'], output: 'svg' }, '-o svg, which shows no sentences'],
])('reasons that the report would not show are refused: %j', async (flags, what) => {
  expect(await report('autopilot', flags)).toContain(
    `REFIT_USAGE: --accept has no effect with ${what}: leave one of them out`,
  );
});

test('two reasons for one check are refused', async () => {
  expect(await report('autopilot', { accept: ['room=x', 'room=y'] })).toContain(
    'REFIT_USAGE: --accept names the check room twice; write one reason',
  );
});

test('without a chosen form, a report is Markdown on a terminal, and else a page', async () => {
  const chosen = { output: undefined, ready: false };
  expect(await report('autopilot', { ...chosen, isTerminal: true })).toMatch(/^# Plan autopilot/u);
  expect(await report('autopilot', chosen)).toMatch(/^<!doctype html>/iu);
});
