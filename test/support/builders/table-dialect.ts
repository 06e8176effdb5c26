/** A minimal dialect for tests of the engine. The plan stores its rollout, and the object stores its observation. */
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { Observation } from '../../../src/engine/model/facts.ts';
import type { Role, Rollout } from '../../../src/engine/model/rollout.ts';
import { isRelevant } from '../../../src/engine/snapshot/predicates.ts';
import { type KubeObject, nodes, type Resource } from '../../../src/kube/resources.ts';
import { buildRollout } from './rollouts.ts';
import { buildStage } from './stages.ts';

export interface TablePlan extends KubeObject {
  spec: Rollout;
  status?: Rollout;
}

/** Holds the observation of the object's only signal, as JSON. */
const ANSWER = 'example.com/answer';

export const TABLE_OBJECTS: Readonly<Record<Role, Resource>> = {
  controller: {
    group: 'example.com',
    version: 'v1',
    kind: 'Host',
    plural: 'hosts',
    namespaced: false,
  },
  worker: nodes,
};

export const tableDialect: Dialect<TablePlan> = {
  name: 'table',
  plans: { group: 'example.com', version: 'v1', kind: 'Plan', plural: 'plans', namespaced: false },
  statusRecord: { hasConditions: true },
  watched: Object.values(TABLE_OBJECTS).map((resource) => ({ resource, isRelevant })),
  resolve: ({ spec, status }) => status ?? spec,
  project: (rollout, plan) => ({ ...plan, status: rollout }),
  objectOf: ({ role }, { name }, world) => world.get(TABLE_OBJECTS[role], name),
  endpoints: (world) =>
    world.list(TABLE_OBJECTS.controller).map(({ metadata: { name } }) => ({ name, host: name })),
  signal: {
    read(world, _rollout, { role }, { name }) {
      const annotations = world.get(TABLE_OBJECTS[role], name)?.metadata.annotations;
      return JSON.parse(annotations?.[ANSWER] ?? '{"kind":"none"}') as Observation;
    },
    touches(world, _rollout, { role }, { name }) {
      const resource = TABLE_OBJECTS[role];
      const object = world.get(resource, name);
      return object && { resource, object };
    },
    send(world, _rollout, { stage, target: { name, since } }) {
      const resource = TABLE_OBJECTS[stage.role];
      const object = world.get(resource, name);
      return (
        object && {
          kind: 'replace',
          resource,
          object: withAnswer(object, { kind: 'sent', attempt: since, since }),
        }
      );
    },
  },
};

/** Returns the same dialect for another kind of plans. These plans claim Nodes before their targets start. */
export function claimingDialect(name: string): Dialect<TablePlan> {
  return {
    ...tableDialect,
    name,
    plans: { ...tableDialect.plans, plural: `plansof${name}` },
    nodeSharing: {
      occupantOf: () => undefined,
      claims: { needOf: () => 'with-limit', isAtWork: () => false },
    },
    drainDelegation: {
      always: true,
      nodeOf: (_stage, target, world) => world.get(nodes, target.name),
    },
  };
}

/** Returns the same dialect with signals that can be cancelled. A target answers a cancellation with `answer`. */
export function cancellable(answer: Observation): Dialect<TablePlan> {
  const cancel: Dialect<TablePlan>['signal']['cancel'] = (world, _rollout, { role }, { name }) => {
    const resource = TABLE_OBJECTS[role];
    const object = world.get(resource, name);
    return object && { kind: 'replace', resource, object: withAnswer(object, answer) };
  };
  return { ...tableDialect, signal: { ...tableDialect.signal, cancel } };
}

/** A new plan; its targets are pending since the beginning. */
export function buildTablePlan(targets: {
  controllers?: readonly string[];
  workers?: readonly string[];
}): TablePlan {
  const stages = [
    buildStage('controller', targets.controllers ?? []),
    buildStage('worker', targets.workers ?? []),
  ];
  return {
    metadata: { name: 'plan', uid: 'plan-uid', resourceVersion: '1' },
    spec: buildRollout(stages, { phase: 'new' }),
  };
}

export function withAnswer<T extends KubeObject>(object: T, answer: Observation): T {
  const annotations = { ...object.metadata.annotations, [ANSWER]: JSON.stringify(answer) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}
