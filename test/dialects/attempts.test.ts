/**
 * Tests in each dialect that the time which names an attempt comes from a record, and not from the clock: a hook would
 * otherwise run again in each turn.
 */
import { describe, expect, test } from 'vitest';
import { cattlePlans } from '../../src/api/kinds.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { capi } from '../../src/dialects/capi/plan/capi-dialect.ts';
import { UPDATE_ANNOTATION } from '../../src/dialects/capi/plan/machine-update.ts';
import { cattle } from '../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { kubeadmDialect } from '../../src/dialects/kubeadm/plan/kubeadm-dialect.ts';
import { newPlan } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import type { Dialect } from '../../src/engine/contract/dialect.ts';
import type { World } from '../../src/engine/contract/world.ts';
import { hookRunOf } from '../../src/engine/gates/hook-runs.ts';
import { type RecordedState, type Rollout, withStages } from '../../src/engine/model/rollout.ts';
import { gather } from '../../src/engine/snapshot/gather.ts';
import type { Hook, HookMoment } from '../../src/hooks/rules.ts';
import {
  jobs,
  type KubeObject,
  type Node,
  nodes,
  pods,
  secrets,
} from '../../src/kube/resources.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { filesOf } from '../repo/tree.ts';
import { buildCattlePlan } from '../support/builders/cattle-plans.ts';
import { DIALECTS } from '../support/builders/dialects.ts';
import { buildMachineUpdate } from '../support/builders/machine-updates.ts';
import { buildNode } from '../support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildWorldOf } from '../support/builders/worlds-of-kinds.ts';
import { later, MINUTE, SECOND, T0 } from '../support/clock/times.ts';
import { toy } from '../toy/toy-dialect.ts';

/** A plan with one node, `w1`. `newDialect` returns the dialect of a new process, which remembers nothing. */
interface Sample {
  readonly newDialect: () => Dialect;
  readonly plan: KubeObject;
  readonly node?: Partial<KubeObject['metadata']>;
}

const cattleWith = (drainInJob: boolean) => () =>
  cattle({
    name: 'controller',
    namespace: 'system-upgrade',
    job: { ...DEFAULT_JOB_SETTINGS, drainInJob },
  });
const REQUEST = {
  version: 'v1.36.3',
  concurrent: 1,
  certificates: [],
  leader: [],
  followers: [],
  kubelets: [],
  workers: ['w1'],
};
const UPDATE = buildUpdate({ targets: { workers: listed('w1') } });
const REQUESTED = { annotations: { [UPDATE_ANNOTATION]: JSON.stringify(buildMachineUpdate()) } };
const DATA = { colour: 'red', first: '', rest: 'w1', atOnce: '1', record: '' };
const LABELS = { labels: { 'kubernetes.io/hostname': 'w1' } };

const SAMPLES: readonly (readonly [string, Sample])[] = [
  [
    'autopilot',
    {
      newDialect: () => autopilot,
      plan: buildPlan({ commands: [{ k0supdate: UPDATE }] }),
    },
  ],
  [
    'cattle',
    { newDialect: cattleWith(true), plan: buildCattlePlan('p', { drain: {} }), node: LABELS },
  ],
  [
    'cattle whose leader drains',
    { newDialect: cattleWith(false), plan: buildCattlePlan('p', { drain: {} }), node: LABELS },
  ],
  [
    'kubeadm',
    {
      newDialect: () => kubeadmDialect(undefined),
      plan: newPlan(REQUEST, 'sha256:1'),
    },
  ],
  [
    'capi',
    {
      newDialect: () => capi,
      plan: buildNode('w1', REQUESTED),
      node: REQUESTED,
    },
  ],
  [
    'toy',
    {
      newDialect: () => toy,
      plan: { metadata: { name: 'painting' }, data: DATA } as KubeObject,
    },
  ],
];

const worldOf = (plan: KubeObject, node: Node): World =>
  buildWorldOf(
    [nodes, [node]],
    [controlNodes, []],
    [cattlePlans, [plan]],
    [jobs, []],
    [pods, []],
    [secrets, []],
  );

