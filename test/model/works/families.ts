/** The smallest dialects that do not signal objects. One creates Jobs, the other starts work elsewhere. */
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { Observation } from '../../../src/engine/model/facts.ts';
import type { Rollout } from '../../../src/engine/model/rollout.ts';
import { jobs, type KubeObject, nodes, type Resource } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { buildNode } from '../../support/builders/nodes.ts';
import { buildRollout } from '../../support/builders/rollouts.ts';
import { buildStage } from '../../support/builders/stages.ts';
import { NOW } from '../cluster.ts';

/** The progress of the work on one target, as the party that does the work reports it. */
export type Work = 'none' | 'begun' | 'done' | 'failed';

export interface WorkPlan extends KubeObject {
  readonly spec: Rollout;
  readonly status?: Rollout;
}

export interface WorkFamily {
  /** A short name for tables. */
  readonly name: string;
  /** Returns the dialect. It calls `begin` with the target for which work is requested, if the request is not a write. */
  dialect(begin: (target: string) => void): Dialect<WorkPlan>;
  /** The kind of the objects that report the progress of the work. */
  readonly answers: Resource;
  /**
   * Returns the object that reports the progress of the work; undefined if there is no such object before the work
   * begins.
   */
  answerOf(target: string, work: Work): KubeObject | undefined;
  /** True if a failed target keeps its slot, and the other targets continue. */
  readonly failedHoldSlots: boolean;
}

export const WORK_PLANS: Resource<WorkPlan> = {
  group: 'example.com',
  version: 'v1',
  kind: 'Plan',
  plural: 'plans',
  namespaced: false,
};

/** The annotation with the progress of the work, on the object that reports it. */
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

/** Works like Jobs. A Job has the name of its target, so an existing Job is never created again. */
export const JOBS: WorkFamily = {
  name: '1 Job for each target, a failed Job keeps its slot',
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

/** Works like a procedure over SSH. The host reports the progress on the Node, and never begins the same work twice. */
export const ELSEWHERE: WorkFamily = {
  name: '1 procedure on the host of each target',
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
