/** The smallest dialects without a signal on an object: one creates Jobs, one starts work elsewhere. */
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { Observation } from '../../../src/engine/model/decision.ts';
import type { Rollout } from '../../../src/engine/model/rollout.ts';
import { jobs, type KubeObject, nodes, type Resource } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { buildNode } from '../../support/builders/nodes.ts';
import { buildRollout } from '../../support/builders/rollouts.ts';
import { buildStage } from '../../support/builders/stages.ts';
import { NOW } from '../cluster.ts';

/** How far the work on one target has come, as whoever does it tells. */
export type Work = 'none' | 'begun' | 'done' | 'failed';

export interface WorkPlan extends KubeObject {
  readonly spec: Rollout;
  readonly status?: Rollout;
}

export interface WorkFamily {
  /** In a few words, for tables. */
  readonly name: string;
  /** Tells which target work was asked for, where that is no write. */
  dialect(begin: (target: string) => void): Dialect<WorkPlan>;
  /** What tells how the work goes. */
  readonly answers: Resource;
  /** The object that tells of the work: undefined where there is none before it is begun. */
  answerOf(target: string, work: Work): KubeObject | undefined;
  /** True where a target that failed keeps its slot, and the others go on. */
  readonly failedHoldSlots: boolean;
}

export const WORK_PLANS: Resource<WorkPlan> = {
  group: 'example.com',
  version: 'v1',
  kind: 'Plan',
  plural: 'plans',
  namespaced: false,
};

/** Holds the word for the work, on whatever tells of it. */
const WORK = 'example.com/work';

function base(name: string): Omit<Dialect<WorkPlan>, 'signal'> {
  return {
    name,
    plans: WORK_PLANS,
    statusRecord: { hasConditions: true },
    watched: [nodes, jobs].map((resource) => ({ resource, isRelevant: () => true })),
    resolve: ({ spec, status }) => status ?? spec,
    project: (rollout, plan) => ({ ...plan, status: rollout }),
    objectOf: (_stage, target, world) => world.get(nodes, target.name),
    endpoints: () => [],
  };
}

/** As Jobs do it: named after their target, so that one that exists is never created again. */
export const JOBS: WorkFamily = {
  name: 'Jobs; failed Jobs hold their slots',
  answers: jobs,
  failedHoldSlots: true,
  answerOf: (target, work) =>
    work === 'none' ? undefined : telling({ metadata: { name: target } }, work),
  dialect: () => ({
    ...base('jobs'),
    signal: {
      read: (world, _rollout, _stage, { name }) => observe(world.get(jobs, name)),
      touches: (world, _rollout, _stage, { name }) => ({
        resource: jobs,
        object: world.get(jobs, name) ?? { metadata: { name } },
        isAbsent: world.get(jobs, name) === undefined,
      }),
      send: (_world, _rollout, { target: { name } }) => {
        return { kind: 'create', resource: jobs, object: telling({ metadata: { name } }, 'begun') };
      },
    },
  }),
};

/** As a procedure over SSH does it: its host tells on the Node how it goes, and begins nothing that it has begun before. */
export const ELSEWHERE: WorkFamily = {
  name: 'work elsewhere',
  answers: nodes,
  failedHoldSlots: false,
  answerOf: (target, work) => telling(buildNode(target), work),
  dialect: (begin) => ({
    ...base('elsewhere'),
    signal: {
      read: (world, _rollout, _stage, { name }) => observe(world.get(nodes, name)),
      touches: () => undefined,
      send: (_world, _rollout, { target: { name } }) => {
        return { kind: 'begin', begin: async () => await Promise.resolve(begin(name)) };
      },
    },
  }),
};

export function buildWorkPlan(
  targets: readonly string[],
  maxInFlight: number,
  failedHoldSlots: boolean,
): WorkPlan {
  const { payloads: _, ...stage } = buildStage('worker', targets, { maxInFlight, failedHoldSlots });
  return {
    metadata: { name: 'plan', uid: 'plan-uid' },
    spec: buildRollout([stage], { phase: 'new' }),
  };
}

function telling(object: KubeObject, work: Work): KubeObject {
  const annotations = { ...object.metadata.annotations, [WORK]: work };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function observe(object: KubeObject | undefined): Observation {
  const work = object?.metadata.annotations?.[WORK] ?? 'none';
  const seen = { attempt: rfc3339(NOW), since: rfc3339(NOW) };
  switch (work) {
    case 'begun':
      return { kind: 'working', step: 'Running', ...seen };
    case 'done':
      return { kind: 'succeeded', ...seen };
    case 'failed':
      return { kind: 'failed', message: 'the work failed', ...seen };
    default:
      return { kind: 'none' };
  }
}