/** Returns the plan and its node after a leader has recorded the node in this state. */
function recorded({ newDialect, plan, node: more }: Sample, state: RecordedState, since: string) {
  const dialect = newDialect();
  const node = buildNode('w1', more);
  const resolved = dialect.resolve(plan, worldOf(plan, node), T0);
  const rollout: Rollout = {
    ...resolved,
    phase: 'running',
    stages: resolved.stages.map((stage) => ({
      ...stage,
      targets: stage.targets.map((target) => ({ ...target, state, since })),
    })),
  };
  const [at] = withStages(rollout);
  if (!at) throw new Error('the plan has no target');
  const { signal } = dialect;
  const world = worldOf(plan, node);
  const instruction =
    state === 'done'
      ? signal.finish?.(world, rollout, at.stage, at.target, plan)
      : signal.remember?.(world, rollout, at.stage, at.target, plan);
  const written = instruction?.kind === 'replace' ? (instruction.object as Node) : node;
  const base = dialect.plans.kind === 'Node' ? written : plan;
  const project = dialect.project(rollout, base, T0);
  return { plan: project, node: dialect.plans.kind === 'Node' ? (project as Node) : written };
}

/** The clock of a turn, and of turns that follow 2 s, 3 s and an hour later. By then, Kubernetes has deleted all Jobs. */
const TURNS = [0, 2 * SECOND, 3 * SECOND, 60 * MINUTE].map((ms) => T0 + 30 * MINUTE + ms);
const SINCE = later(MINUTE);

test('every dialect has a sample here', () => {
  const known = SAMPLES.map(([name]) => name);
  expect(DIALECTS.filter(({ name }) => !known.includes(name))).toEqual([]);
});

test('no dialect declares the time of a turn as a number, because it could then name an attempt by the time', () => {
  const files = filesOf('src/dialects/**/*.ts', 'src/engine/contract/*.ts');
  const wrong = files.filter(({ text }) =>
    /\b(?:resolve|joinedTargets)\b[^{};]*\bnow: number/.test(text),
  );
  expect(files.length).toBeGreaterThan(50);
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

describe.each(SAMPLES)('in the dialect %s', (_name, sample) => {
  test.each(['intended', 'done', 'failed'] as const)(
    'a target that is recorded as %s keeps its time in each turn of each process',
    (state) => {
      const { plan, node } = recorded(sample, state, SINCE);
      const times = TURNS.map((now) => {
        const rollout = sample.newDialect().resolve(plan, worldOf(plan, node), now);
        return withStages(rollout).flatMap(({ target }) =>
          target.name === 'w1' ? [[target.state, target.since]] : [],
        );
      });
      expect(times).toEqual(TURNS.map(() => [[state, SINCE]]));
    },
  );

  test.each<HookMoment>(['beforeDrain', 'afterDrain', 'beforeRestart', 'afterVerified'])(
    'a hook of the moment %s has one run for one attempt, and another run for the next attempt',
    (when) => {
      const runs = [SINCE, later(2 * MINUTE)].map((since) => {
        const { plan, node } = recorded(sample, 'intended', since);
        const ids = TURNS.map((now) => {
          const snapshot = gather(sample.newDialect(), plan, worldOf(plan, node), now);
          const [at] = withStages(snapshot.rollout);
          return at && hookRunOf({ snapshot, ...at }, hookAt(when)).id;
        });
        return new Set(ids);
      });
      expect(runs.map(({ size }) => size)).toEqual([1, 1]);
      expect(runs[0]).not.toEqual(runs[1]);
    },
  );
});

test('a Rancher Plan that another controller has recorded names no attempt by the clock', () => {
  const sample = SAMPLES.find(([name]) => name === 'cattle')?.[1];
  if (!sample) throw new Error('the sample is missing');
  const { plan } = recorded(sample, 'intended', SINCE);
  const bare = buildNode('w1', LABELS);
  const targets = TURNS.map((now) =>
    withStages(sample.newDialect().resolve(plan, worldOf(plan, bare), now)).map(
      ({ target }) => target,
    ),
  );
  expect(targets[0]).toMatchObject([{ state: 'intended', lacksAttempt: true }]);
  for (const each of targets) expect(each).toEqual(targets[0]);
});

function hookAt(when: HookMoment): Hook {
  const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
  const action = { kind: 'job', namespace: 'h', template, pinToNode: false, retries: 0 } as const;
  return { name: 'backup', when, action, timeoutMs: MINUTE };
}
