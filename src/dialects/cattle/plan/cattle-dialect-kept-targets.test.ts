/** Proves that a remembered target equals a newly resolved target after any change of nodes, Jobs and Secrets. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, SECOND, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import {
  type Job,
  jobs,
  type Node,
  nodes,
  pods,
  type Secret,
  secrets,
} from '../../../kube/resources.ts';
import { FAILED_TYPE } from './attempts.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';
import { DISABLED, hashLabelOf } from './names.ts';

const config = { name: 'controller', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const dialect = cattle(config);
const secret: Secret = {
  metadata: { name: 's', namespace: 'system-upgrade' },
  type: 'Opaque',
  data: { a: 'YQ==' },
};
const otherSecret: Secret = { ...secret, data: { a: 'Yg==' } };
const draft = buildCattlePlan('p', {
  secrets: [{ name: 's', path: '/s' }],
  nodeSelector: { matchLabels: { role: 'worker' } },
});
const HASH = latestHash(draft, 'v1.2.3', [secret]);
const NAMES = ['a', 'b', 'c'];

const workerCalled = (name: string): Node =>
  buildNode(name, { labels: { 'kubernetes.io/hostname': name, role: 'worker' } });

const planArbitrary = fc
  .record({ applying: fc.subarray(NAMES), failed: fc.subarray(NAMES), isComplete: fc.boolean() })
  .map(({ applying, failed, isComplete }): CattlePlan => {
    const told = `${failed.map((name) => `${name} at ${later(0)}`).join(', ')}; generation 0`;
    const conditions = [
      { type: 'Complete', status: isComplete ? 'True' : 'False', lastUpdateTime: later(SECOND) },
      { type: 'LatestResolved', status: 'True', reason: 'Version', lastUpdateTime: later(0) },
      ...(failed.length > 0 ? [{ type: FAILED_TYPE, status: 'True', message: told }] : []),
    ] as NonNullable<CattlePlan['status']>['conditions'];
    return {
      ...draft,
      status: {
        latestVersion: 'v1.2.3',
        latestHash: HASH,
        applying,
        ...(conditions ? { conditions } : {}),
      },
    };
  });

const labelArbitrary = fc.constantFrom(undefined, HASH, 'earlier', DISABLED);
const nodeArbitrary = (name: string): fc.Arbitrary<Node | undefined> =>
  fc.option(
    fc
      .record({
        hash: labelArbitrary,
        role: fc.constantFrom('worker', 'other'),
        unschedulable: fc.boolean(),
        uid: fc.constantFrom(`${name}-uid`, `another-${name}`),
      })
      .map(({ hash, role, unschedulable, uid }) => {
        const own = hash === undefined ? {} : { [hashLabelOf('p')]: hash };
        const labels = { 'kubernetes.io/hostname': name, role, ...own };
        return { ...buildNode(name, { labels, uid }), spec: { unschedulable } };
      }),
    { nil: undefined },
  );
const jobArbitrary = (name: string): fc.Arbitrary<readonly Job[]> =>
  fc.array(
    fc
      .record({
        hash: fc.constantFrom(HASH, 'e'.repeat(56)),
        end: fc.constantFrom(undefined, 'Complete', 'Failed'),
      })
      .map(({ hash, end }): Job => {
        const rendering = {
          plan: draft,
          node: buildNode(name),
          version: 'v1.2.3',
          hash,
          settings: config.job,
        };
        const job = jobOf(config, rendering);
        const times = {
          startTime: later(0),
          ...(end === 'Complete' ? { completionTime: later(MINUTE) } : {}),
        };
        const conditions = end
          ? [{ type: end, status: 'True' as const, lastTransitionTime: later(MINUTE) }]
          : [];
        return {
          ...job,
          metadata: { ...job.metadata, creationTimestamp: later(0) },
          status: { ...times, conditions },
        };
      }),
    { maxLength: 2 },
  );

interface Scene {
  nodes: (Node | undefined)[];
  jobs: (readonly Job[])[];
  secret: Secret | undefined;
}
type Change = (scene: Scene) => void;
const changeArbitrary: fc.Arbitrary<Change> = fc.integer({ min: 0, max: 2 }).chain((at) =>
  fc.oneof(
    nodeArbitrary(NAMES[at] ?? '').map(
      (node): Change =>
        (scene) => {
          scene.nodes[at] = node;
        },
    ),
    jobArbitrary(NAMES[at] ?? '').map(
      (made): Change =>
        (scene) => {
          scene.jobs[at] = made;
        },
    ),
    fc.constantFrom(undefined, secret, otherSecret).map(
      (is): Change =>
        (scene) => {
          scene.secret = is;
        },
    ),
  ),
);

test('what is kept equals what is resolved anew', () => {
  let kept = 0;
  let lists = 0;
  fc.assert(
    fc.property(
      planArbitrary,
      fc.array(changeArbitrary, { minLength: 5, maxLength: 30 }),
      (plan, changes) => {
        const scene: Scene = { nodes: NAMES.map(workerCalled), jobs: [], secret };
        let before: readonly unknown[] = [];
        for (const [round, change] of changes.entries()) {
          change(scene);
          const world = buildWorldOf(
            [nodes, scene.nodes.filter((node) => node !== undefined)],
            [jobs, scene.jobs.flat()],
            [pods, []],
            [secrets, scene.secret ? [scene.secret] : []],
          );
          // Two turns happen in each second. All turns together last longer than the time for which a failure counts.
          const now =
            T0 + 5 * MINUTE + Math.floor(round / 2) * 3 * MINUTE + (round % 2) * (SECOND / 2);
          const resolved = dialect.resolve(plan, world, now);
          expect(resolved).toEqual(dialect.resolve(structuredClone(plan), world, now));
          const targets = resolved.stages[0]?.targets ?? [];
          if (targets === before) lists++;
          kept += targets.filter((target) => before.includes(target)).length;
          before = targets;
        }
      },
    ),
    { numRuns: 300 },
  );
  expect(kept).toBeGreaterThan(100);
  // If nothing changed, `resolve` must return the same list.
  expect(lists).toBeGreaterThan(100);
});
